"""One Markdown page with all pictures of some folders of results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from reports.pages.measured import covered
from reports.pages.result_files import Result, find_results
from reports.tables.html import render

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
