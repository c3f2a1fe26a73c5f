"""Tasks: what a network's outputs mean, how they are trained, and how they are measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F

from datasets.annotations import CLASS, IGNORE, MAP, SEGMENTS, Annotation
from federation.resizing import interpolated, sides_of
from metrics.classification import UNKNOWN
from metrics.running import AbsoluteError, Accuracy, MeanAUC, Overlap, RunningMetrics


class Task(Protocol):
    """What a federation needs to know of the problem it solves.

    A network's outputs are (n, outputs), or (n, outputs, *sides) of samples (n, c, *sides) if the
    task is dense; targets are of n samples, in the form that the task states.
    """

    @property
    def outputs(self) -> int:
        """Size of a network's last layer: its units, or its channels if the task is dense."""

    @property
    def dense(self) -> bool:
        """Whether there is an output for each pixel rather than for each image."""

    @property
    def classes(self) -> int | None:
        """Classes that outputs are scores of; None if they are values."""

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of what `metrics` measures without groups; the first is the headline."""

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Supervised loss per sample, (n,); of a dense task the mean over its pixels."""

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        """Outputs as probabilities, same shape; as predictions where a task has none."""

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Loss per sample, (n,), against what `probabilities` makes of a teacher's outputs."""

    def metrics(self) -> RunningMetrics:
        """What outputs are measured by, without any yet; `metric_names`, and with groups more."""


@dataclass(frozen=True)
class Classification:
    """One label out of `classes` per image; targets int64 (n,)."""

    classes: int

    @property
    def outputs(self) -> int:
        return self.classes

    @property
    def dense(self) -> bool:
        return False

    @property
    def metric_names(self) -> tuple[str, ...]:
        return ("accuracy",)

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(outputs, targets, reduction="none")

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.softmax(dim=1)

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Categorical cross-entropy between teacher probabilities and the student, l_1 of DLAD's
        Eq. 2.
        """
        return F.cross_entropy(outputs, targets, reduction="none")

    def metrics(self) -> Accuracy:
        return Accuracy()


@dataclass(frozen=True)
class Segmentation:
    """One label out of `classes` per pixel or voxel; targets int64 (n, *sides), 255 where there is
    no label.
    """

    classes: int

    @property
    def outputs(self) -> int:
        return self.classes

    @property
    def dense(self) -> bool:
        return True

    @property
    def metric_names(self) -> tuple[str, ...]:
        return ("miou",)

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy over the labelled pixels of each image, (n,); 0 for an image without
        any.
        """
        pixels = (
            outputs.flatten(2).transpose(1, 2).flatten(0, 1)
        )  # of maps the loss has no deterministic gradient on CUDA
        losses = (
            F.cross_entropy(pixels, targets.flatten(), ignore_index=IGNORE, reduction="none")
            .view(len(targets), -1)
            .sum(dim=1)
        )
        return losses / (targets != IGNORE).flatten(1).sum(dim=1).clamp(min=1)

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.softmax(dim=1)

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean over all pixels, (n,), of the cross-entropy with teacher probabilities (n, classes,
        *sides).
        """
        return mean_over_pixels(F.cross_entropy(outputs, targets, reduction="none"))

    def metrics(self) -> Overlap:
        return Overlap(self.classes, IGNORE)


@dataclass(frozen=True)
class DenseRegression:
    """`channels` real values per pixel or voxel; targets float32 (n, channels, *sides) of
    `targets_of`.
    """

    channels: int

    @property
    def outputs(self) -> int:
        return self.channels

    @property
    def dense(self) -> bool:
        return True

    @property
    def classes(self) -> None:
        return None

    @property
    def metric_names(self) -> tuple[str, ...]:
        return ("mean-absolute-error",)

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean absolute error of each image, (n,)."""
        return mean_over_pixels((outputs - targets).abs())

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        """The outputs as they are: values have no probabilities."""
        return outputs

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean absolute difference from a teacher's outputs, (n,)."""
        return self.loss(outputs, targets)

    def metrics(self) -> AbsoluteError:
        return AbsoluteError()


@dataclass(frozen=True)
class MultiLabel:
    """Any number of `findings` per image, each present or not; targets uint8 (n, findings), 255
    where that is not known.
    """

    findings: tuple[str, ...]

    @property
    def outputs(self) -> int:
        return len(self.findings)

    @property
    def dense(self) -> bool:
        return False

    @property
    def classes(self) -> None:
        """Outputs are not scores of which the highest is the label."""
        return None

    @property
    def metric_names(self) -> tuple[str, ...]:
        return ("mauc",)

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean binary cross-entropy over the findings that are known of each image, (n,); 0 for an
        image without any.
        """
        known = targets != UNKNOWN
        losses = (
            F.binary_cross_entropy_with_logits(
                outputs, (targets == 1).to(outputs), reduction="none"
            )
            * known
        )
        return losses.sum(dim=1) / known.sum(dim=1).clamp(min=1)

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.sigmoid()

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean over findings, (n,), of the binary cross-entropy with teacher probabilities (n,
        findings).
        """
        return F.binary_cross_entropy_with_logits(outputs, targets, reduction="none").mean(dim=1)

    def metrics(self) -> MeanAUC:
        return MeanAUC()

    def place(self, outputs: torch.Tensor, findings: Sequence[str]) -> torch.Tensor:
        """Outputs (n, len(findings)) for the findings of another label set, in the places of this
        one's; NaN where it has none.
        """
        placed = outputs.new_full((len(outputs), len(self.findings)), math.nan)
        for column, finding in enumerate(self.findings):
            if finding in findings:
                placed[:, column] = outputs[:, list(findings).index(finding)]
        return placed


def mean_over_pixels(values: torch.Tensor) -> torch.Tensor:
    """The mean of each sample, (n,), of values (n, ...)."""
    return values.mean(dim=tuple(range(1, values.ndim)))


def placed(outputs: torch.Tensor, trained_task: Task | None, task: Task) -> torch.Tensor:
    """Outputs of a network that was trained for `trained_task`, as outputs of `task`; only label
    sets can differ so.

    Findings that its own label set lacks are NaN.
    """
    if (
        isinstance(trained_task, MultiLabel)
        and isinstance(task, MultiLabel)
        and trained_task != task
    ):
        return task.place(outputs, trained_task.findings)
    return outputs


def task_of(annotation: Annotation) -> Task:
    """The task of predicting an annotation from the image."""
    kinds: dict[str, type[Classification] | type[Segmentation] | type[DenseRegression]] = {
        CLASS: Classification,
        SEGMENTS: Segmentation,
        MAP: DenseRegression,
    }
    return kinds[annotation.kind](annotation.size)


def targets_of(annotation: Annotation, array: np.ndarray) -> torch.Tensor:
    """An annotation's array (`datasets.annotations.annotated`) as targets of its task.

    Classes (n,) and segments (n, *sides) as int64; a map (n, c, *sides) as float32, from uint8 in
    [0, 1].
    """
    targets = torch.from_numpy(array)
    if annotation.kind != MAP:
        return targets.long()
    return targets.float() / 255 if targets.dtype == torch.uint8 else targets


def resize_targets(targets: torch.Tensor, size: int | Sequence[int]) -> torch.Tensor:
    """Targets for samples with all sides of `size` pixels, or with the sides it lists.

    Segments int64 (n, *sides) take the class in the middle of what a pixel covers; maps float32
    (n, c, *sides) its mean, or are interpolated when they grow, as images are. Classes (n,) stay.
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
