"""What scenarios read of data sets, at sides that are equal or differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.scenarios.samples import identity, images_of, targets_at
from datasets import catalogue

FIRST = np.arange(2)


@pytest.fixture(scope="module")
def scenes():
    """Generated scenes, 32 x 32, with a class for every pixel."""
    return catalogue.resolve("scenes")


@pytest.mark.parametrize(("size", "sides"), [(16, (16, 16)), ((16, 8), (16, 8))])
def test_samples_and_targets_have_the_sides_that_networks_see(scenes, size, sides):
    planned = replace(scenes, digest="")
    images = images_of(scenes, "test", FIRST, size, "cpu")
    assert images.shape == images_of(planned, "test", FIRST, size, "meta").shape == (2, 3, *sides)
    targets = targets_at(scenes, "test", FIRST, "segment_semantic", size, "cpu")
    assert targets.shape == (2, *sides)
    assert targets.dtype == torch.int64
    shape = targets_at(planned, "test", FIRST, "segment_semantic", size, "meta").shape
    assert shape == (2, *sides)


def test_samples_are_identified_by_their_sides(scenes):
    names = {identity(scenes, "test", FIRST, size) for size in (16, (16, 8), (8, 16))}
    assert len(names) == 3
    assert identity(scenes, "test", FIRST, (16, 8)) in names
