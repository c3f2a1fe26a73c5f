"""The two loops that all learning here goes through: training and prediction on tensors in
memory.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar

import torch
from torch import nn

from federation.augmentation.basic import Augmentation, augment, augment_pairs, filled
from federation.costs import active_meter
from federation.execution import DEFAULT, Execution
from federation.graphs.replay import Replayed, read_rate_from, recorder_on
from federation.samples import see
from federation.seeds import Stream
from federation.training.norms import LoneBatchNorm
from federation.watching import show_epoch
from federation.windows import Window
from results.names import check_known

M = TypeVar("M", bound=nn.Module)
P = ParamSpec("P")

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Takes outputs (n, ...) and targets (n, ...); returns one loss per sample (n,)."""

Forward = Callable[[Callable[[torch.Tensor], torch.Tensor], torch.Tensor], torch.Tensor]
"""Takes a network and its inputs (n, c, h, w); returns outputs (n, ...) in float32."""


@dataclass(frozen=True)
class Batch:
    """What a training step has before it: a batch, and what the model makes of it.

    Empty tensors under DP-SGD, where no sample may be seen outside of the clipped loss.
    """

    inputs: torch.Tensor
    """As the network takes them, augmented and normalised: float32 (n, c, *sides)."""
    outputs: torch.Tensor
    """Of the model that is trained, (n, ...), with their graph."""
    targets: torch.Tensor
    """(n, ...), moved along with the augmentation."""


Penalty = Callable[[nn.Module, Batch], torch.Tensor]
"""Takes the model and a batch; returns a scalar to add to the batch's mean loss."""


@dataclass(frozen=True)
class SteadyPenalty:
    """A penalty that is the same function in every step, so that a CUDA graph can hold it: what
    varies it reads from tensors or draws from `streams`, and it never waits for the device.
    """

    term: Penalty
    streams: tuple[Stream, ...] = ()
    """What it draws from."""

    def __call__(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        return self.term(model, batch)


AT_ONCE = {"cpu": (250, 250 * 3 * 128 * 128), "cuda": (2000, 2**24)}
"""Most samples of a prediction's batch, and most values of their inputs. Past 250 samples
activations leave a core's cache; GPUs want work, and a U-Net of 32 channels holds some 12 GB for
256 slices of 256 x 256."""


class DivergedError(Exception):
    """Training produced a loss that is not a number."""


@dataclass(frozen=True)
class TrainingPlan:
    """How a network is trained."""

    epochs: int
    batch_size: int
    lr: float = 1e-3
    optimizer: str = "adam"
    """`adam`, `rmsprop` or `sgd`."""
    momentum: float = 0.0
    """Of SGD."""
    weight_decay: float = 0.0
    schedule: str = "constant"
    """`constant`, or `cosine` from `lr` to `final_lr` over the epochs."""
    final_lr: float = 0.0
    clip_norm: float = 0.0
    """Largest norm of a step's gradient, over all parameters; 0 for no limit."""

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 1 or not self.lr > 0:
            raise ValueError(f"epochs and batch_size must be at least 1 and lr above 0: {self}")
        check_known(self, optimizer=("adam", "rmsprop", "sgd"), schedule=("constant", "cosine"))

    def make_optimizer(
        self, parameters: Iterable[nn.Parameter], *, fused: bool = True
    ) -> torch.optim.Optimizer:
        """The optimiser; not `fused` if its state or gradients may have another memory layout than
        the weights.

        A snapshot restores states without their layout, and `torch.func` returns gradients in any.
        """
        # What is not fused goes over all tensors at once on CUDA, unless fused is False: then it
        # goes one by one.
        options: dict[str, Any] = {
            "lr": self.lr,
            "weight_decay": self.weight_decay,
            "fused": fused or None,
        }
        if self.optimizer == "sgd":
            return torch.optim.SGD(parameters, momentum=self.momentum, **options)
        if self.optimizer == "rmsprop":  # which has no fused form
            return torch.optim.RMSprop(parameters, lr=self.lr, weight_decay=self.weight_decay)
        return torch.optim.Adam(parameters, **options)

    def rates(self) -> Iterator[float]:
        """The learning rate of each epoch, without end."""
        clock = self.make_optimizer([nn.Parameter(torch.zeros(1))], fused=False)
        schedule = self.make_schedule(clock)
        while True:
            yield clock.param_groups[0]["lr"]
            clock.step()
            schedule.step()

    def make_schedule(
        self, optimizer: torch.optim.Optimizer
    ) -> torch.optim.lr_scheduler.LRScheduler:
        if self.schedule == "cosine":
            return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.epochs, self.final_lr)
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)


CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
"""The memory format of images (n, c, h, w) and of volumes (n, c, d, h, w)."""


def channels_last(module: M) -> M:
    """`module` with its weights in the memory format that `Normalisation` gives its inputs."""
    of_volumes = any(parameter.ndim == 5 for parameter in module.parameters())
    return module.to(memory_format=CHANNELS_LAST[5 if of_volumes else 4])


class InputTransform(Protocol):
    """What happens to samples before they are normalised, for example an undersampling of k-space:
    a network sees the result, not the sample.

    A frozen dataclass without state, whose repr names its settings: stages are keyed by it.
    """

    def __call__(self, samples: torch.Tensor) -> torch.Tensor:
        """float32 (n, c, *sides) to float32 of as many samples; the same samples always give the
        same.
        """


@dataclass(frozen=True)
class Normalisation:
    """From samples as `unit_range` gives them, (n, c, *sides), to network inputs: what the
    transform leaves of them, then (x - mean) / std per channel.

    Raises ValueError for samples as they are stored, in uint8.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    transform: InputTransform | None = None
    """What stands between the stored sample and the network; None for nothing."""

    def __call__(self, samples: torch.Tensor) -> torch.Tensor:
        if not samples.is_floating_point():
            raise ValueError(
                f"normalise takes samples in [0, 1], not {samples.dtype}; give it"
                " unit_range(samples) of federation.training.loops"
            )
        if self.transform is not None:
            samples = self.transform(samples)
        one_each = (-1, *[1] * (samples.ndim - 2))
        mean, std = (filled(values, samples).view(one_each) for values in (self.mean, self.std))
        # Convolutions on CPUs and tensor cores are faster with channels last; results differ by
        # rounding.
        return ((samples - mean) / std).contiguous(memory_format=CHANNELS_LAST[samples.ndim])


def unit_range(samples: torch.Tensor) -> torch.Tensor:
    """Stored samples as float32: uint8 ones in [0, 1], float32 ones as they are.

    Raises ValueError for samples of another dtype.
    """
    if samples.dtype == torch.uint8:
        return samples.to(torch.float32).div_(255)
    if samples.dtype != torch.float32:
        raise ValueError(f"samples are uint8 or float32, not {samples.dtype}")
    return samples


def augmented(
    samples: torch.Tensor,
    how: Augmentation | None,
    generator: torch.Generator | None,
    mean: tuple[float, ...],
) -> torch.Tensor:
    """Stored samples (n, c, *sides) as `unit_range` gives them, after `augment`.

    Raises ValueError for samples that the augmentation is not made for.
    """
    _check_shift(samples, how)
    return augment(unit_range(samples), how, generator, mean=mean)


def _check_shift(samples: torch.Tensor, how: Augmentation | None) -> None:
    if how is not None and how.channel_shift and samples.dtype != torch.uint8:
        raise ValueError(
            "a channel shift is a share of the pixel range, and float32 samples have none; set"
            " augmentation.channel_shift to 0"
        )


def training_pairs(
    samples: torch.Tensor,
    targets: torch.Tensor,
    normalise: Normalisation,
    augmentation: Augmentation | None = None,
    generator: torch.Generator | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """What a network is trained on: stored samples (n, c, *sides), augmented if that is asked for,
    then normalised; and their targets, those of pixels (n, *sides) or (n, k, *sides) moved along.

    Raises ValueError for samples that the augmentation is not made for.
    """
    _check_shift(samples, augmentation)
    sides = samples.shape[2:]
    of_pixels = targets.ndim > len(sides) and targets.shape[-len(sides) :] == sides
    maps = targets if of_pixels else None
    changed, moved = augment_pairs(
        unit_range(samples), maps, augmentation, generator, normalise.mean
    )
    return normalise(changed), targets if moved is None else moved


def batches(samples: int, batch_size: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Shuffled index batches of one epoch; a last batch of a single sample is left out (BatchNorm
    cannot take it).
    """
    order = torch.randperm(samples, generator=generator, device=generator.device)
    for batch in order.split(batch_size):
        if len(batch) > 1 or (len(batch) == 1 and 1 in (batch_size, samples)):
            yield batch


