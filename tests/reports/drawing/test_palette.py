"""A method looks the same in every picture, and like no other of its table."""

from dataclasses import replace

import pytest

from fedtables.benchmarks.tables import registry
from fedtables.reports.drawing.palette import BOUND, SPARE, listed, looks_of
from fedtables.reports.tables.table import Layout
from tests.reports.drawn import layout

TABLES = [
    name
    for name, table in registry.all_tables().items()
    if table.measure not in ("selection", "transferability")
]
"""But those whose rows are no methods."""


def of_table(name) -> Layout:
    rows = registry.find_table(name)[1].rows
    return replace(
        layout(),
        rows={row.key: row.title for row in rows},
        methods={row.key: row.method for row in rows},
        own=rows[-1].key,
        oracles=frozenset(row.key for row in rows if row.upper_bound),
    )


@pytest.mark.parametrize("name", TABLES)
def test_no_two_rows_of_a_printed_table_look_the_same(name):
    shown = looks_of(of_table(name))
    assert len(set(shown.values())) == len(shown)
    methods = of_table(name).methods
    colours = {methods[row]: look.colour for row, look in shown.items() if row in methods}
    assert len(set(colours.values())) == len(colours)


def test_a_row_alone_of_its_method_has_its_methods_look_in_every_table():
    seen = {}
    for name in TABLES:
        shown = of_table(name)
        methods = list(shown.methods.values())
        for row, look in looks_of(shown).items():
            if methods.count(shown.methods[row]) == 1:
                seen.setdefault(shown.methods[row], set()).add(look.colour)
    assert {method: {listed()[method].colour} for method in seen} == seen


def test_further_rows_of_a_method_are_lighter_than_the_papers_own():
    one = replace(layout(), methods=dict.fromkeys("ab", "fedavg"), own="b")
    shown = looks_of(one)
    assert shown["b"] == listed()["fedavg"]
    # 0.35 of white over #117733: 0.35 * 255 + 0.65 * 17 = 100.3, and so on.
    assert shown["a"].colour == "#64a77a"
    assert shown["top"].hatch == BOUND


def test_a_method_that_is_not_listed_changes_no_other_and_keeps_its_look():
    plain = replace(layout(), rows={"a": "A"}, methods={"a": "fedavg"})
    added = replace(layout(), rows={"a": "A", "x": "X"}, methods={"a": "fedavg", "x": "mine"})
    assert looks_of(added)["a"] == looks_of(plain)["a"]
    alone = replace(layout(), rows={"y": "Y"}, methods={"y": "mine"})
    assert looks_of(alone)["y"] == looks_of(added)["x"]
    assert looks_of(added)["x"].colour in SPARE


def test_rows_that_an_axis_names_are_hatched_only_as_upper_bounds():
    one = replace(layout(), methods=dict.fromkeys(("a", "b", "top"), "fedprox"))
    assert listed()["fedprox"].hatch
    assert {row: look.hatch for row, look in looks_of(one, named=True).items()} == {
        "a": "",
        "b": "",
        "top": BOUND,
    }
