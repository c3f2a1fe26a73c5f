"""Annotations as tasks and as targets."""

from collections.abc import Sequence

import numpy as np
import torch

from fedtables.datasets.source import CLASS, MAP, SEGMENTS, Annotation
from fedtables.federation.tasks.base import Task
from fedtables.federation.tasks.images import Classification
from fedtables.federation.tasks.pixels import Segmentation
from fedtables.federation.tasks.values import DenseRegression
from fedtables.federation.windows import interpolated, sides_of


def task_of(annotation: Annotation) -> Task:
    """The task of predicting an annotation from the image."""
    kinds: dict[str, type[Classification] | type[Segmentation] | type[DenseRegression]] = {
        CLASS: Classification,
        SEGMENTS: Segmentation,
        MAP: DenseRegression,
    }
    return kinds[annotation.kind](annotation.size)


def targets_of(annotation: Annotation, array: np.ndarray) -> torch.Tensor:
    """An annotation's array (`fedtables.datasets.source.annotated`) as targets of its task.

    Classes (n,) and instances (n, *sides) as int64; segments (n, *sides) as uint8, as they are
    stored; a map (n, c, *sides) as float32, from uint8 in [0, 1].
    """
    targets = torch.from_numpy(array)
    if annotation.kind == SEGMENTS:
        return targets
    if annotation.kind != MAP:
        return targets.long()
    return targets.float() / 255 if targets.dtype == torch.uint8 else targets


def resize_targets(targets: torch.Tensor, size: int | Sequence[int]) -> torch.Tensor:
    """Targets for samples with all sides of `size` pixels, or with the sides it lists.

    Segments and instances (n, *sides) take what is in the middle of a pixel; maps float32 (n, c,
    *sides) the mean of what it covers, or are interpolated when they grow, as images are. Classes
    (n,) stay.
    """
    if targets.ndim == 1:
        return targets
    segments = not targets.is_floating_point()
    old = targets.shape[1:] if segments else targets.shape[2:]
    sides = sides_of(size, len(old))
    if tuple(old) == sides:
        return targets
    if not segments:
        return interpolated(targets, sides)
    for axis, (new, side) in enumerate(zip(sides, old, strict=True), 1):
        places = (torch.arange(new, device=targets.device) * 2 + 1) * side // (2 * new)
        targets = targets.index_select(axis, places)
    return targets
