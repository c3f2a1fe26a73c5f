"""One Markdown page with all pictures of some folders of results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from reports.pages.measured import covered
from reports.pages.result_files import Result, find_results
from reports.tables.markup import code, escaped

HEAD = """# Gallery

Every picture in the repository, each with a link to its numbers. This page is written by
`python -m reports gallery`, pictures by `reproduce` or, from records alone, by
`python -m reports draw`.

A picture is as wide as one column of a paper (3.5 inches) or two (7). A method has one colour in
all of them, and a marker and a hatch (`reports/drawing/palette.csv`); further rows of one method
are lighter; `///` is an upper bound. Whiskers are standard deviations over seeds, open diamonds
published numbers that were taken in the same way. The dashed line is what guessing gives. An AUC,
whose zero means nothing, is drawn from there; where another axis does not begin at zero, points
stand for bars."""
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
    parts = [HEAD, "", *covered(results)]
    for paper in dict.fromkeys(result.sheet.paper for result in results):
        parts += [f"## {paper}", ""]
        for result in results:
            if result.sheet.paper == paper:
                parts += _shown(result, page)
    if others:
        parts += ["## Others", ""]
    for path in others:
        parts += [f"![{path.stem}]({_link(path, page)})", ""]
    return "\n".join(parts)


def _shown(result: Result, page: Path) -> list[str]:
    sheet, seeds = result.sheet, {record.seed for record in result.records}
    layout = sheet.layout
    numbers = result.file("md" if result.file("md").exists() else "csv")
    title = escaped(f"{layout.title}. {layout.caption}")
    several = f", {len(seeds)} seeds" if len(seeds) > 1 else ""
    made = code(sheet.command) if sheet.command else ""
    return [
        f"### {layout.key} ({result.profile}{several})",
        "",
        f"[{title}]({_link(numbers, page)}). {made}".rstrip(),
        "",
        f"![{layout.key}]({_link(result.file('png'), page)})",
        "",
    ]


def _link(path: Path, page: Path) -> str:
    return Path(os.path.relpath(path.resolve(), page.resolve().parent)).as_posix()
