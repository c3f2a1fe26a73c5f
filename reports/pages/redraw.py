"""Draws the pictures of a folder of results again, and writes its Markdown, from its records."""

from __future__ import annotations

import tempfile
from pathlib import Path

from reports.kinds.kind import Regenerated, draw_table, find_kind
from reports.pages.result_files import Result, find_results
from results.files import check_output, write_atomic
from results.store import records_of


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
    sheet = result.sheet
    kind = find_kind(sheet.measure)
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "arrays.safetensors"
        arrays.write_bytes(kind.arrays(result.records) or b"")
        before = path.stat().st_mtime_ns if path.exists() else 0
        table = Regenerated(
            sheet.layout.plain() if plain else sheet.layout,
            records_of(result.lines),
            result.records,
            sheet.metrics or tuple(result.lines["metric"].unique()),
            sheet.clients,
            arrays,
        )
        draw_table(kind, table, path)
    return path.exists() and path.stat().st_mtime_ns != before
