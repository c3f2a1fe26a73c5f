"""Claims are judged on what the records hold."""

import math
from dataclasses import replace

import pytest

from fedtables.benchmarks.reporting.verdicts import (
    above_chance,
    judge_claims,
    judge_records,
    values_of,
)
from fedtables.benchmarks.tables import registry
from fedtables.reports.tables.predicates import Value
from fedtables.results.record import FAILED, Measurement
from tests.benchmarks.reporting.scores import SCORES, scored


def test_values_are_means_over_seeds_by_row_column_and_metric(run):
    records = [
        scored("gan", 2.0, 1.0),
        scored("gan", 3.0, 1.5, seed=1),
        scored("gan mimic=eq8", 9.0, 9.0, status=FAILED),
        scored("gan mimic=common", 9.0, 9.0, contract=("it reads test labels",)),
    ]
    keys = {"dataset": "cifar10", "alpha": "0.1"}
    assert values_of(records) == [
        Value("gan", keys, SCORES[0], 2.5, negligible=0.1),
        Value("gan", keys, SCORES[1], 1.25, negligible=0.1),
    ]


def test_a_hundredth_of_a_metrics_scale_may_count_as_none():
    scales = {"accuracy": 0.01, "miou": 0.01, "psnr": 0.5, "bandwidth-gb": 0.0, "fid": math.inf}
    found = tuple(Measurement(name, 1.0, "") for name in scales)
    values = values_of([replace(scored("gan", 0.0, 0.0), measurements=found)])
    assert {value.metric: value.negligible for value in values} == scales


def test_values_know_of_how_many_they_are_over_all_seeds():
    def counted(seed, *counts):
        found = Measurement("hd95", 3.0, "", *counts)
        return replace(scored("gan", 0.0, 0.0, seed=seed), measurements=(found,))

    (value,) = values_of([counted(0, 112, 610), counted(1, 610, 610)])
    assert value.counted == (722, 1220)
    (value,) = values_of([counted(0, 112, 610), counted(1)])
    assert value.counted is None


@pytest.mark.parametrize(("accuracy", "learnt"), [(10.0, False), (13.0, False), (30.0, True)])
def test_what_a_run_costs_knows_whether_it_has_learnt_more_than_a_guess(accuracy, learnt):
    # Of ten classes and 300 images a guess has 10 % with a standard error of 1.7.
    found = (
        Measurement("accuracy", accuracy, "at=end"),
        Measurement("bandwidth-gb", 1.0, "at=end"),
    )
    one = replace(
        scored("gan", 0.0, 0.0), measurements=found, data={"used": "cifar10"}, test_samples=300
    )
    first, second = values_of([one], "percent")
    assert (first.learnt, second.learnt) == (None, learnt)
    assert (first.negligible, second.negligible) == (1.0, 0.0)
    assert above_chance("mauc", 0.5, one) is False
    assert above_chance("dice", 0.0, one) is None
    assert above_chance("accuracy", 0.9, replace(one, data={})) is None


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


def test_a_claim_on_another_table_has_the_seeds_of_that_table():
    """FedSA's Figure 3, of one seed: Transfer is above the others by 0.1 in Table 4's three seeds.
    FedSA is above Transfer in the figure's own seed alone.
    """
    paper, figure = registry.find_table("fedsa/figure3")

    def of(row, value, seed):
        found = (Measurement("miou", value),)
        one = scored(row, 0.0, 0.0, seed=seed)
        return replace(one, column="task=segmentation", measurements=found)

    rows = {"transfer": (0.5, 0.5, 0.5), "scratch": (0.4, 0.4, 0.4), "fedsa": (0.6, 0.4, 0.45)}
    table4 = [of(row, v, seed) for row, values in rows.items() for seed, v in enumerate(values)]

    def beside(table):
        return table4 if table.key == "table4" else []

    [claim] = judge_records(paper, figure, "smoke", [of("fedsa", 0.6, 0)], beside)
    assert claim["verdict"] == "holds in 1 of 1 decided; 1 undecided (spread over seeds)"
