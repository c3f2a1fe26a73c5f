"""Local training of the narrow ResNet-8, as it can be run: images per second, and the accuracy that
comes of it.

A round trains one fresh network each way, from the same seed, and every round from another; so the
accuracies are over as many seeds as there are rounds, and one for the warm-up. What a compiled
network's first step costs, with nothing compiled before, is noted beside it: a run shorter than
that gains nothing. FEDTABLES_SPEED_DEVICE names the device (default cpu).
"""

from __future__ import annotations

import functools
import os
import statistics
import time

import pytest
import torch
import torch._inductor.config

from benchmarks.running.execute import prepare_device
from benchmarks.speed.pairs import annotate, compare
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
if DEVICE.startswith("cuda"):
    EXECUTIONS["tf32"] = Execution(precision="tf32")
    EXECUTIONS["CUDA graphs, bf16"] = Execution(precision="bf16", compile="reduce-overhead")


@functools.cache
def _data(size: int) -> tuple[str, dict[str, torch.Tensor], Normalisation]:
    """CIFAR-10, or what stands in for it: its label, images and targets, and how to normalise
    them.
    """
    resolved = catalogue.resolve("cifar10")
    tensors = {}
    for name, count in (("train", TRAIN), ("test", TEST)):
        split = catalogue.load(resolved.used)[name]
        chosen = torch.randperm(len(split.images), generator=torch.Generator().manual_seed(0))[
            :count
        ].numpy()
        images = torch.nn.functional.interpolate(
            torch.from_numpy(split.images[chosen]).float(), (size, size), mode="area"
        )
        tensors[name] = images.round().to(torch.uint8).to(DEVICE)
        tensors[f"{name} targets"] = torch.from_numpy(split.labels[chosen]).to(DEVICE)
    source = catalogue.source(resolved.used)
    return resolved.label, tensors, Normalisation(source.mean, source.std)


def _network(size: int, seed: int) -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return build(NETWORK, 3, 10, size).to(DEVICE)


def _bare_loop(
    model: torch.nn.Module, tensors: dict[str, torch.Tensor], normalise: Normalisation, seed: int
) -> None:
    """What one writes without the suite: images in memory, the usual memory layout (NCHW), no
    checks.
    """
    images, targets = tensors["train"], tensors["train targets"]
    mean, std = (
        torch.tensor(part, device=DEVICE).view(1, -1, 1, 1)
        for part in (normalise.mean, normalise.std)
    )
    generator = torch.Generator(DEVICE).manual_seed(seed)
    optimizer = PLAN.make_optimizer(model.parameters())
    model.train()
    for _ in range(PLAN.epochs):
        for batch in torch.randperm(len(images), generator=generator, device=DEVICE).split(
            PLAN.batch_size
        ):
            loss = torch.nn.functional.cross_entropy(
                model((unit_range(images[batch]) - mean) / std), targets[batch]
            )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
    loss.item()  # the end of what a device has been given to do


def _suite(
    model: torch.nn.Module,
    tensors: dict[str, torch.Tensor],
    normalise: Normalisation,
    seed: int,
    execution: Execution,
    limit: int = TRAIN,
) -> None:
    prepare_device(DEVICE, 1, execution)
    train(
        model.to(memory_format=torch.channels_last),
        TrainingSet(tensors["train"][:limit], tensors["train targets"][:limit]),
        Training(Classification(10).loss, PLAN),
        Inputs(normalise, generator=torch.Generator(DEVICE).manual_seed(seed)),
        execution=execution,
    )


def _first_step(execution: Execution, size: int) -> float:
    """Seconds of a run of a single step, when nothing is compiled yet, in this process or on
    disk.
    """
    _, tensors, normalise = _data(size)
    torch._dynamo.reset()
    with torch._inductor.config.patch(force_disable_caches=True):
        started = time.perf_counter()
        _suite(_network(size, 0), tensors, normalise, 0, execution, PLAN.batch_size)
        return time.perf_counter() - started


@pytest.mark.parametrize("size", [32, 16])
def test_local_training(benchmark, size):
    label, tensors, normalise = _data(size)
    models: dict[str, list[torch.nn.Module]] = {}

    def way(name: str, fit) -> None:
        trained = models.setdefault(name, [])
        model = _network(size, seed=len(trained))
        fit(model, tensors, normalise, len(trained))
        trained.append(model)

    ways = {"bare loop (NCHW)": functools.partial(way, "bare loop (NCHW)", _bare_loop)}
    for name, execution in EXECUTIONS.items():
        ways[name] = functools.partial(way, name, functools.partial(_suite, execution=execution))
    first = {
        name: _first_step(execution, size)
        for name, execution in EXECUTIONS.items()
        if execution.compile != "off"
    }
    comparison = compare(benchmark, ways, work=TRAIN * PLAN.epochs)
    task, notes = Classification(10), {}
    for name, trained in models.items():
        accuracies = [
            evaluate(
                model, tensors["test"], tensors["test targets"], task=task, normalise=normalise
            )["accuracy"]
            for model in trained
        ]
        spread = f" +- {statistics.stdev(accuracies):.3f}" if len(accuracies) > 1 else ""
        notes[name] = (
            f"accuracy {statistics.mean(accuracies):.3f}{spread} of {len(accuracies)} seeds on"
            f" {label}"
        )
        if name in first:
            notes[name] += f"; first step {first[name]:.0f} s"
    annotate(benchmark, comparison, notes)
