"""Texts of somebody else, wherever a reader meets them."""

import re
from dataclasses import replace

import pytest
from rich.console import Console

from fedtables.reports.pages.build import build_pages, redraw_results
from fedtables.reports.pages.sheet import Sheet
from fedtables.reports.tables.terminal import terminal_tables
from fedtables.results.store import read_csv
from tests.reports.written_results import ROWS, write_results

NASTY = "Mine\x1b[31m\x07\u202e \x9b2J\nend"


@pytest.fixture
def files(tmp_path):
    """A table one of whose rows has such a title, as a plug-in may give it."""
    files = write_results(tmp_path)
    path = files.path("layout.json")
    sheet = Sheet.read(path)
    layout = replace(sheet.layout, rows={**ROWS, "global-dlad": NASTY})
    replace(sheet, layout=layout, command="c", metrics=("accuracy",)).write(path)
    return files


def test_no_control_character_of_a_title_is_in_a_file_or_on_the_terminal(tmp_path, files):
    redraw_results(tmp_path)
    written = [*build_pages(tmp_path, tmp_path / "page"), files.path("md"), files.path("svg")]
    texts = {path: path.read_text() for path in written if path.suffix not in (".png", ".pdf")}
    console = Console(record=True, width=200, force_terminal=False)
    layout = Sheet.read(files.path("layout.json")).layout
    for table in terminal_tables(layout, read_csv(files.path("csv"))):
        console.print(table)
    texts[tmp_path / "terminal"] = console.export_text()
    assert {path.suffix for path in texts} >= {".html", ".tex", ".md", ".svg", ".csv", ""}
    for path, text in texts.items():
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text), path
    assert "Mine[31m 2J end" in texts[tmp_path / "terminal"]
