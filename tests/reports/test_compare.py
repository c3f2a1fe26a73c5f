"""The regression report: its rule, its exit codes, and what it refuses."""

from __future__ import annotations

import pytest

from reports.compare import compare, markdown_summary, read_set
from results.files import ResultsError
from results.store import CSV_COLUMNS, write_csv

BASE = {
    "row": "a", "column": "n=1", "metric": "accuracy", "value": "0.9", "std": "", "n": "1", "status": "ok", "bytes_up": "10",
    "bytes_down": "0", "profile": "smoke", "protocol": "paper", "data": "digits", "origin": "surrogate", "seeds": "0",
}  # fmt: skip


def line(**changes: str) -> dict[str, str]:
    return {**dict.fromkeys(CSV_COLUMNS, ""), **BASE, **changes}


def result_set(tmp_path, name, *lines):
    path = tmp_path / name / "t.csv"
    write_csv(path, lines)
    return path.parent


def verdicts(base, new):
    return [d.verdict for d in compare(read_set(base), read_set(new), tolerance=0.02, effect=0.005)]


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "same"),
        ({"value": "0.885"}, "same"),
        ({"value": "0.87"}, "worse"),
        ({"value": "0.95"}, "better"),
        ({"bytes_up": "11"}, "changed"),
        ({"epsilon": "3.1"}, "changed"),
    ],
)
def test_one_seed_is_judged_by_tolerance_and_bytes_exactly(tmp_path, changes, verdict):
    assert verdicts(result_set(tmp_path, "a", line()), result_set(tmp_path, "b", line(**changes))) == [verdict]


def test_several_seeds_are_judged_by_a_test_and_not_by_the_tolerance(tmp_path):
    base = line(std="0.001", n="3", seeds="0 1 2")
    clear = line(value="0.89", std="0.001", n="3", seeds="0 1 2")
    noisy = line(value="0.85", std="0.05", n="3", seeds="0 1 2")
    assert verdicts(result_set(tmp_path, "a", base), result_set(tmp_path, "b", clear)) == ["worse"]
    assert verdicts(result_set(tmp_path, "a", base), result_set(tmp_path, "c", noisy)) == ["same"]


@pytest.mark.parametrize(
    ("metric", "base", "new", "verdict"),
    [
        ("hd95", "12.0", "14.5", "worse"),  # lower is better; 2 pixels are tolerated
        ("hd95", "12.0", "13.5", "same"),
        ("hd95", "12.0", "9.5", "better"),
        ("inception-score", "2.8", "2.5", "worse"),
        ("inception-score", "2.8", "2.65", "same"),
        ("psnr", "33.0", "32.1", "same"),
        ("bandwidth-gb", "1.0", "1.001", "worse"),
        ("num-classes", "12", "13", "changed"),
        ("fog", "200", "203", "same"),  # an unknown metric: 2 % of the value, in either direction
        ("fog", "200", "205", "changed"),
        ("fog", "200", "195", "changed"),
    ],
)
def test_a_loss_is_judged_by_the_metrics_direction_and_unit(tmp_path, metric, base, new, verdict):
    old, now = (result_set(tmp_path, name, line(metric=metric, value=value)) for name, value in (("a", base), ("b", new)))
    assert verdicts(old, now) == [verdict]


@pytest.mark.parametrize(
    ("metric", "base", "new", "verdict"),
    [("accuracy", "70", "68", "worse"), ("hd95", "12", "14", "worse"), ("hd95", "12", "10", "same"), ("fog", "1", "2", "changed")],
)
def test_over_seeds_too(tmp_path, metric, base, new, verdict):
    more = {"metric": metric, "std": "0.1", "n": "3", "seeds": "0 1 2"}
    old, now = (result_set(tmp_path, name, line(value=value, **more)) for name, value in (("a", base), ("b", new)))
    assert verdicts(old, now) == [verdict]


