"""Speed of the two loops and of the channel; run with `tox run -e speed`. No test asserts a
time.
"""

import pytest
import torch

from fedtables.federation.channel import Channel
from fedtables.federation.data import TrainingSet
from fedtables.federation.tasks.images import Classification
from fedtables.federation.training.inputs import Inputs, Normalisation
from fedtables.federation.training.loops import predict, train
from fedtables.federation.training.plan import Training, TrainingPlan
from fedtables.models.catalogue import build

CASES = [("cnn", 1, 28), ("resnet8-narrow", 3, 16), ("densenet-small", 3, 16)]
IMAGES = 2000


def _data(channels: int, size: int) -> tuple[torch.Tensor, torch.Tensor, Normalisation]:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(
        0, 256, (IMAGES, channels, size, size), dtype=torch.uint8, generator=generator
    )
    labels = torch.randint(0, 10, (IMAGES,), generator=generator)
    return images, labels, Normalisation((0.5,) * channels, (0.25,) * channels)


@pytest.mark.parametrize(("network", "channels", "size"), CASES)
def test_one_local_epoch(benchmark, network, channels, size):
    images, labels, normalise = _data(channels, size)
    model, task = (
        build(network, channels, 10, size).to(memory_format=torch.channels_last),
        Classification(10),
    )
    plan = TrainingPlan(epochs=1, batch_size=100)
    benchmark.extra_info["images"] = IMAGES
    benchmark.pedantic(
        lambda: train(
            model,
            TrainingSet(images, labels),
            Training(task.loss, plan),
            Inputs(normalise, generator=torch.Generator().manual_seed(0)),
        ),
        warmup_rounds=1,
        rounds=5,
    )


@pytest.mark.parametrize(("network", "channels", "size"), CASES)
def test_prediction(benchmark, network, channels, size):
    images, _, normalise = _data(channels, size)
    model = build(network, channels, 10, size).to(memory_format=torch.channels_last)
    benchmark.extra_info["images"] = IMAGES
    benchmark.pedantic(
        lambda: predict(model, images, normalise=normalise), warmup_rounds=1, rounds=5
    )


def test_sending_a_resnet18(benchmark):
    state = build("resnet18", 3, 10, 32).state_dict()
    benchmark.pedantic(lambda: Channel().up(0, "parameters", state), warmup_rounds=1, rounds=5)
