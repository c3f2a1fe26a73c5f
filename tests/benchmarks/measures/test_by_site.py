"""Metrics on the test samples of each site, by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import torch

from benchmarks.measures.sites import numbers_of, subjects
from federation.data import LabelledSet
from results.record import Measurement

SITES = {
    name: LabelledSet(torch.zeros(count, 3, 4, 4), torch.zeros(count, 4, 4), name)
    for name, count in (("here", 2), ("there", 5))
}


def federation(table, sent=()):
    """Models whose metrics on a site are those of a table by model and site, after messages of as
    many bytes as `sent` says.
    """
    evaluation = SimpleNamespace(measured=lambda model, held: table[model, held.digest])
    return SimpleNamespace(
        networks=SimpleNamespace(module=lambda checkpoint: checkpoint),
        evaluation=evaluation,
        channel=SimpleNamespace(ledger=[SimpleNamespace(bytes=count) for count in sent]),
    )


def taken(made, models, sites, metrics, scale=lambda metric: 1.0):
    """What a table asks of models that were fitted in a federation."""
    run = SimpleNamespace(
        federation=made,
        models=models,
        metrics=metrics,
        scale=scale,
        over_models="mean over models" if len(models) > 1 else "",
    )
    return numbers_of(run, sites)


def test_one_model_on_one_site_has_its_metrics_in_the_tables_unit():
    made = federation({("a", "here"): {"dice": 0.5, "hd95": 3.0, "other": 1.0}})
    scale = {"dice": 100, "hd95": 1}.__getitem__
    found, how = taken(made, ["a"], {"here": SITES["here"]}, ("dice", "hd95"), scale)
    assert found == (
        Measurement("dice", 50.0, defined=1, of=1),
        Measurement("hd95", 3.0, defined=1, of=1),
    )
    assert how == "on 2 samples of here, after training"


def test_means_are_over_sites_and_models_each_alike():
    table = {
        ("a", "here"): {"dice": 0.5},
        ("a", "there"): {"dice": 0.7},
        ("b", "here"): {"dice": 0.1},
        ("b", "there"): {"dice": 0.3},
    }
    found, how = taken(federation(table), ["a", "b"], SITES, ("dice",))
    [only] = found
    assert math.isclose(only.value, 0.4)
    assert how.endswith("of here, there, after training; mean over sites; mean over models")


def test_what_is_not_defined_is_left_out_and_counted():
    table = {
        ("a", "here"): {"hd95": math.nan, "hd95#defined": 0, "hd95#of": 2, "never": math.nan},
        ("a", "there"): {"hd95": 2.0, "hd95#defined": 4, "hd95#of": 5, "never": math.nan},
    }
    (distance, never), _ = taken(federation(table), ["a"], SITES, ("hd95", "never"))
    assert distance == Measurement("hd95", 2.0, defined=4, of=7)
    assert math.isnan(never.value)
    assert (never.defined, never.of) == (0, 2)


# -- what a table may ask beside the task's metrics --

SSIM = {("a", "here"): {"ssim": 0.5}, ("a", "there"): {"ssim": 0.7}}


def grouped(name, groups):
    """A site whose samples are of these subjects."""
    return replace(SITES[name], groups=torch.tensor(groups))


def test_subjects_are_counted_where_samples_are_someones():
    here, there = grouped("here", [4, 4]), grouped("there", [1, 0, 1, 7, 7])
    made = federation(SSIM)
    metrics = ("ssim", "num-test-subjects")
    found, _ = taken(made, ["a"], {"there": there}, metrics)
    assert [(m.metric, m.value) for m in found] == [("ssim", 0.7), ("num-test-subjects", 3.0)]
    assert subjects(here) == {"num-test-subjects": 1.0}
    found, _ = taken(made, ["a"], {"there": SITES["there"]}, metrics)
    assert [m.metric for m in found] == ["ssim"]
    assert subjects(replace(there, groups=there.groups.to("meta"))) == {}


def test_bytes_are_those_of_the_whole_run_whatever_is_measured():
    made = federation(SSIM, sent=(1_500_000_000, 250_000_000))
    metrics = ("ssim", "bandwidth-gb")
    for sites in ({"here": SITES["here"]}, SITES):
        found, _ = taken(made, ["a"], sites, metrics)
        assert (found[1].metric, found[1].value) == ("bandwidth-gb", 1.75)
    assert [m.metric for m in taken(made, ["a"], SITES, ("ssim",))[0]] == ["ssim"]
