"""The rule of the regression report."""

import json

import pytest

from fedtables.reports.comparing.rule import MOVED
from fedtables.reports.tables.resultset import read_set
from fedtables.results.files import ResultsError
from fedtables.results.store import CSV_COLUMNS, records_of, summarise, write_csv
from tests.reports.comparing.sets import (
    RUN,
    differences,
    line,
    measured,
    result_set,
    verdicts,
    written,
)

SEEDS = {"std": "0.01", "n": "3", "seeds": "0 1 2"}
FEW_MOVE = {"n": "3", "seeds": "0 1 2", "std": "0.0"}


@pytest.mark.parametrize(
    ("base", "new", "verdict"),
    [
        ({}, {}, "same"),
        ({}, {"value": "0.885"}, MOVED),
        ({}, {"value": "0.87"}, "worse"),
        ({}, {"value": "0.95"}, "better"),
        ({}, {"bytes_up": "11"}, "changed"),
        ({}, {"epsilon": "3.1"}, "changed"),
        ({}, {"value": "nan"}, "worse"),
        ({"value": "nan"}, {"value": "nan"}, "same"),
        ({"value": "inf"}, {"value": "0.9"}, "better"),
        # One seed, or seeds that move nothing: by tolerance. Several: by a test.
        (FEW_MOVE, {**FEW_MOVE, "value": "0.8"}, "worse"),
        (FEW_MOVE, {**FEW_MOVE, "value": "0.89"}, MOVED),
        ({**SEEDS, "std": "0.001"}, {**SEEDS, "std": "0.001", "value": "0.89"}, "worse"),
        ({**SEEDS, "std": "0.001"}, {**SEEDS, "std": "0.05", "value": "0.85"}, "undecided"),
        ({**SEEDS, "std": "0.0001"}, {**SEEDS, "std": "0.0001", "value": "0.95"}, "better"),
        # Significant, and less than the smallest effect.
        ({**SEEDS, "std": "0.0001"}, {**SEEDS, "std": "0.0001", "value": "0.899"}, MOVED),
    ],
)
def test_a_cell_is_judged_by_tolerance_or_test_and_bytes_exactly(tmp_path, base, new, verdict):
    sets = (result_set(tmp_path, name, line(**of)) for name, of in (("a", base), ("b", new)))
    assert verdicts(*sets) == [verdict]


@pytest.mark.parametrize(
    ("metric", "base", "new", "more", "verdict"),
    [
        ("accuracy", "70.5", "68.75", {}, MOVED),  # percent: two points are tolerated
        ("accuracy", "60.0", "57.125", {}, "worse"),
        ("hd95", "12.0", "14.5", {}, "worse"),  # lower is better; 2 pixels are tolerated
        ("hd95", "12.0", "13.5", {}, MOVED),
        ("hd95", "12.0", "9.5", {}, "better"),
        ("inception-score", "2.8", "2.5", {}, "worse"),
        ("psnr", "33.0", "32.1", {}, MOVED),
        ("bandwidth-gb", "1.0", "1.001", {}, "worse"),
        ("num-classes", "12", "13", {}, "changed"),
        ("fog", "200", "203", {}, MOVED),  # an unknown metric: 2 % of the value, either way
        ("fog", "200", "205", {}, "changed"),
        ("fog", "200", "195", {}, "changed"),
        ("accuracy", "70", "68", {**SEEDS, "std": "0.1"}, "worse"),
        ("hd95", "12", "10", {**SEEDS, "std": "0.1"}, "better"),
        ("fog", "1", "2", {**SEEDS, "std": "0.1"}, "changed"),
        ("classes", "0-4", "0-4", {}, "same"),
        ("classes", "0-4", "0-5", {}, "worse"),
    ],
)
def test_a_loss_is_judged_by_the_metrics_direction_and_unit(
    tmp_path, metric, base, new, more, verdict
):
    values = (("a", base), ("b", new))
    sets = (result_set(tmp_path, n, line(metric=metric, value=v, **more)) for n, v in values)
    assert verdicts(*sets) == [verdict]


