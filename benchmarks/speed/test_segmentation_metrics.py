"""Speed of what segmentations are measured by; run with `tox run -e speed`. No test asserts a
time.

On 256 x 256 pixels, a patch of a tissue image with thirty nuclei, and on 240 x 240, a slice of a
brain.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch

from metrics.instances import aji, instances_of, object_dice, object_hausdorff, ternary
from metrics.masks import hd95

IMAGES, SIDE, NUCLEI, RADIUS = 100, 256, 30, 12
SLICES, SLICE_SIDE = 50, 240


@functools.cache
def _nuclei(shift: int) -> list[np.ndarray]:
    """Label maps of disks, moved by some pixels."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:SIDE, :SIDE]
    maps = []
    for _ in range(IMAGES):
        labels = np.zeros((SIDE, SIDE), dtype=np.int64)
        for number, (row, column) in enumerate(rng.integers(0, SIDE, (NUCLEI, 2)), 1):
            inside = (rows - row) ** 2 + (columns - column - shift) ** 2 < RADIUS**2
            labels[inside] = number
        maps.append(labels)
    return maps


@pytest.mark.parametrize(
    "measure",
    [aji, functools.partial(aji, reuse=True), object_dice, object_hausdorff],
    ids=["aji", "released aji", "object dice", "object hausdorff"],
)
def test_nuclei_of_a_hundred_patches(benchmark, measure):
    pairs = [*zip(_nuclei(3), _nuclei(0), strict=True)]
    benchmark.extra_info["images"] = IMAGES
    benchmark.pedantic(lambda: [measure(*pair) for pair in pairs], warmup_rounds=1, rounds=5)


def test_recovering_nuclei_of_a_hundred_patches(benchmark):
    classes = ternary(torch.from_numpy(np.stack(_nuclei(0)))).numpy()
    benchmark.extra_info["images"] = IMAGES
    benchmark.pedantic(lambda: [*map(instances_of, classes)], warmup_rounds=1, rounds=5)


def test_ternary_labels_of_a_hundred_patches(benchmark):
    labels = torch.from_numpy(np.stack(_nuclei(0)))
    benchmark.extra_info["images"] = IMAGES
    benchmark.pedantic(lambda: ternary(labels), warmup_rounds=1, rounds=5)


@pytest.mark.parametrize("reading", ["paper", "released"])
def test_hd95_of_fifty_slices(benchmark, reading):
    rows, columns = np.mgrid[:SLICE_SIDE, :SLICE_SIDE]
    predicted, truth = (
        torch.from_numpy((rows - 100) ** 2 + (columns - left) ** 2 < radius**2)
        .expand(SLICES, -1, -1)
        .contiguous()
        for left, radius in ((110, 30), (115, 25))
    )
    benchmark.extra_info["images"] = SLICES
    benchmark.pedantic(lambda: hd95(predicted, truth, reading), warmup_rounds=1, rounds=5)
