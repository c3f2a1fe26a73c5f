"""Small trainings whose steps may be replayed."""

import torch
import torch.nn.functional as F

from fedtables.federation.augmentation import Augmentation
from fedtables.federation.data import TrainingSet
from fedtables.federation.graphs import take_turns
from fedtables.federation.training.inputs import Inputs, Normalisation
from fedtables.federation.training.loops import training_steps
from fedtables.federation.training.plan import Training, TrainingPlan
from fedtables.models.catalogue import build

PLANS = {
    "momentum": {"optimizer": "sgd", "momentum": 0.9, "weight_decay": 0.01},
    "adam": {"optimizer": "adam", "clip_norm": 0.5},
    "rmsprop": {"optimizer": "rmsprop"},
}
HOW = Augmentation(crop=1, horizontal_flip=True, rotation=5)


def cross_entropy(outputs, targets):
    return F.cross_entropy(outputs, targets, reduction="none")


def networks(count):
    models = []
    for seed in range(count):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            models.append(build("resnet8-narrow", 3, 10, 8))
    return models


def sets(sizes, device):
    generator = torch.Generator().manual_seed(0)
    return [
        TrainingSet(
            torch.randint(256, (size, 3, 8, 8), dtype=torch.uint8, generator=generator).to(device),
            (torch.arange(size) % 10).to(device),
            torch.rand(size, generator=generator).to(device),
        )
        for size in sizes
    ]


def trained(sizes, execution, *, together, device="cpu", **changes):
    """The networks' states after three epochs in batches of four, of all together or one after
    another.
    """
    plan = TrainingPlan(3, 4, 0.05, schedule="cosine", **changes)
    models = [model.to(device) for model in networks(len(sizes))]
    shards = sets(sizes, device)
    generators = [torch.Generator(device).manual_seed(100 + k) for k in range(len(sizes))]
    normalise = Normalisation((0.5,), (0.25,))
    trainings = [
        training_steps(
            model,
            own,
            Training(cross_entropy, plan),
            Inputs(normalise, HOW, generator),
            execution=execution,
        )
        for model, own, generator in zip(models, shards, generators, strict=True)
    ]
    lanes = torch.device(device if torch.cuda.is_available() else "cpu")
    for group in [trainings] if together else [[one] for one in trainings]:
        take_turns(group, lanes)
    return [model.state_dict() for model in models]
