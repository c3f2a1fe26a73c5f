"""Made images beside the real ones of the same label maps."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from benchmarks.measures.images import MEASURES
from federation.client import Client, Shard
from results.arrays import unpack


def client(index, brightness):
    images = torch.full((3, 3, 2, 2), brightness, dtype=torch.uint8)
    targets = torch.arange(12).view(3, 2, 2) + index
    return Client(index, "x", "x", Shard(images, targets), (), f"{index}")


def run(made):
    federation = SimpleNamespace(clients=[client(0, 100), client(1, 200)])
    fitted = [SimpleNamespace(samples=made)]
    return SimpleNamespace(federation=federation, fitted=fitted, name="mine")


def test_the_first_of_each_client_is_kept_and_how_far_all_are_apart():
    made = torch.full((4, 3, 2, 2), 151, dtype=torch.uint8)  # two of each client
    taken = MEASURES["synthesis"].take(run(made))
    [apart] = taken.measurements
    assert apart.metric == "mean-absolute-error"
    assert apart.value == pytest.approx((51 + 49) / 2 / 255)
    shown = unpack(taken.arrays)
    assert shown["image/client 2"].max() == 200
    assert shown["target/client 2"].tolist() == [[1, 2], [3, 4]]
    assert shown["made/client 1"].max() == 151


@pytest.mark.parametrize("made", [None, torch.zeros(3, 3, 2, 2)])
def test_a_method_that_kept_no_images_is_refused(made):
    with pytest.raises(ValueError, match=r"mine kept no images.*set mine\.samples above 0"):
        MEASURES["synthesis"].take(run(made))
