"""How fast a device trains a network, measured on random images."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from fedtables.benchmarks.running.execute import prepare_device
from fedtables.federation.costs import Meter, Workload
from fedtables.federation.data import TrainingSet
from fedtables.federation.execution import DEFAULT, Execution
from fedtables.federation.graphs import take_turns
from fedtables.federation.tasks.base import Task
from fedtables.federation.tasks.images import Classification
from fedtables.federation.tasks.pixels import Segmentation
from fedtables.federation.tasks.values import DenseRegression
from fedtables.federation.training.inputs import Inputs, Normalisation, channels_last
from fedtables.federation.training.loops import training_steps
from fedtables.federation.training.plan import Training, TrainingPlan
from fedtables.models.catalogue import build, entry

SAMPLE = 1.5e11
"""FLOPs of one measurement on a core: a few seconds of it."""
BATCHES = 8
"""In an epoch, at most."""
REPLAYED, MOST_REPLAYED = 2, 64
"""Epochs of a measurement where steps are replayed, at least and at most; the first few steps are
taken and recorded."""
LONG = 4e13
"""FLOPs of such a measurement that are enough."""
TASKS: dict[str, Callable[[int], Task]] = {
    "scores": Classification,
    "maps": Segmentation,
    "images": DenseRegression,
}
"""What networks are trained for, by what they make."""


@dataclass(frozen=True)
class Speed:
    """Of training."""

    flops: float
    """FLOP/s, as `fedtables.federation.costs` counts them."""
    samples: float
    """A second."""
    peak_bytes: int
    """The most that was allocated on a CUDA device; 0 elsewhere."""


def training_speed(
    load: Workload, device: str, execution: Execution = DEFAULT, seconds: float = 1.0
) -> Speed:
    """The speed at which `device`, or one core, trains the network of `load`: the best of several
    epochs that take `seconds` or more together. `execution.stacked` networks train side by side.

    On a core time is the process's own, so that other programs hardly slow it, and images are
    smaller where two of their size would take long. What a full device or a
    compiler raises is not caught.
    """
    sides = list(load.image_shape[1:])
    flops, count = flops_per_sample(load, sides), BATCHES * load.batch_size
    epochs = 1
    if execution.compile == "graphs":
        enough = int(LONG / (flops * count * execution.stacked))
        epochs = min(max(REPLAYED, enough), MOST_REPLAYED)
    if device == "cpu":
        made = entry(load.network)
        while 2 * flops > SAMPLE and all(
            side % (2 * made.multiple) == 0 and side >= 2 * made.smallest for side in sides
        ):
            sides = [side // 2 for side in sides]
            flops = flops_per_sample(load, sides)
        count = max(2, min(count, int(SAMPLE / flops)))
    on_cuda, threads = device.startswith("cuda"), torch.get_num_threads()
    clock = time.process_time if device == "cpu" else time.monotonic
    held = torch.cuda.memory_allocated(device) if on_cuda else 0  # of earlier ones, by libraries
    training = _training(load, sides, count, epochs, device, execution)
    prepare_device(device, 1, execution)
    if on_cuda:
        torch.cuda.reset_peak_memory_stats(device)
    try:
        times: list[float] = []
        while len(times) < 2 or sum(times) < seconds:
            started = clock()
            training()  # which ends by reading its loss, so that the device is done
            times.append(clock() - started)
    finally:
        torch.set_num_threads(threads)
    # The first is slower: memory is fetched, kernels are chosen.
    samples = count * epochs * execution.stacked / min(times)
    peak = torch.cuda.max_memory_allocated(device) - held if on_cuda else 0
    return Speed(samples * flops, samples, peak)


def _training(
    load: Workload,
    sides: Sequence[int],
    count: int,
    epochs: int,
    device: str,
    execution: Execution,
) -> Callable[[], object]:
    """Trains each of `execution.stacked` networks on `count` images of its own."""
    channels = load.image_shape[0]
    makes = entry(load.network).makes
    task = TASKS[makes](load.outputs)
    plan = TrainingPlan(epochs=epochs, batch_size=min(load.batch_size, count))
    normalise = Normalisation((0.5,) * channels, (0.25,) * channels)

    def images_and_targets() -> TrainingSet:
        shape = (count, channels, *sides)
        images = torch.randint(0, 256, shape, dtype=torch.uint8, device=device)
        if makes == "images":
            return TrainingSet(images, torch.rand(count, load.outputs, *sides, device=device))
        of_pixels = (count, *(sides if makes == "maps" else ()))
        return TrainingSet(images, torch.randint(0, load.outputs, of_pixels, device=device))

    def network() -> torch.nn.Module:
        return channels_last(build(load.network, channels, load.outputs, sides).to(device))

    sets = [images_and_targets() for _ in range(execution.stacked)]
    models = [network() for _ in sets]
    training = Training(task.loss, plan)
    return lambda: take_turns(
        [
            training_steps(
                model,
                held,
                training,
                Inputs(normalise, generator=torch.Generator(device)),
                execution=execution,
            )
            for model, held in zip(models, sets, strict=True)
        ],
        torch.device(device),
    )


def flops_per_sample(load: Workload, sides: Sequence[int]) -> float:
    """Of a training step on images of these sides."""
    channels = load.image_shape[0]
    with torch.device("meta"):
        counted = build(load.network, channels, load.outputs, sides)
    meter = Meter()
    meter.book_training(counted, torch.empty((1, channels, *sides)), epochs=1, batch_size=1)
    return meter.work.flops
