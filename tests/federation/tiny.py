"""Federations small enough to compute by hand: 8 x 8 grey images of three classes, told apart by
their brightness; larger ones of rectangles, and of discs that are to be reconstructed.
"""

from dataclasses import fields

import torch

from fedtables.federation.cache import StageCache
from fedtables.federation.client import Client, Shard
from fedtables.federation.data import LabelledSet, PublicData
from fedtables.federation.federation import Federation
from fedtables.federation.inside.setup import HeldOut, Setup
from fedtables.federation.seeds import Seeds
from fedtables.federation.tasks.images import Classification
from fedtables.federation.tasks.pixels import Segmentation
from fedtables.federation.tasks.values import Reconstruction
from fedtables.federation.training.inputs import Normalisation
from fedtables.federation.training.plan import TrainingPlan

CLASSES = 3
HELD = [field.name for field in fields(HeldOut)]


def bright_images(labels, seed, side=8):
    """uint8 (n, 1, side, side): class c has a mean brightness of 40 + 80 c."""
    noise = torch.randint(
        -30, 30, (len(labels), 1, side, side), generator=torch.Generator().manual_seed(seed)
    )
    return (40 + 80 * labels.view(-1, 1, 1, 1) + noise).clamp(0, 255).to(torch.uint8)


def make_client(index, samples=12, device="cpu", network="cnn-small", digest=None):
    """Client k with `samples` images of classes k and k + 1 in turn."""
    targets = torch.tensor([index % CLASSES, (index + 1) % CLASSES] * samples, dtype=torch.int64)[
        :samples
    ]
    counts = tuple(torch.bincount(targets, minlength=CLASSES).tolist())
    shard = Shard(bright_images(targets, index).to(device), targets.to(device))
    return Client(index, "cnn", network, shard, counts, digest or f"shard {index}")


def make_federation(clients=2, device="cpu", network="cnn-small", **changes):
    """Client k holds 12 images of classes k and k + 1; six public, six test and six validation
    images hold all.

    `clients` is their number, or the clients themselves.
    """

    def put(tensor):
        return tensor.to(device)

    labels = torch.tensor([0, 1, 2] * 2)
    settings = {
        "clients": (
            [make_client(index, device=device) for index in range(clients)]
            if isinstance(clients, int)
            else clients
        ),
        "public": PublicData(put(bright_images(labels, 100)), "public"),
        "test": LabelledSet(put(bright_images(labels, 200)), put(labels), "test"),
        "validation": LabelledSet(put(bright_images(labels, 300)), put(labels), "validation"),
        "task": Classification(CLASSES),
        "network": network,
        "image_shape": (1, 8, 8),
        "normalise": Normalisation((0.5,), (0.25,)),
        "local": TrainingPlan(epochs=3, batch_size=4, lr=0.01),
        "server": TrainingPlan(epochs=2, batch_size=3, lr=0.01),
        "augmentation": None,
        "seeds": Seeds(),
        "stages": StageCache(None),
    }
    settings = {**settings, **changes}
    protection = settings.pop("protection", None)
    held = {name: settings.pop(name) for name in HELD if name in settings}
    parts = {"clients": tuple(settings.pop("clients")), "device": torch.device(device)}
    return Federation(Setup(**{**settings, **parts}), HeldOut(**held), protection)


def rectangles(count, seed, side=16):
    """Grey images uint8 (n, 1, side, side) of a bright rectangle each, and where it is, int64 (n,
    side, side): 1 inside, 0 outside.
    """
    draws = torch.Generator().manual_seed(seed)
    masks = torch.zeros(count, side, side, dtype=torch.int64)
    for mask in masks:
        top, left = torch.randint(0, side // 2, (2,), generator=draws).tolist()
        mask[top : top + side // 2, left : left + side // 2] = 1
    noise = torch.randint(-30, 30, (count, 1, side, side), generator=draws)
    return (60 + 140 * masks[:, None] + noise).to(torch.uint8), masks


def make_dense_federation(sizes=(8, 8), network="cnn-small+dense", **changes):
    """Client k holds as many images of a rectangle as `sizes` says; the test set has eight, of
    which every pixel is to be told inside or outside.
    """

    clients = [
        Client(index, "cnn", network, Shard(*rectangles(n, index)), (), f"{index} of {n}")
        for index, n in enumerate(sizes)
    ]
    images, masks = rectangles(8, 200)
    settings = {
        "clients": clients,
        "public": PublicData(images[:0], "nothing"),
        "test": LabelledSet(images, masks, "test"),
        "task": Segmentation(2),
        "image_shape": (1, 16, 16),
        "local": TrainingPlan(epochs=20, batch_size=4, lr=0.01),
        "server": TrainingPlan(epochs=20, batch_size=4, lr=0.01),
    }
    return make_federation(network=network, **{**settings, **changes})


def discs(count, seed, side=32):
    """Undersampled grey images and whole ones, both float32 (n, 1, side, side), of a bright disc
    each.
    """
    draws = torch.Generator().manual_seed(seed)
    across, down = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="xy")
    places = side / 2 + torch.rand(count, 2, 1, 1, generator=draws) * side / 8
    apart = (across - places[:, 0]).square() + (down - places[:, 1]).square()
    noise = torch.rand(count, side, side, generator=draws) / 5
    whole = ((apart < (side / 4) ** 2) * 0.8 + noise)[:, None]
    return Reconstruction().seen(whole, torch.rand(count, side, generator=draws)), whole


def make_reconstruction_federation(sizes=(6, 4), network="unet-8-in", **changes):
    """Client k holds as many undersampled images of a disc as `sizes` says, with the whole ones;
    the test set has four.
    """

    clients = [
        Client(index, "unet", network, Shard(*discs(n, index)), (), f"{index} of {n}")
        for index, n in enumerate(sizes)
    ]
    images, whole = discs(4, 200)
    settings = {
        "clients": clients,
        "public": PublicData(images[:0], "nothing"),
        "test": LabelledSet(images, whole, "test"),
        "validation": None,
        "task": Reconstruction(),
        "image_shape": (1, 32, 32),
        "normalise": Normalisation((0.0,), (1.0,)),
        "local": TrainingPlan(epochs=1, batch_size=4, lr=1e-3),
    }
    return make_federation(network=network, **{**settings, **changes})