def test_percent_is_told_from_print_else_from_the_values(tmp_path):
    lines = (line(value="0.9"), line(row="b", value="0.8"))
    for place, unit in (
        ("fediod/table1.csv", "percent"),
        ("dlad/table2.released.csv", "fraction"),
        ("x/t.csv", "fraction"),
    ):
        path = tmp_path / place
        write_csv(path, lines)
        assert {cell["unit"] for cell in read_set(path).cells.values()} == {unit}
    write_csv(tmp_path / "y" / "t.csv", [*lines, line(row="c", value="70.0")])
    assert {cell["unit"] for cell in read_set(tmp_path).cells.values() if cell["row"] == "c"} == {
        "percent"
    }
    with pytest.raises(ResultsError, match="unit is 'fraction' and 'percent'"):
        verdicts(tmp_path / "x", tmp_path / "y")


def test_a_vanished_cell_and_a_failed_one_are_regressions_and_a_new_one_is_named(tmp_path):
    two = result_set(tmp_path, "a", line(), line(row="b"))
    assert verdicts(two, result_set(tmp_path, "b", line())) == ["same", "vanished"]
    failed = line(row="b", metric="", value="", status="failed: DivergedError")
    assert verdicts(two, result_set(tmp_path, "c", line(), failed)) == ["same", "failed"]
    assert verdicts(result_set(tmp_path, "d", line()), two) == ["same", "new"]


def test_a_cell_that_fails_takes_its_curve_with_it_and_one_that_failed_before_is_no_regression(
    tmp_path,
):
    curve = [line(column=f"n=1 epoch={e}") for e in (1, 2)]
    failed = line(metric="", value="", status="failed: DivergedError")
    whole, broken = result_set(tmp_path, "a", *curve), result_set(tmp_path, "b", failed)
    lost = differences(whole, broken)[:-1]
    assert [(d.verdict, d.why) for d in lost] == [("failed", "failed: DivergedError")] * 2
    assert verdicts(broken, whole) == ["better", "new", "new"]
    assert verdicts(broken, broken) == ["same"]
    other = result_set(tmp_path, "c", line(row="b"))
    assert verdicts(result_set(tmp_path, "e", failed, line(row="b")), other) == ["vanished", "same"]
    assert [
        d.why
        for d in differences(other, result_set(tmp_path, "d", line(row="b"), failed))
        if d.verdict == "failed"
    ] == ["failed: DivergedError"]


def test_a_csv_of_an_older_version_lacks_columns_and_is_compared_in_those_it_has(tmp_path):
    old, new = (
        tmp_path / "a" / "t.csv",
        result_set(tmp_path, "b", line(public="shapes", statistic="best")),
    )
    write_csv(
        old,
        [{name: value for name, value in line().items() if name in CSV_COLUMNS[:18]}],
        CSV_COLUMNS[:18],
    )
    assert verdicts(old.parent, new) == ["same"]


def test_the_level_holds_for_all_cells_together(tmp_path):
    """p = 0.025 for one cell: Welch's t = 2.776 with 4 degrees of freedom. Among two cells it needs
    0.025, among three less.
    """
    spread = {"n": "3", "seeds": "0 1 2", "std": "0.01"}
    t = 2.7764451
    lower = repr(0.9 - t * 0.01 * (2 / 3) ** 0.5 * 1.0001)
    for others, verdict in ((1, "worse"), (2, "undecided")):
        rows = [line(row=f"r{i}", **spread) for i in range(others)]
        base = result_set(tmp_path, f"a{others}", line(**spread), *rows)
        moved = [
            {**row, "value": "0.9000001"} for row in rows
        ]  # one that is the same to the last digit is not tested
        new = result_set(tmp_path, f"b{others}", line(**{**spread, "value": lower}), *moved)
        found = differences(base, new)[0]
        assert found.verdict == verdict
        assert found.p == pytest.approx(0.025, abs=1e-5)
    assert differences(base, new, alpha=0.1)[0].verdict == "worse"


