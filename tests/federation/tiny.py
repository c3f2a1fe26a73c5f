"""A federation small enough to compute by hand: 8 x 8 grey images of three classes, told apart by their brightness."""

import torch

from federation.client import Client, Shard
from federation.federation import Federation, PublicData, TestSet
from federation.seeds import Seeds
from federation.stages import StageCache
from federation.tasks import Classification
from federation.training import Normalisation, TrainingPlan

CLASSES = 3


def bright_images(labels, seed):
    """uint8 (n, 1, 8, 8): class c has a mean brightness of 40 + 80 c."""
    noise = torch.randint(-30, 30, (len(labels), 1, 8, 8), generator=torch.Generator().manual_seed(seed))
    return (40 + 80 * labels.view(-1, 1, 1, 1) + noise).clamp(0, 255).to(torch.uint8)


def make_federation(clients=2, device="cpu", network="cnn-small", **changes):
    """Client k holds 12 images of classes k and k + 1; six public images and six test images hold all."""

    def put(tensor):
        return tensor.to(device)

    def client(index):
        targets = torch.tensor([index % CLASSES, (index + 1) % CLASSES] * 6)
        counts = tuple(torch.bincount(targets, minlength=CLASSES).tolist())
        shard = Shard(put(bright_images(targets, index)), put(targets))
        return Client(index, "cnn", "cnn-small", shard, counts, f"shard {index}")

    labels = torch.tensor([0, 1, 2] * 2)
    settings = {
        "clients": [client(index) for index in range(clients)],
        "public": PublicData(put(bright_images(labels, 100)), "public"),
        "test": TestSet(put(bright_images(labels, 200)), put(labels), "test"),
        "task": Classification(CLASSES),
        "network": network,
        "image_shape": (1, 8, 8),
        "normalise": Normalisation((0.5,), (0.25,)),
        "local": TrainingPlan(epochs=3, batch_size=4, lr=0.01),
        "server": TrainingPlan(epochs=2, batch_size=3, lr=0.01),
        "augmentation": None,
        "seeds": Seeds(),
        "stages": StageCache(None),
        "device": device,
    }
    return Federation(**{**settings, **changes})
