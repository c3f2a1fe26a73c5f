"""Specs agree with the published tables, and settings resolve by profile and column."""

import dataclasses

import pytest

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.spec import (
    PROFILES,
    Paper,
    Row,
    Setting,
    SpecError,
    Table,
    pick,
)
from fedtables.reports.tables.claims import Outcome, judge_expectation
from fedtables.reports.tables.predicates import Value, parse
from fedtables.results.published import claims, format_column, papers, parse_column, published_table

DASH_OF_TABLE_7 = {"train": "each", "test": "all", "modality": "all"}
"""FedAD's Standalone sends nothing: a dash in a column of its own."""
TABLES = [(paper, table) for paper in registry.papers().values() for table in paper.tables]


def printed_columns(table, cells):
    """Columns of published cells, each once, without keys of measurements, of which a cell of ours
    yields several.
    """
    own = {key for column in table.columns for key in column}
    pairs = (
        {key: value for key, value in parse_column(cell.column).items() if key in own}
        for cell in cells
    )
    return list(dict.fromkeys(format_column(column) for column in pairs))


@pytest.mark.parametrize(("paper", "table"), TABLES, ids=lambda value: value.key)
def test_rows_and_columns_are_those_of_the_published_table(paper, table):
    cells = published_table(f"{paper.key}/{table.key}")
    if not cells:
        assert (
            table.key.startswith("figure") or paper.expectations(table) or paper.key not in papers()
        )
        return
    made = {format_column(dict(rule.column)) for rule in table.derived}
    ours, printed = (
        [dict(column) for column in table.columns],
        [parse_column(column) for column in printed_columns(table, cells) if column not in made],
    )
    if table.key == "table7" and paper.key == "fedad":
        printed.remove(DASH_OF_TABLE_7)
    assert {format_column(column) for column in ours} == {
        format_column(column) for column in printed
    }
    for keys in {
        frozenset(column) for column in ours
    }:  # a cell that spans a block may stand before or behind it
        assert [c for c in ours if c.keys() == keys] == [c for c in printed if c.keys() == keys]
    assert [row.key for row in table.rows] == list(dict.fromkeys(c.row for c in cells))


@pytest.mark.parametrize(("paper", "table"), TABLES, ids=lambda value: value.key)
@pytest.mark.parametrize("profile", PROFILES)
def test_a_cell_exists_exactly_where_the_paper_prints_a_number(paper, table, profile):
    cells = [cell for cell in published_table(f"{paper.key}/{table.key}") if cell.value is not None]
    printed = {(c.row, column) for c in cells for column in printed_columns(table, [c])}
    ours = {
        (row.key, format_column(dict(column)))
        for column in table.columns
        for row in table.rows
        if row.applies(paper.config(table, row, column, profile, "paper"), column)
    }
    for rule in table.derived:  # printed for the rows that have all its parts
        parts = {format_column(dict(keys)) for keys in rule.of}
        column = format_column(dict(rule.column))
        rows = {row.key for row in table.rows if all((row.key, part) in ours for part in parts)}
        ours |= {(row, column) for row in rows if "centralized" not in row or not rule.alone}
    assert ours == printed or not printed


@pytest.mark.parametrize(("paper", "table"), TABLES, ids=lambda value: value.key)
def test_upper_bounds_are_the_rows_whose_method_declares_an_oracle(paper, table):
    for row in (*table.rows, *table.offered):
        assert row.upper_bound == bool(registry.find_method(row.method).load().oracle), row.key


@pytest.mark.parametrize(("paper", "table"), TABLES, ids=lambda value: value.key)
def test_the_papers_own_row_is_one_of_the_tables_and_no_bound(paper, table):
    if table.own:
        assert [row.upper_bound for row in table.rows if row.key == table.own] == [False]


def test_every_reduced_value_is_told_from_the_papers():
    setting = Setting("local.epochs", 50, "paper", "V-B", cpu=5, gpu=7, released=60)
    values = {profile: setting.value(profile, "paper") for profile in PROFILES}
    assert values == {"smoke": 50, "cpu": 5, "gpu": 7, "paper": 50}
    assert (setting.value("paper", "released"), setting.value("cpu", "released")) == (60, 5)
    assert [setting.is_reduced(profile) for profile in PROFILES] == [False, True, True, False]


VALUE = {"method=fedavg|fedprox dataset=cifar10": 1, "method=fedavg|fedprox": 2, "row=x|y": 3}


