"""Claims are judged on what the records hold."""

from __future__ import annotations

from benchmarks.publish.verdicts import judge_claims, values_of
from reports.tables.predicates import Value
from results.record import FAILED
from tests.benchmarks.publish.scores import SCORES, scored


def test_values_are_means_over_seeds_by_row_column_and_metric(run):
    records = [
        scored("gan", 2.0, 1.0),
        scored("gan", 3.0, 1.5, seed=1),
        scored("gan mimic=eq8", 9.0, 9.0, status=FAILED),
        scored("gan mimic=common", 9.0, 9.0, contract=("it reads test labels",)),
    ]
    keys = {"dataset": "cifar10", "alpha": "0.1"}
    assert values_of(records) == [
        Value("gan", keys, SCORES[0], 2.5),
        Value("gan", keys, SCORES[1], 1.25),
    ]


def test_claims_are_judged_on_the_metrics_of_the_records(run):
    rows = {
        "gan": (1.0, 1.0),
        "gan mimic=common": (1.5, 3.5),
        "gan mimic=eq8": (2.0, 2.0),
        "gan mimic=eq8 conf": (2.5, 4.0),
    }
    records = [
        scored(row, *scores)
        for row, scores in {**rows, "gan mimic=eq8 conf unique": (3.0, 3.0)}.items()
    ]
    found = {
        claim["id"]: (claim["verdict"], claim["fails_at"]) for claim in judge_claims(run, records)
    }
    assert found["fediod-t7-a"] == ("holds in 1 of 2", "[clause 2]")
    assert found["fediod-t7-b"] == ("holds in 6 of 8", "[clause 6] | [clause 8]")
