"""The fixed set of the regression report under other roundings: none of them is a regression, and
a loss of the wrong sign under one of them is. docs/howto/regression.md says how it was made.
"""

import csv
import math
import statistics
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from fedtables.metrics.names import facts
from fedtables.reports.comparing.compare import compare_results
from fedtables.reports.comparing.rule import CELL, Difference, Rule
from fedtables.reports.tables.resultset import ResultSet, read_set
from fedtables.results.record import Measurement, Record
from fedtables.results.store import TableFiles, summarise, write_csv
from tests.records import made_record

REFERENCE, WRONG_SIGN = "reference", "wrong-sign"
with (Path(__file__).parent / "data" / "roundings.csv").open(newline="") as stream:
    LINES = list(csv.DictReader(stream))
ROUNDINGS = list(LINES[0])[list(LINES[0]).index(REFERENCE) + 1 : -1]


def results(folder: Path, run: str) -> ResultSet:
    """The values of one run, as results that a machine of its name made."""
    tables: dict[str, dict[tuple[str, str, int], Record]] = defaultdict(dict)
    for line in LINES:
        if not line[run]:
            continue
        place = line["row"], line["column"], int(line["seed"])
        measured = (Measurement(line["metric"], float(line[run])),)
        known = tables[line["table"]].get(place)
        tables[line["table"]][place] = (
            replace(known, measurements=known.measurements + measured)
            if known
            else made_record(
                **{"table": line["table"], "cell": " ".join(map(str, place))},
                **dict(zip(("row", "column", "seed"), place, strict=True)),
                measurements=measured,
                test_samples=int(line["samples"]),
                machine={"hardware": run},
            )
        )
    for table, records in tables.items():
        files = TableFiles(folder / run, "smoke", table)
        files.write_records(records.values())
        write_csv(files.path("csv"), summarise(list(records.values())))
    return read_set(folder / run)


def cells(base: ResultSet, new: ResultSet) -> list[Difference]:
    """Differences of the cells that both runs made."""
    differences = compare_results(base, new, Rule(exact=True))
    return [d for d in differences if d.kind == CELL and d.cell in new.cells]


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> ResultSet:
    return results(tmp_path_factory.mktemp("reference"), REFERENCE)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_no_rounding_is_a_regression(reference, tmp_path, rounding):
    compared = cells(reference, results(tmp_path, rounding))
    assert any(d.values[0] != d.values[1] for d in compared)
    assert [d.cell for d in compared if d.is_regression] == []


def test_a_loss_of_the_wrong_sign_is_found_under_another_rounding(reference, tmp_path):
    compared = cells(reference, results(tmp_path, WRONG_SIGN))
    rows = {d.cell[1]: d.verdict for d in compared if "distribution=iid" in d.cell[2]}
    distilled = ("global-avg", "global-labeled", "global-dlad")
    assert rows == {"client-resnet": "same"} | dict.fromkeys(distilled, "worse")


@pytest.mark.parametrize("metric", sorted({line["metric"] for line in LINES}))
def test_the_spread_of_rounding_is_the_one_measured(metric):
    """The root mean square, over the metric's cells and seeds, of the standard deviation over all
    roundings: in fractions; of a metric without a scale relative to the mean.
    """
    variances = []
    for line in LINES:
        values = [float(line[run]) for run in (REFERENCE, *ROUNDINGS) if line[run]]
        if line["metric"] == metric and len(values) > 1:
            known = facts(metric)
            percent = 100 if known.share and not line["table"].startswith("dlad") else 1
            whole = statistics.fmean(values) if known.scale is None else known.scale * percent
            variances.append(statistics.variance(values) / whole**2)
    measured = math.sqrt(statistics.fmean(variances))
    assert measured <= facts(metric).rounding < 1.25 * measured
