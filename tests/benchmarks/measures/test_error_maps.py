"""What is shown of a reconstruction."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks.measures.sites import middle_slice, reconstructed
from federation.data import LabelledSet
from federation.tasks.reconstruction import Reconstruction
from federation.training.inputs import Normalisation
from results.arrays import unpack

PLAIN = Normalisation((0.0,), (1.0,))


def federation(normalise=PLAIN):
    """One whose network doubles what it sees."""
    network = torch.nn.Identity()
    network.forward = lambda images: 2 * images
    networks = SimpleNamespace(module=lambda checkpoint: network)
    return SimpleNamespace(task=Reconstruction(), networks=networks, normalise=normalise)


def held(groups=(7, 7, 7, 3), shape=(1, 2, 2), device="cpu"):
    """Slices as bright as their number, in tenths, of what is one brighter."""
    images = torch.arange(len(groups)).view(-1, 1, 1, 1) / 10 * torch.ones(len(groups), *shape)
    of_whom = torch.tensor(groups)
    return LabelledSet(images.to(device), (images + 1).to(device), "", of_whom.to(device))


def test_of_each_site_the_middle_slice_of_the_first_subject_is_shown():
    packed = reconstructed(federation(), None, {"here": held(), "there": held(groups=(4, 5, 5))})
    shown = unpack(packed)
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


def test_nothing_is_shown_of_a_plan():
    assert reconstructed(federation(), None, {"here": held(device="meta")}) == ""


@pytest.mark.parametrize(
    "other",
    [
        held(shape=(3, 2, 2)),
        LabelledSet(torch.zeros(2, 1, 4, 4), torch.zeros(2, 4, 4, dtype=torch.int64), ""),
        LabelledSet(torch.zeros(2, 1, 4, 4), torch.zeros(2, dtype=torch.int64), ""),
    ],
    ids=["colour", "pixels", "classes"],
)
def test_what_has_no_grey_targets_is_refused(other):
    with pytest.raises(ValueError, match=r"error maps are of grey images, .*Reconstruction"):
        reconstructed(federation(), None, {"here": other})
