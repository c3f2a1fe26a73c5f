"""A measure is shown as the file of its name says, and as plain numbers without one."""

import sys
from types import SimpleNamespace

import pytest

from fedtables.reports.drawing import plots
from fedtables.reports.measures import kind
from fedtables.reports.measures.final import Bandwidth
from fedtables.reports.measures.kind import Kind, find_kind
from fedtables.reports.pages.sheet import Sheet
from tests.reports.drawn import layout, line, table_of

LINES = table_of([line("a", "epoch=1", "0.25"), line("a", "epoch=2", "0.5")])


def test_a_kind_has_the_name_of_its_measure():
    assert isinstance(find_kind("bandwidth"), Bandwidth)
    assert find_kind("samples").statistic


@pytest.mark.parametrize("measure", ["final", "a-measure-of-later", "kind", ""])
def test_any_other_measure_is_shown_as_plain_numbers(measure, tmp_path, monkeypatch):
    plain, drawn = find_kind(measure), []
    assert type(plain) is Kind
    assert plain.shown(LINES) is LINES
    assert plain.completed(["a record"], ("accuracy",)) == ["a record"]
    assert plain.judged(["a record"], ("accuracy",), "percent") == (["a record"], "")
    assert plain.unlike(["a record"]) == {}
    monkeypatch.setattr(plots, "table_plot", lambda *shown: drawn.append(shown))
    plain.draw("a table", tmp_path / "t.png")
    assert drawn == [("a table", tmp_path / "t.png")]


def test_a_curve_is_shown_by_where_it_ends():
    shown = Sheet(layout(), "A paper", "", "curve").shown(LINES)
    assert shown[["column", "value"]].values.tolist() == [["", 0.5]]


class Toy(Kind):
    """Doubles what it shows."""

    def shown(self, lines):
        return lines.assign(value=[2 * value for value in lines["value"]])


def test_a_file_in_the_folder_is_all_that_a_new_kind_takes(monkeypatch):
    toys = SimpleNamespace(MEASURES={"toy-measure": Toy()})
    monkeypatch.setattr(kind, "folder_modules", lambda folder: [f"{folder}.toys"])
    monkeypatch.setitem(sys.modules, "fedtables.reports.measures.toys", toys)
    monkeypatch.setattr(kind, "_kinds", kind._kinds.__wrapped__)
    shown = Sheet(layout(), "A paper", "", "toy-measure").shown(LINES)
    assert shown["value"].tolist() == [0.5, 1.0]
