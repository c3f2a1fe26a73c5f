"""The loops of all learning here: training, prediction, and measuring on labelled data."""

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from fedtables.federation.costs import active_meter
from fedtables.federation.data import LabelledSet, TrainingSet, fetch
from fedtables.federation.execution import DEFAULT, Execution
from fedtables.federation.graphs import RECORDERS, Replayed, read_rate_from
from fedtables.federation.samples import see
from fedtables.federation.tasks.base import Task
from fedtables.federation.tasks.images import placed
from fedtables.federation.training.inputs import Inputs, Normalisation, batches, unit_range
from fedtables.federation.training.plan import Batch, DivergedError, SteadyPenalty, Training
from fedtables.federation.watching import show_epoch
from fedtables.federation.windows import Window
from fedtables.models.catalogue import noting_features

AT_ONCE = {"cpu": (250, 250 * 3 * 128 * 128), "cuda": (2000, 2**24)}
"""Most samples of a prediction's batch, and most values of their inputs. Past 250 samples
activations leave a core's cache; GPUs want work, and a U-Net of 32 channels holds some 12 GB for
256 slices of 256 x 256."""


Forward = Callable[[Callable[[torch.Tensor], torch.Tensor], torch.Tensor], torch.Tensor]
"""Takes a network and its inputs (n, c, h, w); returns outputs (n, ...) in float32."""


def forward_pass(execution: Execution, device: torch.device, full_batch: bool = True) -> Forward:
    """The forward pass of a step; eager for no full batch, or every size would be compiled."""
    autocast = device.type if execution.precision == "bf16" else ""
    if not (execution.compiled and full_batch):
        return functools.partial(_forward, autocast)
    return functools.partial(_compiled(), autocast)


def _forward(
    autocast: str, model: Callable[[torch.Tensor], torch.Tensor], inputs: torch.Tensor
) -> torch.Tensor:
    lone = LoneBatchNorm() if len(inputs) == 1 else contextlib.nullcontext()
    with lone, torch.autocast(autocast or "cpu", torch.bfloat16, enabled=bool(autocast)):
        return model(inputs).float()


@functools.cache
def _compiled() -> Callable[..., torch.Tensor]:
    """One compiled function for the process: networks of one shape share its code."""
    # Shapes in one process are networks x batch sizes. Past the limit dynamo would go eager
    # silently, and numbers would depend on what a worker ran before; so it fails.
    torch._dynamo.config.recompile_limit = 64
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    torch._functorch.config.donated_buffer = False  # FedIOD goes through the student's graph twice
    return torch.compile(_forward, dynamic=False)


class LoneBatchNorm(TorchFunctionMode):
    """BatchNorm of a single value per channel, which has no variance: it takes the running
    statistics, and leaves them as they are.

    So a client with one sample trains where the last map is 1 x 1; torch raises ValueError there.
    """

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if function is F.batch_norm and args[0].numel() == args[0].shape[1]:
            kwargs = {**(kwargs or {}), "training": False}
        return function(*args, **(kwargs or {}))


def training_steps(
    model: nn.Module,
    samples: TrainingSet,
    training: Training,
    inputs: Inputs,
    after_epoch: Callable[[int], None] | None = None,
    execution: Execution = DEFAULT,
) -> Generator[int]:
    """Train `model` in place on samples as they are stored; none leave it as it is. Yields after
    each step the samples of its batch.

    The mini-batch loss is the mean over the batch of sample weight x loss (weights are 1 if not
    given), as in Keras, plus the penalty. `after_epoch(e)` is called after epoch e = 1, 2, ... with
    the model in training mode. Raises DivergedError if an epoch's loss is not finite.
    """
    noting = noting_features(model) if training.penalty else contextlib.nullcontext(lambda: None)
    with noting as features:
        yield from _steps(model, samples, training, inputs, after_epoch, execution, features)


