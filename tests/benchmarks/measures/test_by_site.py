"""Metrics on the test samples of each site, by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace

import torch

from benchmarks.measures import by_site
from federation.parties.data import LabelledSet
from results.record import Measurement

SITES = {
    name: LabelledSet(torch.zeros(count, 3, 4, 4), torch.zeros(count, 4, 4), name)
    for name, count in (("here", 2), ("there", 5))
}


def federation(table):
    """Models whose metrics on a site are those of a table by model and site."""
    evaluation = SimpleNamespace(measured=lambda model, held: table[model, held.digest])
    return SimpleNamespace(
        networks=SimpleNamespace(module=lambda checkpoint: checkpoint), evaluation=evaluation
    )


def test_one_model_on_one_site_has_its_metrics_in_the_tables_unit():
    made = federation({("a", "here"): {"dice": 0.5, "hd95": 3.0, "other": 1.0}})
    scale = {"dice": 100, "hd95": 1}.__getitem__
    found, how = by_site.measure(made, ["a"], {"here": SITES["here"]}, ("dice", "hd95"), scale)
    assert found == (Measurement("dice", 50.0), Measurement("hd95", 3.0))
    assert how == "on 2 test samples of here, after training"


def test_means_are_over_sites_and_models_each_alike():
    table = {
        ("a", "here"): {"dice": 0.5},
        ("a", "there"): {"dice": 0.7},
        ("b", "here"): {"dice": 0.1},
        ("b", "there"): {"dice": 0.3},
    }
    found, how = by_site.measure(federation(table), ["a", "b"], SITES, ("dice",))
    [only] = found
    assert math.isclose(only.value, 0.4)
    assert how.endswith("of here, there, after training; mean over sites; mean over models")


def test_what_is_not_defined_is_left_out_and_said():
    table = {
        ("a", "here"): {"dice": 0.5, "hd95": math.nan, "never": math.nan},
        ("a", "there"): {"dice": 0.7, "hd95": 2.0, "never": math.nan},
    }
    found, how = by_site.measure(federation(table), ["a"], SITES, ("hd95", "never"))
    assert found == (Measurement("hd95", 2.0),)
    assert how.endswith("hd95 of 1 of 2; never of 0 of 2")