def test_means_over_different_shares_of_their_values_are_no_gain(tmp_path):
    base = result_set(tmp_path, "a", line(defined="610", of="610"))
    fewer = result_set(tmp_path, "b", line(value="0.95", defined="112", of="610"))
    more_seeds = result_set(tmp_path, "c", line(defined="1830", of="1830"))
    first, *_ = differences(base, fewer)
    assert (first.verdict, "mean over 610 of 610 -> 112 of 610 values" in first.why) == (
        "changed",
        True,
    )
    same, *_ = differences(base, more_seeds)
    assert same.verdict == "same"


def test_changed_bytes_do_not_hide_a_loss(tmp_path):
    base, new = (
        result_set(tmp_path, "a", line()),
        result_set(tmp_path, "b", line(value="0.5", bytes_up="11", epsilon="2.0")),
    )
    assert (
        differences(base, new)[0].why
        == "bytes up 10 -> 11 (+10.0 %), ε none -> 2.0, loss +0.4000, one seed, tolerance 0.02"
    )


@pytest.mark.parametrize(
    ("value", "hardware", "exactly", "verdict"),
    [
        (0.9, "A", True, "same"),
        (0.895, "A", False, MOVED),
        (0.9000001, "A", True, "changed"),
        (0.95, "A", True, "changed"),
        (0.95, "A", False, "better"),
        (0.9000001, "B", True, MOVED),
    ],
)
def test_exact_demands_the_same_digits_of_the_same_machine_only(
    tmp_path, value, hardware, exactly, verdict
):
    now = measured(value, machine={**RUN, "hardware": hardware})
    sets = written(tmp_path, "a", measured()), written(tmp_path, "b", now)
    found, *_ = differences(*sets, exact=exactly)
    assert found.verdict == verdict
    told = "; not identical on the same machine" in found.why
    assert told == (value != 0.9 and hardware == "A")


def test_a_csv_that_was_edited_beside_its_records_is_refused(tmp_path):
    path = written(tmp_path, "a", measured()) / "t.csv"
    path.write_text(path.read_text().replace(",0.9,", ",0.99,"))
    with pytest.raises(ResultsError, match="its records differ in a n=1 accuracy"):
        read_set(path)


@pytest.mark.parametrize("std", ["-1", "nan", "1_0"])
def test_a_spread_that_is_none_is_damage(tmp_path, std):
    with pytest.raises(ResultsError, match="std"):
        read_set(result_set(tmp_path, "a", line(std=std, n="3", seeds="0 1 2")))


def between_machines(tmp_path, base, new, **rule):
    """The first cell's difference, of accuracies in percent on 100 test samples, by seed."""
    sets = []
    for name, values in (("a", base), ("b", new)):
        runs = [
            measured(value, seed=seed, test_samples=100, machine={**RUN, "hardware": name})
            for seed, value in enumerate(values)
        ]
        folder = result_set(tmp_path, name, *records_of(summarise(runs)))
        (folder / "t.records.jsonl").write_text(
            "".join(json.dumps(run.to_json()) + "\n" for run in runs)
        )
        sets.append(folder)
    return differences(*sets, **rule)[0]


@pytest.mark.parametrize(
    ("base", "new", "verdict"),
    [
        # One run at 25 % has 100 x sqrt(0.25 x 0.75 / 100) = 4.3 points by the test set alone.
        ((26.0,) * 3, (24.0,) * 3, MOVED),
        ((26.0,), (24.0,), MOVED),
        ((26.0,) * 3, (10.0,) * 3, "worse"),
        ((50.0, 50.1, 50.2), (47.0, 47.1, 47.2), MOVED),  # three that lie together by luck
        ((50.0, 50.1, 50.2), (10.0, 10.1, 10.2), "worse"),
        ((50.0, 40.0, 60.0), (47.0, 37.0, 57.0), MOVED),  # more than the tolerance
        ((50.0, 20.0, 80.0), (30.0, 0.0, 60.0), "undecided"),  # the seeds may explain it, noise not
        ((10.0, 10.1, 10.2), (50.0, 50.1, 50.2), "better"),
    ],
)
def test_between_machines_a_run_has_the_spread_of_test_set_and_rounding(
    tmp_path, base, new, verdict
):
    for exact in (False, True):
        found = between_machines(tmp_path, base, new, exact=exact)
        assert (found.verdict, "another machine" in found.why) == (verdict, True)
