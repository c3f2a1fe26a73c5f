"""Speed of learning and of predicting segmentations; run with `tox run -e speed`. No test asserts a
time.

Patches of 64 pixels, and whole images of 500 seen through windows, as FedIOD's nuclei at cpu;
volumes of 32 voxels a side.
"""

from __future__ import annotations

import pytest
import torch

from federation.data import TrainingSet
from federation.tasks.nuclei import Nuclei
from federation.tasks.regions import BRATS, TUMOUR, Regions
from federation.training.inputs import Inputs, Normalisation
from federation.training.loops import predictions, train
from federation.training.plan import Training, TrainingPlan
from federation.windows import Window
from models.catalogue import build

CASES = [
    ("unet-16-bn", 3, (64, 64), Nuclei()),
    ("unet-narrow", 3, (64, 64), Regions(TUMOUR)),
    ("segresnet-half-3d", 4, (32, 32, 32), Regions(BRATS)),
]
SAMPLES = 32


def _normalisation(channels: int) -> Normalisation:
    return Normalisation((0.5,) * channels, (0.25,) * channels)


@pytest.mark.parametrize(("network", "channels", "sides", "task"), CASES)
def test_one_epoch(benchmark, network, channels, sides, task):
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(
        0, 256, (SAMPLES, channels, *sides), dtype=torch.uint8, generator=generator
    )
    targets = torch.randint(0, 2, (SAMPLES, *sides), generator=generator)
    model, plan = build(network, channels, task.outputs, sides), TrainingPlan(1, batch_size=16)
    benchmark.extra_info["images"] = SAMPLES

    def epoch() -> None:
        train(
            model,
            TrainingSet(images, targets),
            Training(task.loss, plan),
            Inputs(_normalisation(channels), generator=torch.Generator().manual_seed(0)),
        )

    benchmark.pedantic(epoch, warmup_rounds=1, rounds=3)


def test_windows_over_whole_images(benchmark):
    images = torch.randint(0, 256, (2, 3, 500, 500), dtype=torch.uint8)
    model, window = build("unet-16-bn", 3, 3, 64), Window((64, 64), 0.3125)
    benchmark.extra_info["images"] = len(images)

    def predict() -> None:
        for _ in predictions(model, images, normalise=_normalisation(3), window=window):
            pass

    benchmark.pedantic(predict, warmup_rounds=1, rounds=3)