def _steps(
    model: nn.Module,
    samples: TrainingSet,
    training: Training,
    inputs: Inputs,
    after_epoch: Callable[[int], None] | None,
    execution: Execution,
    features: Callable[[], torch.Tensor | None],
) -> Generator[int]:
    plan, penalty = training.plan, training.penalty
    optimizer, schedule = training.optimizer, training.schedule
    # An earlier call's optimiser has a rate of its own.
    steady = penalty if isinstance(penalty, SteadyPenalty) else None
    replayable = optimizer is None and (penalty is None or steady is not None)
    if (meter := active_meter()) is not None:
        images, size = samples.images, plan.batch_size
        further = steady.passes if steady is not None else 0
        meter.book_training(
            model,
            images,
            plan.epochs,
            size,
            targets=samples.targets,
            replayable=replayable,
            further=further,
        )
        meter.book_looks(plan.epochs, after_epoch)
        return
    if inputs.generator is None:
        raise ValueError("training needs a generator of the shuffling axis")
    replayed = execution.compile == "graphs" and replayable
    if optimizer is None:
        optimizer = plan.make_optimizer(model.parameters())
        schedule = None if replayed else plan.make_schedule(optimizer)
    device = inputs.generator.device
    rate = torch.zeros((), device=device)
    if replayed:
        read_rate_from(rate, optimizer)
    forward = {whole: forward_pass(execution, device, whole) for whole in (True, False)}
    total = torch.zeros((), device=device)

    def step(batch: torch.Tensor, wanted: torch.Tensor, *weights: torch.Tensor) -> None:
        seen, wanted = inputs.pairs(batch, wanted)
        outputs = forward[len(batch) == plan.batch_size](model, seen)
        losses = training.loss(outputs, wanted)
        for own in weights:
            losses = losses * own
        objective = losses.mean()
        if penalty is not None:
            batch_now = Batch(seen, outputs, wanted, features())
            objective = objective + penalty(model, batch_now)
        optimizer.zero_grad(set_to_none=True)
        objective.backward()
        if plan.clip_norm:
            torch.nn.utils.clip_grad_norm_(model.parameters(), plan.clip_norm)
        optimizer.step()
        total.add_(losses.detach().sum())

    stored = [samples.images, samples.targets]
    if samples.weights is not None:
        stored.append(samples.weights)
    make = RECORDERS.get(device.type) if replayed else None
    recorder = None if make is None else make(device)
    streams = steady.streams if steady is not None else ()
    generators = [inputs.generator, *(stream.generator for stream in streams if stream.generator)]
    whole_step = Replayed(step, generators, recorder)
    rates = plan.rates()
    for epoch in range(1, plan.epochs + 1):
        model.train()
        total.zero_()
        if replayed:
            rate.fill_(next(rates))
        # Of samples in host memory by an order that lies there: no step waits for the device.
        place = samples.images.device
        for batch in batches(len(samples), plan.batch_size, inputs.generator, place):
            see(len(batch))
            take = whole_step if len(batch) == plan.batch_size else step
            take(*(fetch(tensor, batch, device) for tensor in stored))
            yield len(batch)
        if not math.isfinite(total.item()):
            raise DivergedError(
                f"the training loss is {total.item()} in epoch {epoch} of {plan.epochs}; lower lr"
                f" (now {plan.lr:g})"
            )
        show_epoch("loss", epoch, plan.epochs, total / max(1, len(samples)))
        if schedule is not None and len(samples):
            schedule.step()
        if after_epoch is not None:
            after_epoch(epoch)
    if replayed:  # gradients lie in the graph's memory
        optimizer.zero_grad(set_to_none=True)


def train(*arguments: Any, **options: Any) -> None:
    """Take all of the `training_steps`."""
    for _ in training_steps(*arguments, **options):
        pass


def prediction_batch(samples: torch.Tensor, device: torch.device) -> int:
    """Samples of a prediction's batch: as many as work well on a device, fewer of large ones, at
    least one.
    """
    most, values = AT_ONCE["cpu" if device.type == "cpu" else "cuda"]
    return max(1, min(most, values // max(1, samples[:1].numel())))


def predictions(
    model: nn.Module,
    images: torch.Tensor,
    *,
    normalise: Normalisation,
    window: Window | None = None,
) -> Iterator[torch.Tensor]:
    """Outputs of `model` in evaluation mode for stored `images` (n, c, *sides), without gradients,
    batch by batch, on the model's device, and of each by the windows of `window` if there is one;
    the mode is restored between batches.
    """
    device = next(itertools.chain(model.parameters(), model.buffers()), images).device
    for part in images.split(prediction_batch(images, device)):
        yield _predicted(model, part.to(device), normalise, window)  # and not held here meanwhile


def _predicted(
    model: nn.Module, part: torch.Tensor, normalise: Normalisation, window: Window | None
) -> torch.Tensor:
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        inputs = normalise(unit_range(part))
        if window is None:
            outputs = model(inputs)
        else:
            size = prediction_batch(window.seen(part[:1]), part.device)
            outputs = window.stitched(model, inputs, size)
    model.train(was_training)
    return outputs


def predict(
    model: nn.Module,
    images: torch.Tensor,
    *,
    normalise: Normalisation,
    window: Window | None = None,
) -> torch.Tensor:
    """`predictions` of all images at once, (n, ...)."""
    if (meter := active_meter()) is not None:
        outputs = meter.book_prediction(model, images if window is None else window.seen(images))
        if window is not None:
            outputs = outputs.new_empty((len(images), outputs.shape[1], *images.shape[2:]))
        return meter.keep(outputs)
    return torch.cat(list(predictions(model, images, normalise=normalise, window=window)))


def evaluate(
    model: nn.Module,
    held: LabelledSet,
    task: Task,
    normalise: Normalisation,
    trained_for: Task | None = None,
) -> dict[str, float]:
    """Metrics of `task` by name on labelled data, of a network that was trained for it, or for
    `trained_for`; none while planning. Outputs of the whole set are never held.

    Groups add metrics by group (`fedtables.metrics.running`). Raises ValueError where the metrics
    are undefined, as without any image.
    """
    images, window = held.images, held.window
    meter = active_meter()
    if meter is not None:
        meter.book_prediction(model, images if window is None else window.seen(images))
        return {}
    running = task.metrics()
    start = 0
    for outputs in predictions(model, images, normalise=normalise, window=window):
        part = slice(start, start + len(outputs))
        start = part.stop
        targets = held.targets[part].to(outputs.device)
        groups = None if held.groups is None else held.groups[part].to(outputs.device)
        running.update(placed(outputs, trained_for, task), targets, groups)
        del outputs  # before the next are made
    return running.compute()
