"""FedIOD's Figure 8 from the command line: curves from the ledger, the claim with its
accuracy.
"""

import csv
import re
import shlex

import pytest

ROWS = ("fedavg", "fediod", "fedkd", "fedmd")


@pytest.fixture(scope="module")
def finished(tmp_path_factory, shared_command):
    """Figure 8 with two more rows."""
    results = tmp_path_factory.mktemp("figure8")
    done = shared_command(
        *shlex.split("reproduce fediod/figure8 --methods +fedkd,+fedmd --results"),
        str(results),
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    (results / "output.txt").write_text(done.stdout)
    return results


@pytest.fixture(scope="module")
def lines(finished):
    with (finished / "smoke" / "fediod" / "figure8.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def curve(lines, row, metric):
    return [
        float(line["value"])
        for line in lines
        if (line["row"], line["metric"]) == (row, metric) and "round=" in line["column"]
    ]


@pytest.mark.parametrize("row", ROWS)
def test_a_curve_ends_with_all_bytes_of_the_run(lines, row):
    first = next(line for line in lines if line["row"] == row)
    total = int(first["bytes_up"]) + int(first["bytes_down"])
    assert curve(lines, row, "bandwidth-gb")[-1] == pytest.approx(total / 1e9)


def test_all_rows_stand_at_one_accuracy_the_lowest_of_their_best(lines):
    at = {
        (line["row"], line["metric"]): float(line["value"])
        for line in lines
        if line["column"].endswith("at=highest-common")
    }
    expected = min(max(curve(lines, row, "accuracy")) for row in ROWS)
    assert {at[row, "accuracy"] for row in ROWS} == {expected}
    for row in ROWS:
        reached = [
            gb
            for gb, value in zip(
                curve(lines, row, "bandwidth-gb"), curve(lines, row, "accuracy"), strict=True
            )
            if value >= expected
        ]
        assert at[row, "bandwidth-gb"] == reached[0]


def test_bytes_are_not_judged_at_chance_and_the_panel_that_is_missing_is_named(finished, lines):
    """At smoke what both rows reach is no more than a guess among ten classes."""
    (common,) = {
        float(one["value"])
        for one in lines
        if "at=" in one["column"] and one["metric"] == "accuracy"
    }
    assert common < 13
    with (finished / "smoke" / "fediod" / "figure8.claims.csv").open(newline="") as stream:
        (claim,) = csv.DictReader(stream)
    assert (claim["id"], claim["held"], claim["failed"]) == ("fediod-f8", "0", "0")
    assert "accuracy at chance" in claim["verdict"]
    assert re.search(
        r"1 of 2 not measured \(at accuracy \d+\.\d\d % in panel=cifar10\)", claim["verdict"]
    )
    for text in (
        (finished / "output.txt").read_text(),
        (finished / "smoke" / "fediod" / "figure8.md").read_text(),
    ):
        shown = " ".join(text.split())
        assert (
            "panel=brats2018 is not measured: panel b has settings of its own: fediod/figure8b"
            in shown
        )
        assert (
            "is the highest Accuracy (%) that every row reaches; bandwidth until then: FedAvg"
            in shown
        )


def test_plan_has_the_runs_of_one_panel_and_the_time_on_a_link(command):
    done = command("plan", "fediod/figure8", "--profile", "smoke", "--link", "1")
    assert done.returncode == 0, done.stderr
    # 8 bits in a byte
    assert re.search(r"fedavg\W+1,917,600\W+1,917,600\W+15\.3 s\W+15\.3 s", done.stdout)
    assert "panel=brats2018 is not measured" in done.stdout
