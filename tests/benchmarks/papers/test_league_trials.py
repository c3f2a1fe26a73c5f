"""The league's learning rates are the best of the trials that are committed."""

import csv
import math
from pathlib import Path

import pytest

from fedtables.benchmarks.commands.asked import table_names
from fedtables.benchmarks.papers.league import TRIED_RATES
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection

ROOT = Path(__file__).resolve().parents[3]
TRIED = {"local.lr", "server.lr", "privacy.queries", *TRIED_RATES}
DATASETS = [
    path.name.removesuffix("-trials.csv")
    for path in sorted((ROOT / "results" / "cpu" / "league").glob("*-trials.csv"))
]


SHARED = {"local", "server", "privacy"}
AT_THE_SERVER = {"public-only", "fedmd", "dlad", "fedad", "fediod", "fedkd", "fedkd-online"}
"""Rows of which more is tried than the rate of local training and settings of their own."""


def rates(row, config):
    tried = {name for name in TRIED & {*config} if name.partition(".")[0] not in SHARED}
    tried |= TRIED & {*config} if row in AT_THE_SERVER else {"local.lr"}
    return {name: config[name] for name in sorted(tried)}


def configs(table):
    """By row and epsilon, the configurations of a table's cells under cpu with their columns."""
    found = {}
    for cell in expand(*registry.find_table(f"league/{table}"), Selection("cpu")):
        config = dict(cell.config)
        epsilon = config.get("privacy.epsilon", math.inf)
        found.setdefault((cell.row, epsilon), []).append((cell.column, config))
    return found


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_row_has_the_rates_of_its_best_trial(dataset):
    path = ROOT / "results" / "cpu" / "league" / f"{dataset}-trials.csv"
    with path.open(newline="") as file:
        score = {
            (line["row"], line["column"]): float(line["value"])
            for line in csv.DictReader(file)
            if line["status"] == "ok"  # a trial that diverged has no value
        }
    judged, trials = configs(dataset), configs(f"{dataset}-trials")
    rows = {row for row, _ in score}
    for (row, epsilon), tried in trials.items():
        if row not in rows:  # not tried yet: it has the rates of its family
            continue
        best = max(tried, key=lambda trial: score.get((row, trial[0]), 0.0))[1]
        for _, config in judged[row, epsilon]:
            assert rates(row, config) == rates(row, best), (row, epsilon)


@pytest.mark.parametrize("table", ["mnist", "cifar10", "privacy"])
def test_every_row_has_four_trials_that_differ(table):
    for (row, epsilon), tried in configs(f"{table}-trials").items():
        different = {tuple(rates(row, config).items()) for _, config in tried}
        assert len(different) == len(tried) == 4, (row, epsilon)


def test_trials_are_computed_only_where_they_are_named():
    assert not [name for name in table_names(["league"]) if name.endswith("-trials")]
    assert table_names(["league/mnist-trials"]) == ["league/mnist-trials"]
