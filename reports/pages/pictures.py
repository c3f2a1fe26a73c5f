"""The pictures of folders of results: drawn again from records, and all in one Markdown page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from reports.measures.kind import draw_table
from reports.pages.measured import covered
from reports.pages.result_files import Result, find_results
from reports.tables.markup import render
from results.files import check_output, write_atomic

SKIPPED = "smoke"
"""The profile whose tables prove that they run, and show nothing."""


def shown_results(folders: Iterable[Path]) -> list[Result]:
    """The tables of some folders that have a picture. Raises ResultsError for one that has no
    table.
    """
    return [
        result
        for folder in folders
        for result in find_results(folder)
        if result.profile != SKIPPED and result.file("png").exists()
    ]


def gallery_page(results: Sequence[Result], others: Sequence[Path], page: Path) -> str:
    """The text of `page`: what is measured, the pictures of tables by paper, then `others`. Links
    are relative.
    """

    def link(path: Path) -> str:
        return Path(os.path.relpath(path.resolve(), page.resolve().parent)).as_posix()

    told = "\n".join(covered(results))
    return render("gallery.md.jinja", {"link": link}, covered=told, results=results, others=others)


def redraw_results(results: Path, output: Path | None = None, plain: bool = False) -> list[Path]:
    """Draw every table under `results`, into the same place or under `output`; returns the PNGs.

    In its place the Markdown is written again too. `plain` leaves out title and provenance. Raises
    ResultsError if there is no table, or a damaged one, and before a picture in `output` would take
    the place of a table's file.
    """
    tables = find_results(results)
    places = {}
    for result in tables:
        path = result.file("png")
        if output is not None:
            path = output / result.profile / result.paper / path.name
            for suffix in ("png", "svg", "pdf"):
                check_output(path.with_suffix(f".{suffix}"))
        places[path] = result
    drawn = []
    for path, result in places.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.stat().st_mtime_ns if path.exists() else 0
        table = result.shown
        table = replace(table, layout=table.layout.plain()) if plain else table
        draw_table(result.sheet.measure, table, path)
        # A table without numbers has no picture.
        drawn += [path] if path.exists() and path.stat().st_mtime_ns != before else []
        if output is None and result.sheet.command:
            page = result.sheet.markdown(result.lines, result.claims, result.records)
            write_atomic(result.file("md"), page)
    return drawn
