"""All rows of a table with a budget learn from as many samples, by whatever length they have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedtables.benchmarks.running.budget import within_budget
from fedtables.benchmarks.running.follow import Follower
from fedtables.benchmarks.running.plan import make_plan
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.results.record import BUDGET, OK
from fedtables.results.sourcecode import ROOT
from fedtables.results.store import read_records

LEAGUE = [
    f"{key}/{table.key}"
    for key, paper in registry.papers().items()
    if any(setting.name == BUDGET for setting in paper.settings)
    for table in paper.tables
    if (table.measure == "scorecard" or "epsilon" in table.axes) and not table.preparatory
]
RECORDS = ROOT / "results" / "cpu"
COMPUTED = [name for name in LEAGUE if (RECORDS / f"{name}.records.jsonl").exists()]


def distributions(name):
    """Those of a table's columns, each once."""
    columns = registry.find_table(name)[1].columns
    return list(dict.fromkeys(column["distribution"] for column in columns))


PLANNED = [(name, distribution) for name in LEAGUE for distribution in distributions(name)]
ONE_OF_EACH_LENGTH = "fedavg,dlad,fediod,fedmd"
"""Rows whose lengths are rounds, epochs of the server's and their own, and of the clients'."""


def learning(first, each, name="m.rounds"):
    """A method that learns from `first` samples, and from `each` in every round or epoch."""
    return lambda config: first + each * config.get(name, 0)


def test_rounds_that_draw_their_clients_are_counted_until_they_fit():
    # Odd rounds have clients with 100 samples, even ones with 20.
    def seen(config):
        return sum(100 if number % 2 else 20 for number in range(1, config["m.rounds"] + 1))

    assert within_budget({BUDGET: 600, "m.rounds": 1}, "m", seen) == {"m.rounds": 10}
    (rounds,) = within_budget({BUDGET: 700, "m.rounds": 1}, "m", seen).values()
    assert abs(seen({"m.rounds": rounds}) - 700) <= 30  # half a round, on the mean


def test_the_first_length_that_lengthens_a_method_is_taken():
    config = {BUDGET: 300, "m.epochs": 4, "server.epochs": 4, "local.epochs": 4}
    assert within_budget(config, "m", learning(0, 100, "m.epochs")) == {"m.epochs": 3}
    assert within_budget(config, "m", learning(0, 100, "server.epochs")) == {"server.epochs": 3}
    assert within_budget(config, "m", learning(0, 100, "local.epochs")) == {"local.epochs": 3}


@pytest.mark.parametrize(
    ("each", "message"),
    [
        (100, r"=150 is less than .* takes, 200 with m.rounds=1"),
        (0, r"cannot set how long m runs: none of m\.rounds"),
    ],
)
def test_a_budget_that_nothing_fits_into_or_nothing_lengthens_is_refused(each, message):
    with pytest.raises(SpecError, match=message):
        within_budget({BUDGET: 150, "m.rounds": 2}, "m", learning(100, each))


@given(st.integers(0, 1_000), st.integers(1, 100), st.integers(0, 10_000))
def test_no_other_length_comes_closer(first, each, above):
    seen, budget = learning(first, each), first + each + above
    (rounds,) = within_budget({BUDGET: budget, "m.rounds": 1}, "m", seen).values()
    apart = [abs(seen({"m.rounds": n}) - budget) for n in (max(1, rounds - 1), rounds, rounds + 1)]
    assert rounds >= 1
    assert min(apart) == apart[1]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "distribution"), PLANNED)
def test_rows_of_a_condition_learn_from_as_many_samples_within_two_percent(name, distribution):
    table = registry.find_table(name)[1]
    only = {"distribution": distribution}
    if "epsilon" in table.axes:
        only["epsilon"] = "4,inf"  # any budget of privacy has as many steps
    assert rows_within_two_percent(name, only) == {row.key for row in table.rows}


def test_rows_of_every_length_learn_from_as_many_samples_within_two_percent():
    only = {"distribution": distributions("league/mnist")[-1], "row": ONE_OF_EACH_LENGTH}
    assert rows_within_two_percent("league/mnist", only) == set(ONE_OF_EACH_LENGTH.split(","))


def rows_within_two_percent(name, only):
    """The rows of which this holds under `cpu`; the budget of smoke is a few rounds."""
    cells = expand(*registry.find_table(name), Selection(profile="cpu", only=only))
    follower = Follower()
    for cell in cells:
        budget = dict(cell.config)[BUDGET]
        samples = make_plan([cell], follower).work.training_samples
        assert samples == pytest.approx(budget, rel=0.02), (cell.row, cell.column)
    return {cell.row for cell in cells}


@pytest.mark.parametrize("name", COMPUTED)
def test_rows_that_were_computed_learnt_from_as_many_samples_within_two_percent(name):
    ran = [r for r in read_records(RECORDS / f"{name}.records.jsonl") if r.status == OK]
    over = {
        (r.row, r.column, r.seed): (r.local_samples + r.server_samples) / r.config[BUDGET] - 1
        for r in ran
    }
    assert over
    assert {place: share for place, share in over.items() if abs(share) > 0.02} == {}
