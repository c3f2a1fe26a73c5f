"""Writes the page of a results folder, and each table as LaTeX and Markdown beside it."""

from __future__ import annotations

from pathlib import Path

from reports.pages.latex import latex_table
from reports.pages.page import find_results, render_page
from results.files import check_output, write_atomic


def build_pages(results: Path, output: Path) -> list[Path]:
    """Write `output`/index.html and `output`/PROFILE/PAPER/TABLE.tex and .md; returns what was
    written.

    Raises ResultsError if `results` holds no table or a damaged one.
    """
    tables = find_results(results)
    texts = {output / "index.html": render_page(tables)}
    for result in tables:
        place = output / result.profile / result.paper / result.name
        texts[place.with_name(f"{result.name}.tex")] = latex_table(
            result.sheet.layout, result.sheet.shown(result.lines)
        )
        if result.file("md").exists():
            texts[place.with_name(f"{result.name}.md")] = result.file("md").read_text(
                encoding="utf-8", errors="replace"
            )
    read = [result.file(suffix) for result in tables for suffix in ("csv", "md")]
    for path in texts:
        check_output(path, read)
    for path, text in texts.items():
        write_atomic(path, text)
    return list(texts)
