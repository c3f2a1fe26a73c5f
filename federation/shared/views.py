"""What semi-supervised methods share: their loop, views of images, and the moving average of a
network that they evaluate.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from fedtables.federation.augmentation import Augmentation, RandAugment, rand_augment
from fedtables.federation.data import LabelledSet
from fedtables.federation.federation import Federation
from fedtables.federation.seeds import Stream
from fedtables.federation.training.inputs import augmented


def labelled_set(federation: Federation) -> LabelledSet:
    """The server's labelled images, for methods that give unlabelled ones labels: ValueError if it
    has none.

    Also raises ValueError if the task's outputs are not scores of classes, of which a label could
    be the best.
    """
    if federation.task.classes is None:
        raise ValueError(
            f"pseudo-labels are classes, and {federation.task} has none; use classification or"
            " segmentation"
        )
    return federation.probe()


def training_steps(
    federation: Federation,
    steps: int,
    interval: int,
    name: str,
    evaluated: nn.Module,
    **parts: Any,
) -> Iterator[tuple[int, Stream]]:
    """Steps 0, 1, ... of a training, each with the stream that it draws from, in rounds of
    `interval` steps.

    Of the `parts` that a snapshot keeps, networks are in training mode; they must be finite at the
    end of a round, when `evaluated` is measured. Schedules step once a round.
    """
    trained = [part for part in parts.values() if isinstance(part, nn.Module)]
    alike = steps % interval == 0
    for number in federation.rounds(-(-steps // interval), alike=alike, **parts):
        stream = federation.streams.shuffling(name, number)
        first = (number - 1) * interval
        for model in trained:
            model.train()
        for step in federation.steps(min(interval, steps - first), name=name):
            yield first + step, stream
        for part in parts.values():
            if isinstance(part, torch.optim.lr_scheduler.LRScheduler):
                part.step()
        federation.networks.check_finite(*trained)
        federation.evaluation.track(evaluated)


def weak_view(federation: Federation, images: torch.Tensor, stream: Stream) -> torch.Tensor:
    """Stored images (n, c, h, w) as `unit_range` gives them, with the run's augmentation; for a
    dense task only with its change of colour.
    """
    how = federation.augmentation
    if federation.task.dense and how is not None:
        how = Augmentation(channel_shift=how.channel_shift)
    return augmented(images, how, stream.generator, federation.normalise.mean)


def public_view(federation: Federation, number: int) -> torch.Tensor:
    """The public images as all parties see them in a round, of their type, augmented by a shared
    seed, so that no image crosses.
    """
    stored, stream = federation.public.images, federation.streams.shuffling("view", number)

    def seen(part: torch.Tensor) -> torch.Tensor:
        view = weak_view(federation, part.to(federation.networks.device), stream)
        view = view if stored.is_floating_point() else view.mul_(255).round_().to(torch.uint8)
        return view.to(stored.device)

    return torch.cat([seen(part) for part in stored.split(1000)])


def strong_view(
    federation: Federation,
    images: torch.Tensor,
    stream: Stream,
    how: RandAugment,
    cutout: float = 0.5,
) -> torch.Tensor:
    """uint8 images (n, c, h, w) in [0, 1]: a weak view, then RandAugment, then a cutout whose side
    is a share of theirs.

    For a dense task neither what moves pixels nor the cutout. Raises ValueError for float32 images.
    """
    if images.dtype != torch.uint8:
        raise ValueError("RandAugment changes pixels, and float32 images have none")
    dense = federation.task.dense
    weak = weak_view(federation, images, stream)
    strong = rand_augment(
        weak, replace(how, geometric=how.geometric and not dense), stream.generator
    )
    hole = 0 if dense else round(cutout * min(images.shape[2:]))
    cut = Augmentation(cutout=hole) if hole else None
    return augmented(strong, cut, stream.generator, federation.normalise.mean)


def update_ema(ema: nn.Module, model: nn.Module, decay: float) -> None:
    """ema <- decay ema + (1 - decay) model in place, for parameters; buffers are the model's."""
    update = get_ema_multi_avg_fn(decay)
    update(list(ema.parameters()), list(model.parameters()), torch.zeros(()))
    for kept, current in zip(ema.buffers(), model.buffers(), strict=True):
        kept.copy_(current)