def forward_pass(execution: Execution, device: torch.device, full_batch: bool = True) -> Forward:
    """The forward pass of a training step. What is no full batch runs eagerly, or every size would
    be compiled.
    """
    autocast = device.type if execution.precision == "bf16" else ""
    if not (execution.compiled and full_batch):
        return functools.partial(_forward, autocast)
    return functools.partial(_compiled(execution.compile), autocast)


def _forward(
    autocast: str, model: Callable[[torch.Tensor], torch.Tensor], inputs: torch.Tensor
) -> torch.Tensor:
    lone = LoneBatchNorm() if len(inputs) == 1 else contextlib.nullcontext()
    with lone, torch.autocast(autocast or "cpu", torch.bfloat16, enabled=bool(autocast)):
        return model(inputs).float()


@functools.cache
def _compiled(mode: str) -> Callable[..., torch.Tensor]:
    """One compiled function for the whole process: networks of the same shape, of whatever client
    or cell, share its code.
    """
    # Shapes in one process are networks x batch sizes. Past the limit dynamo would go eager
    # silently, and numbers would depend on what a worker ran before; so it fails.
    torch._dynamo.config.recompile_limit = 64
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    torch._functorch.config.donated_buffer = False  # FedIOD goes through the student's graph twice
    return torch.compile(_forward, mode=None if mode == "default" else mode, dynamic=False)