@pytest.mark.parametrize(
    ("column", "picked"),
    [
        ({"method": "fedprox", "dataset": "cifar10"}, 1),
        ({"method": "fedavg", "dataset": "cifar100"}, 2),
        ({"method": "fedkd", "row": "y"}, 3),
        ({"method": "fedavgm", "row": "fedkd"}, 4),
        ({"method": "fedavg|fedprox"}, 4),
        ({}, 4),
    ],
)
def test_a_value_per_column_takes_the_first_entry_all_of_whose_pairs_fit(column, picked):
    assert pick({**VALUE, "": 4}, column) == picked
    if picked == 4:
        with pytest.raises(SpecError, match="no entry"):
            pick(VALUE, column)


FEDIOD = registry.papers()["fediod"]


@pytest.mark.parametrize(
    "table",
    [t for t in FEDIOD.tables if t.key in ("table6", "table7")],
    ids=lambda table: table.key,
)
@pytest.mark.parametrize("profile", PROFILES)
def test_no_two_rows_of_an_ablation_are_the_same_run(table, profile):
    rows = (*table.rows, *table.offered)
    configs = {
        tuple(sorted(FEDIOD.config(table, row, table.columns[0], profile, "paper").items()))
        for row in rows
    }
    assert len(configs) == len(rows)


WITH_EXPECTATIONS = [(paper, table) for paper, table in TABLES if paper.expectations(table)]


@pytest.mark.parametrize(("paper", "table"), WITH_EXPECTATIONS, ids=lambda value: value.key)
def test_a_trial_says_what_it_expects_of_which_claims_in_cells_that_it_has(paper, table):
    known = {claim.id for claim in claims(paper.key)}
    cells = {
        (row.key, format_column(column))
        for row in table.rows
        for column in table.columns
        if row.applies(paper.config(table, row, column, "cpu", "paper"), column)
    }
    values = [
        Value(row, parse_column(column), metric, 50.0)
        for row, column in cells
        for metric in table.metrics
    ]
    ids = [expected.id for expected in paper.expectations(table)]
    assert len(ids) == len(set(ids))
    for expected in paper.expectations(table):
        assert expected.claims
        assert set(expected.claims) <= known
        judged = judge_expectation(expected.predicate, paper.key, table.key, {table.key: values})
        compared = [
            bindings
            for clause in parse(expected.predicate)
            for bindings in clause.combinations({table.key: values}, table.key)
        ]
        assert judged.outcomes.total() == len(compared) > 0
        assert not judged.count(Outcome.MISSING)


def test_a_tables_own_settings_replace_the_papers_of_the_same_names():
    table = Table(
        "table1",
        "",
        (Row("mine", "fedavg", "Mine"),),
        ({"dataset": "mnist"},),
        {"dataset": "data.name"},
        settings=(
            Setting("local.lr", 0.5, "paper", "its own"),
            Setting("local.momentum", 0.9, "paper", "its own"),
        ),
    )
    other = dataclasses.replace(table, key="table2", settings=())
    both = (Setting("local.lr", 0.1, "paper", ""), Setting("local.epochs", 3, "paper", ""))
    paper = Paper("key", "Title", "", both, (table, other), released_code=False, seed_axes=())

    def resolved(of):
        return paper.config(of, of.rows[0], {"dataset": "mnist"}, "paper", "paper")

    assert resolved(table) == {
        "data.name": "mnist",
        "local.lr": 0.5,
        "local.momentum": 0.9,
        "local.epochs": 3,
    }
    assert resolved(other) == {"data.name": "mnist", "local.lr": 0.1, "local.epochs": 3}
    names = [setting.name for setting in paper.settings_of(table)]
    assert names == ["local.lr", "local.momentum", "local.epochs"]
    assert len(paper.every_setting) == 4


def test_a_table_has_the_notes_on_all_tables_and_its_own(tmp_path, monkeypatch):
    text = "# Notes\n\n- On\n  all.\n\n## table1, table2\n\n- On two.\n\n## table2\n\n- On one.\n"
    (tmp_path / "key.md").write_text(text)
    monkeypatch.setattr("fedtables.benchmarks.tables.spec.PAPERS", tmp_path)
    paper = Paper("key", "Title", "", (), (), released_code=False, seed_axes=())
    _, other = TABLES[0]
    of = {key: dataclasses.replace(other, key=key) for key in ("table1", "table2.sweep", "table3")}
    assert paper.notes_on(of["table1"]) == ("On all.", "On two.")
    assert paper.notes_on(of["table2.sweep"]) == ("On all.", "On two.", "On one.")
    assert paper.notes_on(of["table3"]) == ("On all.",)


@pytest.mark.parametrize("paper", registry.papers().values(), ids=lambda paper: paper.key)
def test_notes_are_on_tables_that_the_paper_has(paper):
    keys = {key for heading in paper.notes for key in heading.split(", ")}
    assert keys <= {"", *(table.key for table in paper.tables)}


def test_an_unknown_source_of_a_value_is_refused():
    with pytest.raises(ValueError, match="source must be one of"):
        Setting("x", 1, "hearsay", "")
