"""Facts about metrics: every metric that a paper prints is known, and what is known fits the
printed numbers.
"""

from dataclasses import replace

import pytest

from fedtables.metrics.names import BY_GROUP, HIGHER, LOWER, METRICS, NEITHER, Metric, facts
from fedtables.results import published

PRINTED = [
    cell
    for paper in published.papers()
    for t in published.tables(paper)
    for cell in published.published_table(f"{paper}/{t}")
]


def test_every_metric_of_the_papers_is_known():
    assert {cell.metric.removesuffix(BY_GROUP) for cell in PRINTED} <= set(METRICS)


def test_each_metric_has_a_title_of_its_own_and_a_direction():
    assert len({metric.title for metric in METRICS.values()}) == len(METRICS)
    assert {metric.better for metric in METRICS.values()} == {HIGHER, LOWER, NEITHER}
    assert (facts("accuracy").better, facts("hd95").better, facts("classes").better) == (
        HIGHER,
        LOWER,
        NEITHER,
    )


def test_what_a_paper_prints_in_percent_is_a_share_and_shares_have_their_bounds():
    shares = {name for name, metric in METRICS.items() if metric.share}
    assert {cell.metric for cell in PRINTED if cell.note.startswith("unit=percent")} <= shares
    assert {facts(name).bounds for name in shares} == {(0, 1)}


@pytest.mark.parametrize("name", [n for n, metric in METRICS.items() if metric.bounds])
def test_printed_values_lie_within_the_bounds(name):
    low, high = facts(name).bounds
    for cell in PRINTED:
        if cell.metric == name and cell.value is not None:
            factor = 100 if cell.note.startswith("unit=percent") else 1
            assert low * factor <= cell.value <= high * factor


def test_of_a_metric_that_a_plug_in_brings_only_the_name_is_known():
    assert facts("fog") == Metric(
        "fog", better=NEITHER, bounds=None, share=False, unit="", digits=4, scale=None
    )


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("accuracy-at-10-mb", "Accuracy at 10 MB"),
        ("accuracy-at-30-s", "Accuracy at 30 s"),
        ("accuracy-by-group", "Accuracy by group"),
        ("accuracy-at-epsilon-0.5", "Accuracy at epsilon 0.5"),
    ],
)
def test_a_metric_at_a_cost_is_what_it_is_without_but_for_its_title(name, title):
    assert facts(name) == replace(facts("accuracy"), title=title)


@pytest.mark.parametrize("name", ["fog-at-10-gb", "at-10-mb", "accuracy-at-epsilon-"])
def test_what_only_looks_like_a_metric_at_a_cost_is_one_of_a_plug_in(name):
    assert facts(name) == Metric(name)
