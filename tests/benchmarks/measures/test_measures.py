"""Measures are found by their place; what one takes, and what it needs of a cell, is its own."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from fedtables.benchmarks.running.events import Context
from fedtables.benchmarks.running.execute import run_cell
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection, table_rows
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.results.arrays import unpack
from fedtables.results.record import OK, Measurement
from tests.benchmarks.measures import toy_measure
from tests.checkouts import copy_checkout


def test_a_measure_is_known_by_its_name_in_its_file():
    assert registry.measures()["final"] == "fedtables.benchmarks.measures.final"
    assert registry.measures()["pointing"] == "fedtables.benchmarks.measures.films"
    with pytest.raises(SpecError, match=r"unknown measure 'finale'; did you mean final\?"):
        registry.find_measure("finale")


# -- a toy --


@pytest.fixture
def cell(monkeypatch):
    """A cell of FedIOD's Table 1 whose measure is the toy."""
    module = "fedtables.tests.benchmarks.measures.toy_measure"
    monkeypatch.setitem(sys.modules, module, toy_measure)
    known = {**registry.measures(), "toy": module}
    monkeypatch.setattr(registry, "measures", lambda: known)
    only = {"row": "standalone", "dataset": "cifar10", "alpha": "1"}
    [plain] = expand(*registry.find_table("fediod/table1"), Selection(only=only))
    config = {**dict(plain.config), "local.epochs": 1}
    return replace(plain, measure="toy", config=tuple(config.items()))


def test_a_cell_has_what_its_measure_takes(cell, tmp_path):
    record, trace = run_cell(cell, Context(str(tmp_path / "stages")))
    assert record.status == OK, trace
    models = record.config["partition.clients"]
    assert record.measurements == (Measurement("models", models), Measurement("bytes", 0.0))
    assert record.statistic == "beside Standalone"
    assert unpack(record.arrays)["one"].tolist() == [1]
    assert record.stages["computed"] > 0


def test_what_needs_no_fit_fits_nothing(cell, tmp_path):
    unfitted = replace(cell, config=(*cell.config, ("toy.unfitted", True)))
    record, trace = run_cell(unfitted, Context(str(tmp_path / "stages")))
    assert record.status == OK, trace
    assert record.measurements[0] == Measurement("models", 0.0)
    assert record.stages == {"computed": 0, "reused": 0}


def test_a_measure_may_take_no_added_method(cell):
    _, table = registry.find_table("fediod/table1")
    toys = replace(table, measure="toy")
    with pytest.raises(SpecError, match="table1 counts, no method can be added to it"):
        table_rows(toys, Selection(add=("dlad",)))


# -- settings --


def names_of(table, row):
    paper_and_table = registry.find_table(table)
    return {
        name.split(".")[0]
        for cell in expand(*paper_and_table, Selection(only={"row": row}))
        for name, _ in cell.config
    }


def test_settings_of_a_measure_are_in_its_own_cells_alone():
    assert "attack" in names_of("fediod/figure4", "fedavg")
    assert "attack" not in names_of("fediod/table1", "fedavg")


def test_no_method_has_the_name_of_a_measures_settings(tmp_path):
    path = tmp_path / "attack.py"
    path.write_text("from fedtables.federation.method import Method\nclass Own(Method): ...\n")
    with pytest.raises(SpecError, match="a method cannot be called 'attack'"):
        with registry.used([path]):
            pass


# -- the code of a cell --

CODES = """
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
for name in ("dlad/table2", "fedad/figure3", "fedsa/table3"):
    print(expand(*registry.find_table(name), Selection())[-1].code)
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the source, to be edited."""
    return copy_checkout(tmp_path_factory.mktemp("checkout"))


def codes(checkout, *touched):
    """The digests of the cells' code, DLAD's, FedAD's and FedSA's, with a line more in each of the
    files `touched`.
    """
    before = {path: (checkout / path).read_text() for path in touched}
    for path, text in before.items():
        (checkout / path).write_text(f"{text}\nTOUCHED = True\n")
    done = subprocess.run(
        [sys.executable, "-c", CODES],
        env={**os.environ, "PYTHONPATH": str(checkout / "typings")},
        capture_output=True,
        text=True,
        check=False,
    )
    for path, text in before.items():
        (checkout / path).write_text(text)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_cells_code_is_that_of_its_method_measure_and_scenario_alone(checkout):
    dlad, fedad, fedsa = codes(checkout)
    others = ("benchmarks/papers/fedad.py", "reports/measures/final.py")
    assert codes(checkout, *others, "benchmarks/measures/sites.py") == [dlad, fedad, fedsa]
    changed = codes(checkout, "methods/fedad/algorithm.py", "benchmarks/measures/films.py")
    assert (changed[0], changed[2]) == (dlad, fedsa)
    assert changed[1] != fedad
    changed = codes(checkout, "methods/fedsa.py")  # Table 3 trains a transfer, and asks FedSA
    assert changed[:2] == [dlad, fedad]
    assert changed[2] != fedsa
