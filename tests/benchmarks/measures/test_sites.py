"""Metrics on the test samples of each site, and what is shown of them, by hand."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fedtables.benchmarks.measures.sites import MEASURES, BySite, middle_slice, subjects
from fedtables.federation.data import LabelledSet
from fedtables.federation.tasks.images import Classification
from fedtables.federation.tasks.pixels import TUMOUR, Regions
from fedtables.federation.tasks.values import Reconstruction
from fedtables.federation.training.inputs import Normalisation
from fedtables.results.arrays import unpack
from fedtables.results.record import Measurement

SITES = {
    name: LabelledSet(torch.zeros(count, 3, 4, 4), torch.zeros(count, 4, 4), name)
    for name, count in (("here", 2), ("there", 5))
}


class Known(BySite):
    """Measures the sites that it is given."""

    def __init__(self, sites):
        self.known = sites

    def sites(self, run):
        return self.known


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
    found = Known(sites).take(run)
    return found.measurements, found.statistic


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


def drawn(name, federation, sites):
    """What the measure of that name leaves for the picture of a federation's only model."""
    run = SimpleNamespace(federation=federation, models=[None])
    return unpack(MEASURES[name].picture(run, sites))


def finding(task):
    """One whose networks find the object wherever a pixel is bright."""
    network = torch.nn.Identity()
    network.forward = lambda images: images[:, :1] - 0.5
    networks = SimpleNamespace(module=lambda checkpoint: network)
    return SimpleNamespace(task=task, networks=networks, normalise=Normalisation((0.0,), (1.0,)))


def labelled(side=4, dims=2):
    """Two images of which the second has more that is labelled; each is bright where it is."""
    targets = torch.zeros(2, *[side] * dims, dtype=torch.int64)
    targets[0, 0, 0] = targets[1, :, 1] = 1
    return LabelledSet((targets[:, None] * 255).to(torch.uint8), targets, "")


def test_of_each_site_the_sample_with_most_that_is_labelled_is_shown():
    sites = {"here": labelled(), "there": labelled()}
    shown = drawn("contours", finding(Regions(TUMOUR)), sites)
    assert set(shown) == {
        f"{kind}/{site}" for kind in ("image", "target", "predicted") for site in ("here", "there")
    }
    assert shown["target/here"].tolist() == labelled().targets[1].tolist()
    assert shown["predicted/here"].tolist() == labelled().targets[1].tolist()
    assert shown["image/here"].shape == (1, 4, 4)


@pytest.mark.parametrize(("task", "dims"), [(Classification(3), 2), (Regions(TUMOUR), 3)])
def test_what_has_no_outlines_is_refused(task, dims):
    with pytest.raises(ValueError, match="contours are of objects in images"):
        drawn("contours", finding(task), {"here": labelled(dims=dims)})


PLAIN = Normalisation((0.0,), (1.0,))


def doubling(normalise=PLAIN):
    """One whose network doubles what it sees."""
    network = torch.nn.Identity()
    network.forward = lambda images: 2 * images
    networks = SimpleNamespace(module=lambda checkpoint: network)
    return SimpleNamespace(task=Reconstruction(), networks=networks, normalise=normalise)


def slices(groups=(7, 7, 7, 3), shape=(1, 2, 2), device="cpu"):
    """Slices as bright as their number, in tenths, of what is one brighter."""
    images = torch.arange(len(groups)).view(-1, 1, 1, 1) / 10 * torch.ones(len(groups), *shape)
    of_whom = torch.tensor(groups)
    return LabelledSet(images.to(device), (images + 1).to(device), "", of_whom.to(device))


def test_of_each_site_the_middle_slice_of_the_first_subject_is_shown():
    sites = {"here": slices(), "there": slices(groups=(4, 5, 5))}
    shown = drawn("error-maps", doubling(), sites)
    assert set(shown) == {
        f"{kind}/{site}" for kind in ("image", "target", "predicted") for site in ("here", "there")
    }
    assert {(array.shape, array.dtype) for array in shown.values()} == {
        ((2, 2), np.dtype(np.float32))
    }
    values = {name: float(array[0, 0]) for name, array in shown.items() if "/here" in name}
    assert values == pytest.approx({"image/here": 0.1, "target/here": 1.1, "predicted/here": 0.2})
    assert float(shown["target/there"].max()) == 1.0


@pytest.mark.parametrize(
    ("groups", "place"),
    [([7, 7, 7, 3], 1), ([7, 7, 3, 3], 1), ([2], 0), ([5, 0, 5, 0, 5, 5, 5], 4), (None, 0)],
)
def test_the_middle_is_that_of_the_first_ones_own_slices(groups, place):
    assert middle_slice(None if groups is None else np.array(groups)) == place


@pytest.mark.parametrize(
    "other",
    [
        slices(shape=(3, 2, 2)),
        LabelledSet(torch.zeros(2, 1, 4, 4), torch.zeros(2, 4, 4, dtype=torch.int64), ""),
        LabelledSet(torch.zeros(2, 1, 4, 4), torch.zeros(2, dtype=torch.int64), ""),
    ],
    ids=["colour", "pixels", "classes"],
)
def test_what_has_no_grey_targets_is_refused(other):
    with pytest.raises(ValueError, match=r"error maps are of grey images, .*Reconstruction"):
        drawn("error-maps", doubling(), {"here": other})
