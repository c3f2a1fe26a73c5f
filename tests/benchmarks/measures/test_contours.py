"""What is shown of a segmentation."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from benchmarks.measures.sites import SHOWN, found, middle
from federation.data import LabelledSet
from federation.tasks.classification import Classification
from federation.tasks.regions import TUMOUR, Regions
from federation.training.inputs import Normalisation
from results.arrays import unpack


def federation(task):
    """One whose networks find the object wherever a pixel is bright."""
    network = torch.nn.Identity()
    network.forward = lambda images: images[:, :1] - 0.5
    networks = SimpleNamespace(module=lambda checkpoint: network)
    return SimpleNamespace(task=task, networks=networks, normalise=Normalisation((0.0,), (1.0,)))


def held(side=4, dims=2):
    """Two images of which the second has more that is labelled; each is bright where it is."""
    targets = torch.zeros(2, *[side] * dims, dtype=torch.int64)
    targets[0, 0, 0] = targets[1, :, 1] = 1
    return LabelledSet((targets[:, None] * 255).to(torch.uint8), targets, "")


def test_of_each_site_the_sample_with_most_that_is_labelled_is_shown():
    shown = unpack(found(federation(Regions(TUMOUR)), None, {"here": held(), "there": held()}))
    assert set(shown) == {
        f"{kind}/{site}" for kind in ("image", "target", "predicted") for site in ("here", "there")
    }
    assert shown["target/here"].tolist() == held().targets[1].tolist()
    assert shown["predicted/here"].tolist() == held().targets[1].tolist()
    assert shown["image/here"].shape == (1, 4, 4)


def test_of_a_large_image_the_middle_is_shown():
    side = SHOWN + 11
    shown = unpack(found(federation(Regions(TUMOUR)), None, {"here": held(side)}))
    assert {array.shape[-2:] for array in shown.values()} == {(SHOWN, SHOWN)}
    assert middle(side) == slice(5, 5 + SHOWN)


@pytest.mark.parametrize(("task", "dims"), [(Classification(3), 2), (Regions(TUMOUR), 3)])
def test_what_has_no_outlines_is_refused(task, dims):
    with pytest.raises(ValueError, match="contours are of objects in images"):
        found(federation(task), None, {"here": held(dims=dims)})
