"""Draws the pictures of a folder of results again, and writes its Markdown, from its records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reports.kinds.kind import draw_table, find_kind
from reports.pages.result_files import Result, find_results
from results.files import check_output, write_atomic


def redraw_results(results: Path, output: Path | None = None, plain: bool = False) -> list[Path]:
    """Draw every table under `results`, into the same place or under `output`; returns the PNGs.

    In its place the Markdown is written again too. `plain` leaves out title and provenance. Raises
    ResultsError if there is no table, or a damaged one, and before a picture in `output` would take
    the place of a table's file.
    """
    drawn = []
    tables = find_results(results)
    for result in tables if output is not None else ():
        for suffix in ("png", "svg", "pdf"):
            check_output(_picture(output, result).with_suffix(f".{suffix}"))
    for result in tables:
        path = _picture(output, result)
        path.parent.mkdir(parents=True, exist_ok=True)
        if draw_result(result, path, plain):
            drawn.append(path)
        if output is None and result.sheet.command:
            page = result.sheet.markdown(result.lines, result.claims, result.records)
            write_atomic(result.file("md"), page)
    return drawn


def _picture(output: Path | None, result: Result) -> Path:
    """Where a table's PNG belongs: beside the table, or in its folder of `output`."""
    path = result.file("png")
    return path if output is None else output / result.profile / result.paper / path.name


def draw_result(result: Result, path: Path, plain: bool) -> bool:
    """Draw one table into the PNG `path`; whether it has anything to draw."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    table = result.shown
    if plain:
        table = replace(table, layout=table.layout.plain())
    draw_table(find_kind(result.sheet.measure), table, path)
    return path.exists() and path.stat().st_mtime_ns != before