def test_percent_is_told_from_print_else_from_the_values(tmp_path):
    lines = (line(value="0.9"), line(row="b", value="0.8"))
    for place, unit in (("fediod/table1.csv", "percent"), ("dlad/table2.released.csv", "fraction"), ("x/t.csv", "fraction")):
        path = tmp_path / place
        write_csv(path, lines)
        assert {cell["unit"] for cell in read_set(path).values()} == {unit}
    write_csv(tmp_path / "y" / "t.csv", [*lines, line(row="c", value="70.0")])
    assert {cell["unit"] for cell in read_set(tmp_path).values() if cell["row"] == "c"} == {"percent"}
    with pytest.raises(ResultsError, match="unit is 'fraction' and 'percent'"):
        verdicts(tmp_path / "x", tmp_path / "y")


def test_a_table_in_percent_tolerates_two_points_and_prints_two_decimals(tmp_path):
    base = result_set(tmp_path, "a", line(value="70.5"), line(row="b", value="60.0"))
    new = result_set(tmp_path, "b", line(value="68.75"), line(row="b", value="57.125"))
    found = compare(read_set(base), read_set(new), tolerance=0.02, effect=0.005)
    assert [d.verdict for d in found] == ["same", "worse"]
    assert "| t b n=1 accuracy | worse | 60.00 | 57.12 | loss +2.88, one seed, tolerance 2 |" in markdown_summary(found)


def test_committed_results_are_readable(command):
    table = "results/cpu/dlad/table2.csv"
    assert command("reports", "compare", table, table).stdout.startswith("**No regression**: 48 same.")
    assert command("reports", "compare", "results/cpu", "results/cpu").returncode == 0


def test_a_vanished_cell_and_a_failed_one_are_regressions_and_a_new_one_is_named(tmp_path):
    two = result_set(tmp_path, "a", line(), line(row="b"))
    assert verdicts(two, result_set(tmp_path, "b", line())) == ["same", "vanished"]
    failed = line(row="b", metric="", value="", status="failed: DivergedError")
    assert verdicts(two, result_set(tmp_path, "c", line(), failed)) == ["same", "failed"]
    assert verdicts(result_set(tmp_path, "d", line()), two) == ["same", "new"]


@pytest.mark.parametrize("name", ["profile", "protocol", "data", "origin"])
def test_sets_of_different_kind_are_never_compared(tmp_path, name):
    base, new = result_set(tmp_path, "a", line()), result_set(tmp_path, "b", line(**{name: "other"}))
    with pytest.raises(ResultsError, match=f"{name} is .* not comparable"):
        verdicts(base, new)


def test_the_summary_names_the_cell_that_got_worse(tmp_path):
    base, new = result_set(tmp_path, "a", line()), result_set(tmp_path, "b", line(value="0.5"))
    text = markdown_summary(compare(read_set(base), read_set(new), 0.02, 0.005))
    assert text.startswith("**Regression**: 1 worse.")
    assert "| t a n=1 accuracy | worse | 0.9000 | 0.5000 |" in text


def test_a_value_that_is_no_number_makes_a_set_unusable(tmp_path):
    with pytest.raises(ResultsError, match="line 2: value 'abc' is not a number"):
        read_set(result_set(tmp_path, "a", line(value="abc")))


def test_exit_codes(tmp_path, command):
    base = result_set(tmp_path, "a", line())
    worse = result_set(tmp_path, "b", line(value="0.5"))
    broken = tmp_path / "broken.csv"
    broken.write_text("not,a,table\n1,2,3\n")
    assert command("reports", "compare", str(base), str(base)).returncode == 0
    assert command("reports", "compare", str(base), str(worse)).returncode == 1
    refused = command("reports", "compare", str(base), str(broken))
    assert refused.returncode == 2
    assert "not a table of this suite" in refused.stderr
    assert command("reports", "compare", str(base), str(tmp_path / "nowhere")).returncode == 2