def training_steps(
    model: nn.Module,
    images: torch.Tensor,
    targets: torch.Tensor,
    loss: Loss,
    plan: TrainingPlan,
    *,
    normalise: Normalisation,
    generator: torch.Generator | None,
    augmentation: Augmentation | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    schedule: torch.optim.lr_scheduler.LRScheduler | None = None,
    sample_weights: torch.Tensor | None = None,
    penalty: Penalty | None = None,
    after_epoch: Callable[[int], None] | None = None,
    execution: Execution = DEFAULT,
) -> Generator[int]:
    """Train `model` in place on stored `images` (n, c, *sides) and `targets` (n, ...); no images
    leave it as it is. Yields after each step the samples of its batch.

    The mini-batch loss is the mean over the batch of sample weight x loss (weights are 1 if not
    given), as in Keras, plus the penalty. An `optimizer`, with its `schedule` if it has one, goes
    on from an earlier call. `after_epoch(e)` is called after epoch e = 1, 2, ... with the model in
    training mode. Raises DivergedError if an epoch's loss is not finite.
    """
    # An earlier call's optimiser has a rate of its own.
    steady = penalty if isinstance(penalty, SteadyPenalty) else None
    replayable = optimizer is None and (penalty is None or steady is not None)
    meter = active_meter()
    if meter is not None:
        meter.book_training(model, images, plan.epochs, plan.batch_size, replayable=replayable)
        if after_epoch is not None:
            with meter.repeated(plan.epochs, counted=False):
                after_epoch(1)
        return
    if generator is None:
        raise ValueError("training needs a generator of the shuffling axis")
    replayed = execution.compile == "graphs" and replayable
    if optimizer is None:
        optimizer = plan.make_optimizer(model.parameters())
        schedule = None if replayed else plan.make_schedule(optimizer)
    rate = torch.zeros((), device=images.device)
    if replayed:
        read_rate_from(rate, optimizer)
    forward = {whole: forward_pass(execution, images.device, whole) for whole in (True, False)}
    total = torch.zeros((), device=images.device)

    def step(samples: torch.Tensor, wanted: torch.Tensor, *weights: torch.Tensor) -> None:
        inputs, wanted = training_pairs(samples, wanted, normalise, augmentation, generator)
        outputs = forward[len(samples) == plan.batch_size](model, inputs)
        losses = loss(outputs, wanted)
        for own in weights:
            losses = losses * own
        objective = losses.mean()
        if penalty is not None:
            objective = objective + penalty(model, Batch(inputs, outputs, wanted))
        optimizer.zero_grad(set_to_none=True)
        objective.backward()
        if plan.clip_norm:
            torch.nn.utils.clip_grad_norm_(model.parameters(), plan.clip_norm)
        optimizer.step()
        total.add_(losses.detach().sum())

    stored = [images, targets, *([] if sample_weights is None else [sample_weights])]
    recorder = recorder_on(images.device) if replayed else None
    streams = steady.streams if steady is not None else ()
    generators = [generator, *(stream.generator for stream in streams if stream.generator)]
    whole_step = Replayed(step, generators, recorder)
    rates = plan.rates()
    for epoch in range(1, plan.epochs + 1):
        model.train()
        total.zero_()
        if replayed:
            rate.fill_(next(rates))
        for batch in batches(len(images), plan.batch_size, generator):
            see(len(batch))
            take = whole_step if len(batch) == plan.batch_size else step
            take(*(tensor[batch] for tensor in stored))
            yield len(batch)
        if not math.isfinite(total.item()):
            raise DivergedError(
                f"the training loss is {total.item()} in epoch {epoch} of {plan.epochs}; lower lr"
                f" (now {plan.lr:g})"
            )
        show_epoch("loss", epoch, plan.epochs, total / max(1, len(images)))
        if schedule is not None and len(images):
            schedule.step()
        if after_epoch is not None:
            after_epoch(epoch)
    if replayed:  # gradients lie in the graph's memory
        optimizer.zero_grad(set_to_none=True)


def _to_the_end(steps: Callable[P, Generator[int]]) -> Callable[P, None]:
    def train(*arguments: P.args, **options: P.kwargs) -> None:
        """Take the `training_steps` of these arguments, all of them."""
        for _ in steps(*arguments, **options):
            pass

    return train


train = _to_the_end(training_steps)


def prediction_batch(samples: torch.Tensor) -> int:
    """Samples of a prediction's batch: as many as work well, fewer of large ones, at least one."""
    most, values = AT_ONCE["cpu" if samples.device.type == "cpu" else "cuda"]
    return max(1, min(most, values // max(1, samples[:1].numel())))


def predictions(
    model: nn.Module,
    images: torch.Tensor,
    *,
    normalise: Normalisation,
    window: Window | None = None,
) -> Iterator[torch.Tensor]:
    """Outputs of `model` in evaluation mode for stored `images` (n, c, *sides), without gradients,
    batch by batch, and of each by the windows of `window` if there is one; the mode is restored
    between batches.
    """
    for part in images.split(prediction_batch(images)):
        yield _predicted(model, part, normalise, window)  # and not held here meanwhile


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
            outputs = window.stitched(model, inputs, prediction_batch(window.seen(part[:1])))
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
    meter = active_meter()
    if meter is not None and window is None:
        return meter.book_prediction(model, images)
    if meter is not None and window is not None:
        outputs = meter.book_prediction(model, window.seen(images))
        return outputs.new_empty((len(images), outputs.shape[1], *images.shape[2:]))
    return torch.cat(list(predictions(model, images, normalise=normalise, window=window)))
