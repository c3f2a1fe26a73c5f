"""Federations whose server holds labelled images, for methods that nothing reaches from clients."""

import torch

from fedtables.federation.data import LabelledSet, PublicData
from fedtables.federation.tasks.pixels import Segmentation
from tests.federation.tiny import CLASSES, bright_images, make_federation


def probed(**changes):
    """The tiny federation with twelve labelled images of all classes at the server, and thirty
    unlabelled ones.
    """
    labels, unlabelled = torch.arange(12) % CLASSES, torch.arange(30) % CLASSES
    settings = {
        "probe": LabelledSet(bright_images(labels, 400), labels, "probe"),
        "public": PublicData(bright_images(unlabelled, 500), "public"),
    }
    return make_federation(**{**settings, **changes})


def pixel_labelled(**changes):
    """The same for a dense task: whether a pixel is bright."""
    images = torch.randint(0, 256, (30, 1, 8, 8), generator=torch.Generator().manual_seed(0)).to(
        torch.uint8
    )
    labelled = LabelledSet(images[:12], (images[:12, 0] >= 128).long(), "pixel labels")
    settings = {
        "task": Segmentation(2),
        "network": "cnn-small+dense",
        "probe": labelled,
        "test": labelled,
    }
    return probed(**{**settings, "public": PublicData(images[12:], "pixels"), **changes})
