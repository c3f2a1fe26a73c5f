"""Sweeps: the derived table, and what the command leaves."""

import csv
import json
import shlex

import pytest

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.benchmarks.tables.sweep import parse_epsilons, swept


def test_epsilons_are_sorted_texts():
    assert parse_epsilons("10, 1,3.50") == ("1", "3.5", "10")


@pytest.mark.parametrize("text", ["", "1,,2", "one", "1,1.0", "-1", "0", "inf", "nan"])
def test_what_is_no_list_of_budgets_is_refused(text):
    with pytest.raises(SpecError, match="different positive numbers"):
        parse_epsilons(text)


def test_every_column_is_repeated_for_every_budget_and_without_one():
    paper, table = registry.find_table("fediod/table1")
    derived, left_out = swept(paper, table, Selection(), ("1", "3"))
    assert [dict(column) for column in derived.columns][:3] == [
        {"dataset": "cifar10", "alpha": "1", "epsilon": epsilon} for epsilon in ("1", "3", "inf")
    ]
    assert len(derived.columns) == 3 * len(table.columns)
    assert (derived.key, derived.x_axis) == ("table1.sweep", "epsilon")
    assert [row.key for row in left_out] == ["fedgen"]
    configs = [dict(cell.config) for cell in expand(paper, derived, Selection())]
    assert {config["privacy.epsilon"] for config in configs} == {1, 3, float("inf")}


def test_a_table_of_methods_without_a_private_form_is_refused():
    paper, table = registry.find_table("dlad/table2")
    with pytest.raises(SpecError, match="no method of table2 has a private form"):
        swept(paper, table, Selection(drop=tuple(row.key for row in table.rows[:-1])), ("1",))


def test_a_sweep_leaves_csv_records_and_a_picture(tmp_path, shared_command):
    done = shared_command(
        *shlex.split("sweep fediod/table1 --epsilon 50 --only row=standalone,fedavg"),
        *shlex.split("--only dataset=cifar10 --only alpha=1 --methods +centralized --results"),
        str(tmp_path),
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert "left out FedGEN" not in done.stdout  # it has no private form, but was not asked for
    assert "Centralized is left out" in done.stdout
    with (tmp_path / "smoke" / "fediod" / "table1.sweep.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    spent = {(line["row"], line["column"].rpartition("=")[2]): line["epsilon"] for line in lines}
    assert set(spent) == {
        (row, epsilon) for row in ("standalone", "fedavg") for epsilon in ("50", "inf")
    }
    for (_, target), epsilon in spent.items():
        assert (
            epsilon == ""
            if target == "inf"
            else 0.97 * float(target) < float(epsilon) <= float(target)
        )
    text = (tmp_path / "smoke" / "fediod" / "table1.sweep.records.jsonl").read_text()
    [private] = [
        record
        for record in map(json.loads, text.splitlines())
        if record["row"] == "standalone" and record["epsilon"] is not None
    ]
    assert private["privacy"]["mechanism"] == "dp-sgd"
    assert {"adjacency", "sampling", "composition", "accountant", "releases", "budget"} <= set(
        private["privacy"]
    )
    assert (tmp_path / "smoke" / "fediod" / "table1.sweep.png").stat().st_size > 10_000


def test_private_columns_of_a_sweep_have_the_settings_of_the_tables_own():
    paper, table = registry.find_table("fediod/table5")
    derived, _ = swept(paper, table, Selection(), ("10",))
    own, other = (
        {
            (cell.row, cell.column): dict(cell.config)
            for cell in expand(paper, t, Selection(profile="cpu"))
        }
        for t in (table, derived)
    )
    assert own["fediod", "epsilon=10.0 dp=yes"] == other["fediod", "epsilon=10"]
    assert own["fediod", "epsilon=10.0 dp=yes"]["fediod.epochs"] == 2
    assert (
        other["fediod", "epsilon=inf"]["fediod.epochs"]
        == own["fediod", "epsilon=10.0 dp=no"]["fediod.epochs"]
        == 16
    )
