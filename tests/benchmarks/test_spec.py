"""Specs agree with the published tables, and settings resolve by profile and column."""

from __future__ import annotations

import pytest

from benchmarks import registry
from benchmarks.spec import Setting, SpecError, grid, pick
from results.published import format_column, published_table

TABLES = [(paper, table) for paper in registry.papers().values() for table in paper.tables]


@pytest.mark.parametrize(("paper", "table"), TABLES, ids=lambda value: value.key)
def test_rows_and_columns_are_those_of_the_published_table(paper, table):
    cells = published_table(f"{paper.key}/{table.key}")
    if not cells:
        assert table.key.startswith("figure")
        return
    assert [format_column(dict(c)) for c in table.columns] == list(dict.fromkeys(c.column for c in cells))
    assert [row.key for row in table.rows] == list(dict.fromkeys(c.row for c in cells))


@pytest.mark.parametrize(("paper", "table"), TABLES, ids=lambda value: value.key)
@pytest.mark.parametrize("profile", ["smoke", "cpu", "paper"])
def test_a_cell_exists_exactly_where_the_paper_prints_a_number(paper, table, profile):
    printed = {(c.row, c.column) for c in published_table(f"{paper.key}/{table.key}") if c.value is not None}
    ours = {
        (row.key, format_column(dict(column)))
        for column in table.columns
        for row in table.rows
        if row.applies(paper.config(table, row, column, profile, "paper"))
    }
    assert ours == printed or not printed


@pytest.mark.parametrize(("paper", "table"), TABLES, ids=lambda value: value.key)
def test_upper_bounds_are_the_rows_whose_method_declares_an_oracle(paper, table):
    for row in table.rows:
        assert row.upper_bound == bool(registry.find_method(row.method).load().oracle), row.key


def test_the_papers_own_values_are_those_of_its_text():
    paper = registry.papers()["dlad"]
    table = next(t for t in paper.tables if t.key == "table2")
    mnist, cinic = table.columns[0], table.columns[-1]
    config = paper.config(table, table.rows[-1], mnist, "paper", "paper")
    assert (config["local.epochs"], config["dlad.classifier_epochs"], config["server.epochs"]) == (50, 20, 100)
    assert (config["local.lr"], config["local.batch_size"], config["dlad.temperature"]) == (1e-3, 250, 0.05)
    assert config["partition.clients"] == 10
    other = paper.config(table, table.rows[-1], cinic, "paper", "paper")
    assert round(other["partition.client_share"] * 90_000) == 20_000
    assert other["partition.public_split"] == "valid"


def test_every_reduced_value_is_told_from_the_papers():
    setting = Setting("local.epochs", 50, "paper", "V-B", cpu=5)
    assert setting.value("cpu", "paper") == 5
    assert setting.value("smoke", "paper") == setting.value("paper", "paper") == 50
    assert setting.is_reduced("cpu")
    assert not setting.is_reduced("smoke")


def test_released_values_hold_only_under_that_protocol():
    setting = Setting("temperature", 1.0, "paper", "Eq. 3", released=10001.0)
    assert setting.value("paper", "paper") == 1.0
    assert setting.value("paper", "released") == 10001.0


def test_a_value_per_column_takes_the_first_entry_that_fits():
    value = {"dataset=mnist": 1, "dataset=cifar10 alpha=1": 2, "": 3}
    assert pick(value, {"dataset": "mnist"}) == 1
    assert pick(value, {"dataset": "cifar10", "alpha": "1"}) == 2
    assert pick(value, {"dataset": "cifar10", "alpha": "0.1"}) == 3
    with pytest.raises(SpecError, match="no entry"):
        pick({"dataset=mnist": 1}, {"dataset": "cifar10"})


def test_an_unknown_source_of_a_value_is_refused():
    with pytest.raises(ValueError, match="source must be one of"):
        Setting("x", 1, "hearsay", "")


def test_a_grid_varies_its_last_key_fastest():
    assert grid(a=("1", "2"), b=("x", "y")) == (
        {"a": "1", "b": "x"}, {"a": "1", "b": "y"}, {"a": "2", "b": "x"}, {"a": "2", "b": "y"},
    )  # fmt: skip
