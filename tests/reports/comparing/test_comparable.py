"""What is never compared, and what may differ between two machines."""

import math
from dataclasses import replace

import pytest

from fedtables.metrics.names import facts
from fedtables.reports.comparing.comparable import run_noise, same_machine, spread
from fedtables.reports.comparing.compare import compare_results
from fedtables.reports.comparing.rule import Rule
from fedtables.reports.tables.resultset import ResultSet, read_pair
from fedtables.results.files import ResultsError
from fedtables.results.record import Record
from tests.reports.comparing.sets import (
    differences,
    line,
    measured,
    record,
    result_set,
    verdicts,
    with_records,
)


@pytest.mark.parametrize(
    "name", ["profile", "protocol", "data", "origin", "public", "public_origin"]
)
def test_sets_of_different_kind_are_never_compared(tmp_path, name):
    # Of a whole table, though no cell is in common.
    row = "b" if name in ("profile", "protocol") else "a"
    base, new = (
        result_set(tmp_path, "a", line()),
        result_set(tmp_path, "b", line(**{"row": row, name: "other"})),
    )
    with pytest.raises(ResultsError, match=f"{name} is .* not comparable"):
        verdicts(base, new)


@pytest.mark.parametrize("kind", ["data", "public"])
def test_data_of_another_digest_are_never_compared(tmp_path, kind):
    base, new = (
        with_records(tmp_path, name, record(**{kind: {"digest": d}}))
        for name, d in (("a", "1"), ("b", "2"))
    )
    with pytest.raises(
        ResultsError, match=r"t a n=1: digest of .*data is '1' and '2'; these are not comparable"
    ):
        differences(base, new)


def test_records_of_another_table_are_never_compared(tmp_path):
    base, new = (
        with_records(tmp_path, "a", record()),
        with_records(tmp_path, "b", record(table="p/u")),
    )
    with pytest.raises(ResultsError, match="table is 'p/t' and 'p/u'"):
        compare_results(*read_pair(base / "t.csv", new / "t.csv"), Rule())


MACHINE = {"hardware": "A", "kernels": "AVX512", "packages": {"torch": "2"}, "threads": 1}
RECORD = measured(50.0, test_samples=100, machine=MACHINE)
KEY = ("t", "a", "n=1", "accuracy")


def on(**machine) -> Record:
    return replace(RECORD, machine={**MACHINE, **machine})


def results(*records, value=50.0, unit="percent") -> ResultSet:
    return ResultSet({KEY: {"value": value, "unit": unit}}, {"t": records})


@pytest.mark.parametrize(
    "other", [{"hardware": "B"}, {"kernels": "B"}, {"threads": 2}, {"packages": {"torch": "3"}}]
)
def test_another_machine_is_one_that_the_records_name_otherwise(other):
    assert same_machine(RECORD, on())
    assert not same_machine(RECORD, on(**other))


def test_packages_that_one_record_alone_names_are_not_compared():
    assert same_machine(on(packages={"torch": "2", "matplotlib": "3"}), on())
    assert same_machine(on(), on(packages={"torch": "2", "nibabel": "5"}))


def test_an_older_record_names_fewer_entries_and_those_are_compared():
    older = {name: value for name, value in MACHINE.items() if name != "kernels"}
    assert same_machine(replace(RECORD, machine=older), RECORD)
    assert not same_machine(replace(RECORD, machine=older), on(hardware="B"))


def test_a_share_of_test_samples_has_the_binomial_error_and_that_of_rounding():
    """sqrt(0.5 x 0.5 / 100) = 0.05: 5 %."""
    rounding = facts("accuracy").rounding
    assert 0 < rounding < 0.05
    assert spread("accuracy", "percent", (50.0, 50.0), 100) == pytest.approx(
        100 * math.hypot(0.05, rounding)
    )
    assert spread("accuracy", "fraction", (0.2, 0.8), 100) == pytest.approx(
        math.hypot(0.05, rounding)
    )
    assert spread("accuracy", "fraction", (0.5, 0.5), 0) == rounding
    assert spread("accuracy", "fraction", (1.0, 1.0), 100) == rounding


def test_other_metrics_have_the_spread_of_rounding():
    assert spread("psnr", "", (70.0, 80.0), 100) == 50 * facts("psnr").rounding
    assert spread("fid", "", (640.0, 2.0), 100) == 2 * facts("fid").rounding
    assert spread("bandwidth-gb", "", (1.0, 2.0), 100) == 0  # counted


def test_a_cell_of_another_machine_has_noise_and_one_of_the_same_has_none():
    same, other = results(RECORD), results(on(hardware="B"))
    assert run_noise(KEY, same, same) == 0
    assert run_noise(KEY, same, other) == spread("accuracy", "percent", (50.0, 50.0), 100)
    assert run_noise(KEY, same, results()) == 0  # without records nothing is known of the machine
