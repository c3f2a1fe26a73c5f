"""Local training of the narrow ResNet-8, as it can be run: images per second, and the accuracy that
comes of it.

A round trains one fresh network each way, from the same seed, and every round from another; so the
accuracies are over as many seeds as there are rounds, and one for the warm-up, which compiles.
FEDTABLES_SPEED_DEVICE names the device (default cpu).
"""

from __future__ import annotations

import functools
import os

import pandas as pd
import pytest
import torch
import torch._inductor.config
import torch.nn.functional as F

from benchmarks.running.execute import prepare_device
from benchmarks.speed.pairs import compare
from datasets import catalogue
from federation.data import TrainingSet
from federation.execution import Execution
from federation.tasks.classification import Classification
from federation.training.inputs import Inputs, Normalisation, unit_range
from federation.training.loops import train
from federation.training.measuring import evaluate
from federation.training.plan import Training, TrainingPlan
from models.catalogue import build

DEVICE = os.environ.get("FEDTABLES_SPEED_DEVICE", "cpu")
NETWORK = "resnet8-narrow"
PLAN = TrainingPlan(epochs=3, batch_size=64)
TRAIN, TEST = 40 * PLAN.batch_size, 2000
EXECUTIONS = {
    "suite (channels last, fp32)": Execution(),
    "bf16": Execution(precision="bf16"),
    "compiled": Execution(compile="default"),
    "compiled, bf16": Execution(precision="bf16", compile="default"),
}


@functools.cache
def _data(size: int) -> tuple[str, dict[str, TrainingSet], Normalisation]:
    """CIFAR-10, or what stands in for it: its label, images and targets, and how to normalise
    them.
    """
    resolved = catalogue.resolve("cifar10")
    sets = {}
    for name, count in (("train", TRAIN), ("test", TEST)):
        split = catalogue.load(resolved.used)[name]
        order = torch.randperm(len(split.images), generator=torch.Generator().manual_seed(0))
        chosen = order[:count].numpy()
        whole = torch.from_numpy(split.images[chosen]).float()
        images = F.interpolate(whole, (size, size), mode="area").round().to(torch.uint8)
        targets = torch.from_numpy(split.labels[chosen])
        sets[name] = TrainingSet(images.to(DEVICE), targets.to(DEVICE))
    source = catalogue.source(resolved.used)
    return resolved.label, sets, Normalisation(source.mean, source.std)


def _network(size: int, seed: int) -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return build(NETWORK, 3, 10, size).to(DEVICE)


def _bare_loop(
    model: torch.nn.Module, samples: TrainingSet, normalise: Normalisation, seed: int
) -> None:
    """What one writes without the suite: images in memory, the usual memory layout (NCHW), no
    checks.
    """
    generator = torch.Generator(DEVICE).manual_seed(seed)
    optimizer = PLAN.make_optimizer(model.parameters())
    model.train()
    for _ in range(PLAN.epochs):
        order = torch.randperm(len(samples.images), generator=generator, device=DEVICE)
        for batch in order.split(PLAN.batch_size):
            outputs = model(normalise(unit_range(samples.images[batch])))
            loss = F.cross_entropy(outputs, samples.targets[batch])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
    loss.item()  # the end of what a device has been given to do


def _suite(
    model: torch.nn.Module,
    samples: TrainingSet,
    normalise: Normalisation,
    seed: int,
    execution: Execution,
) -> None:
    prepare_device(DEVICE, 1, execution)
    train(
        model.to(memory_format=torch.channels_last),
        samples,
        Training(Classification(10).loss, PLAN),
        Inputs(normalise, generator=torch.Generator(DEVICE).manual_seed(seed)),
        execution=execution,
    )


@pytest.mark.parametrize("size", [32, 16])
def test_local_training(benchmark, size):
    label, sets, normalise = _data(size)
    fits = {"bare loop (NCHW)": _bare_loop}
    fits |= {name: functools.partial(_suite, execution=how) for name, how in EXECUTIONS.items()}
    models: dict[str, list[torch.nn.Module]] = {name: [] for name in fits}

    def way(name: str) -> None:
        model = _network(size, seed=len(models[name]))
        fits[name](model, sets["train"], normalise, len(models[name]))
        models[name].append(model)

    ways = {name: functools.partial(way, name) for name in fits}
    comparison = compare(benchmark, ways, TRAIN * PLAN.epochs)
    test, task = sets["test"], Classification(10)
    for name, trained in models.items():
        accuracies = pd.Series(
            [
                evaluate(model, test.images, test.targets, task=task, normalise=normalise)[
                    "accuracy"
                ]
                for model in trained
            ]
        )
        comparison.notes[name] = (
            f"accuracy {accuracies.mean():.3f} +- {accuracies.std():.3f} of {len(trained)} seeds on"
            f" {label}"
        )
