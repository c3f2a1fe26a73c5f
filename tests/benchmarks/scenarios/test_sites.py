"""What a site has of its data set, at sides that are equal or differ."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedtables.benchmarks.scenarios.sites import Site
from fedtables.datasets import catalogue

FIRST = np.arange(2)


@pytest.fixture(scope="module")
def scenes():
    """Generated scenes, 32 x 32, with a class for every pixel."""
    return catalogue.resolve("scenes")


@pytest.mark.parametrize(("size", "sides"), [(16, (16, 16)), ((16, 8), (16, 8))])
def test_samples_and_targets_have_the_sides_that_networks_see(scenes, size, sides):
    site, planned = Site(scenes, size), Site(replace(scenes, digest=""), size)
    images = site.images("test", FIRST, "cpu")
    assert images.shape == planned.images("test", FIRST, "meta").shape == (2, 3, *sides)
    targets = site.annotation("test", FIRST, "segment_semantic", "cpu")
    assert (targets.shape, targets.dtype) == ((2, *sides), torch.uint8)
    shape = planned.annotation("test", FIRST, "segment_semantic", "meta").shape
    assert shape == (2, *sides)


def test_samples_are_identified_by_their_sides(scenes):
    sizes = (16, (16, 8), (8, 16))
    assert len({Site(scenes, size).identity("test", FIRST) for size in sizes}) == 3
