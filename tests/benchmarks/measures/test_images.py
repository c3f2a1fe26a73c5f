"""Images that are made, and what is seen in images, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from fedtables.benchmarks.measures.images import MEASURES
from fedtables.federation.client import Client, Shard
from fedtables.federation.data import LabelledSet
from fedtables.federation.tasks.images import Classification
from fedtables.federation.tasks.pixels import Segmentation
from fedtables.reports.drawing.pictures import class_names
from fedtables.results.arrays import unpack


def client_of(index, brightness):
    images = torch.full((3, 3, 2, 2), brightness, dtype=torch.uint8)
    targets = torch.arange(12).view(3, 2, 2) + index
    return Client(index, "x", "x", Shard(images, targets), (), f"{index}")


def made_run(made):
    federation = SimpleNamespace(clients=[client_of(0, 100), client_of(1, 200)])
    fitted = [SimpleNamespace(samples=made)]
    return SimpleNamespace(federation=federation, fitted=fitted, name="mine")


def test_the_first_of_each_client_is_kept_and_how_far_all_are_apart():
    made = torch.full((4, 3, 2, 2), 151, dtype=torch.uint8)  # two of each client
    taken = MEASURES["synthesis"].take(made_run(made))
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
        MEASURES["synthesis"].take(made_run(made))


class Thresholds(nn.Module):
    """Class 1 where a pixel is above 0.5, else class 0; never class 2."""

    def forward(self, images):
        bright = (images > 0.5).float()
        return torch.cat([1 - bright, bright, torch.full_like(bright, -1.0)], dim=1)


def federation(task=None, images=6):
    """Images of 1 x 2 pixels: dark, bright. The truth says so of the first two, but of the other
    images all is class 2.
    """
    pixels = torch.tensor([0, 255], dtype=torch.uint8).expand(images, 1, 1, 2)
    target = torch.full((images, 1, 2), 2)
    target[:2] = torch.tensor([[0, 1]])
    target[3:4] = 255
    return SimpleNamespace(
        task=task or Segmentation(3),
        evaluation=SimpleNamespace(test_set=LabelledSet(pixels, target, "")),
        networks=SimpleNamespace(module=lambda checkpoint: Thresholds()),
        normalise=lambda images: images,
    )


def segmented(federation, fitted):
    return MEASURES["segmentations"].take(SimpleNamespace(federation=federation, fitted=fitted))


def test_a_cell_measures_the_first_four_test_images_and_leaves_what_is_drawn_of_them():
    taken = segmented(federation(), ["the one checkpoint"])
    [found] = taken.measurements
    # Classes 0 and 1: two of three pixels, for the fourth image is not labelled; class 2: none.
    assert (found.metric, found.value) == ("miou", pytest.approx((2 / 3 + 2 / 3 + 0) / 3))
    assert taken.statistic == "of the 4 test images shown, at the end of the run"
    arrays = unpack(taken.arrays)
    assert {name: (array.shape, array.dtype) for name, array in arrays.items()} == {
        "images": ((4, 1, 1, 2), np.uint8),
        "target": ((4, 1, 2), np.uint8),
        "predicted": ((4, 1, 2), np.uint8),
    }
    assert arrays["target"][:, 0].tolist() == [[0, 1], [0, 1], [2, 2], [255, 255]]
    assert arrays["predicted"][:, 0].tolist() == [[0, 1]] * 4
    assert arrays["images"][0].ravel().tolist() == [0, 255]


def test_what_cannot_be_drawn_is_named():
    with pytest.raises(ValueError, match="a class per pixel, and the task is Classification"):
        segmented(federation(Classification(3)), ["the one checkpoint"])
    with pytest.raises(ValueError, match="one network predicts, and the method leaves 2"):
        segmented(federation(), ["client 1", "client 2"])


@pytest.mark.parametrize(
    ("used", "first", "count"), [("scenes", "wall", 8), ("taskonomy", "background", 17)]
)
def test_every_class_of_a_pixel_has_a_name(used, first, count):
    names = class_names(used)
    assert (names[0], len(set(names))) == (first, count)
