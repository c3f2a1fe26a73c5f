"""Local training of the narrow ResNet-8, as it can be run: images per second, and the accuracy that
comes of it.

A round trains one fresh network each way, from the same seed, and every round from another; so the
accuracies are over as many seeds as there are rounds, and one for the warm-up, which compiles.
"""

import functools
import statistics
import time

import pytest
import torch
import torch.nn.functional as F

from fedtables.benchmarks.running.execute import prepare_device
from fedtables.benchmarks.speed.pairs import compare
from fedtables.datasets import catalogue
from fedtables.federation.data import LabelledSet, TrainingSet
from fedtables.federation.execution import Execution
from fedtables.federation.tasks.images import Classification
from fedtables.federation.training.inputs import Inputs, Normalisation
from fedtables.federation.training.loops import evaluate, train
from fedtables.federation.training.plan import Training, TrainingPlan
from fedtables.models.catalogue import build

NETWORK = "resnet8-narrow"
PLAN = TrainingPlan(epochs=3, batch_size=64)
TRAIN, TEST = 40 * PLAN.batch_size, 2000
EXECUTIONS = {
    "fp32": Execution(),
    "bf16": Execution(precision="bf16"),
    "compiled": Execution(compile="default"),
    "compiled, bf16": Execution(precision="bf16", compile="default"),
}


def data_of(size: int) -> tuple[str, dict[str, TrainingSet], Normalisation]:
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
        sets[name] = TrainingSet(images, torch.from_numpy(split.labels[chosen]))
    source = catalogue.source(resolved.used)
    return resolved.label, sets, Normalisation(source.mean, source.std)


@pytest.mark.parametrize("size", [32, 16])
def test_local_training(benchmark, size):
    label, sets, normalise = data_of(size)
    task, test = Classification(10), sets["test"]
    accuracies: dict[str, list[float]] = {name: [] for name in EXECUTIONS}

    def way(name: str) -> float:
        seed, execution = len(accuracies[name]), EXECUTIONS[name]
        torch.manual_seed(seed)
        model = build(NETWORK, 3, 10, size).to(memory_format=torch.channels_last)
        inputs = Inputs(normalise, generator=torch.Generator().manual_seed(seed))
        prepare_device("cpu", 1, execution)
        started = time.perf_counter()
        train(model, sets["train"], Training(task.loss, PLAN), inputs, execution=execution)
        passed = time.perf_counter() - started
        measured = evaluate(model, LabelledSet(test.images, test.targets, ""), task, normalise)
        accuracies[name].append(measured["accuracy"])
        return passed

    ways = {name: functools.partial(way, name) for name in EXECUTIONS}
    comparison = compare(benchmark, ways, TRAIN * PLAN.epochs)
    for name, found in accuracies.items():
        spread = f"{statistics.mean(found):.3f} +- {statistics.stdev(found):.3f}"
        comparison.notes[name] = f"accuracy {spread} of {len(found)} seeds on {label}"
