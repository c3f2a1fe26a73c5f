"""Facts about metrics: every metric that a paper prints is known, and what is known fits the
printed numbers.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from metrics.names import BY_GROUP, FLOOR, HIGHER, LEAKED, LOWER, METRICS, NEITHER, Metric, facts
from results import published

PRINTED = [
    cell
    for paper in published.papers()
    for t in published.tables(paper)
    for cell in published.published_table(f"{paper}/{t}")
]


OWN_SHARES = {
    "attention-in-diversity",
    "consensus-covered",
    "attention-empty",
    "dice-whole-tumour",
    "dice-tumour-core",
    "dice-enhancing",
    "teacher-accuracy",
    "pointing-accuracy",
    "weakest-clients-accuracy",
    "corrupted-accuracy",
}
"""Of FedAD's Figure 3, which prints no numbers, of the regions of a tumour in volumes, where FedIOD
has the whole tumour in slices, and of this suite's own tables."""
OWN = {
    "rounds-to-end",
    "megabytes-up",
    "megabytes-down",
    "client-teraflops",
    "server-teraflops",
    "peak-megabytes",
    "client-seconds",
    "server-seconds",
}
"""What runs cost, in this suite's own tables."""
LEAKS = {*LEAKED.values(), *FLOOR.values()}
"""What is recovered of private images, beside what is public anyway, by names of its own."""


def test_every_metric_of_the_papers_is_known_and_no_other():
    # FedIOD draws FID in a figure and FedSA the selection of teachers, which print no numbers; the
    # error is of its teachers. FedAD's Table 4 prints ticks.
    own = {"fid", "transferability", "selected", "mean-absolute-error", "property"}
    printed = {cell.metric.removesuffix(BY_GROUP) for cell in PRINTED}
    assert printed | own | OWN | OWN_SHARES | LEAKS == set(METRICS)


def test_each_metric_has_a_title_of_its_own_and_a_direction():
    assert len({metric.title for metric in METRICS.values()}) == len(METRICS)
    assert {metric.better for metric in METRICS.values()} == {HIGHER, LOWER, NEITHER}
    assert (facts("accuracy").better, facts("hd95").better, facts("classes").better) == (
        HIGHER,
        LOWER,
        NEITHER,
    )


def test_shares_are_those_that_a_paper_prints_in_percent_and_have_the_bounds_of_a_share():
    in_percent = {cell.metric for cell in PRINTED if cell.note.startswith("unit=percent")}
    assert {name for name, metric in METRICS.items() if metric.share} == in_percent | OWN_SHARES
    assert {facts(name).bounds for name in in_percent | OWN_SHARES} == {(0, 1)}


@pytest.mark.parametrize(
    "name",
    [n for n, metric in METRICS.items() if metric.bounds and n not in OWN_SHARES | LEAKS],
)
def test_printed_values_lie_within_the_bounds(name):
    low, high = facts(name).bounds
    cells = [cell for cell in PRINTED if cell.metric == name and cell.value is not None]
    assert cells
    for cell in cells:
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
        ("accuracy-at-epsilon-0.5", "Accuracy at epsilon 0.5"),
    ],
)
def test_a_metric_at_a_cost_is_what_it_is_without_but_for_its_title(name, title):
    assert facts(name) == replace(facts("accuracy"), title=title)


@pytest.mark.parametrize("name", ["fog-at-10-gb", "at-10-mb", "accuracy-at-epsilon-"])
def test_what_only_looks_like_a_metric_at_a_cost_is_one_of_a_plug_in(name):
    assert facts(name) == Metric(name)
