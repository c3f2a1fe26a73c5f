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
from metrics.classification import UNKNOWN, accuracy, auc_by_class
from metrics.segmentation import mean_iou


class Task(Protocol):
    """What a federation needs to know of the problem it solves.

    A network's outputs are (n, outputs), or (n, outputs, h, w) of images (n, c, h, w) if the task
    is dense; targets are of n images, in the form that the task states.
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
        """Names of what `metrics` returns; the first is the headline."""

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Supervised loss per sample, (n,); of a dense task the mean over its pixels."""

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        """Outputs as probabilities, same shape; as predictions where a task has none."""

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Loss per sample, (n,), against what `probabilities` makes of a teacher's outputs."""

    def metrics(self, outputs: torch.Tensor, targets: torch.Tensor) -> dict[str, float]:
        """Metrics of outputs on a test set, by name, in the order of `metric_names`."""


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

    def metrics(self, outputs: torch.Tensor, targets: torch.Tensor) -> dict[str, float]:
        return {"accuracy": accuracy(outputs, targets)}


@dataclass(frozen=True)
class Segmentation:
    """One label out of `classes` per pixel; targets int64 (n, h, w), 255 where there is no
    label.
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
        return losses / (targets != IGNORE).sum(dim=(1, 2)).clamp(min=1)

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.softmax(dim=1)

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean over all pixels, (n,), of the cross-entropy with teacher probabilities (n, classes,
        h, w).
        """
        return F.cross_entropy(outputs, targets, reduction="none").mean(dim=(1, 2))

    def metrics(self, outputs: torch.Tensor, targets: torch.Tensor) -> dict[str, float]:
        """Mean IoU of the likeliest classes, from the pixels of all images together
        (`metrics.segmentation.mean_iou`).
        """
        return {"miou": mean_iou(outputs.argmax(dim=1), targets, self.classes, IGNORE)}


@dataclass(frozen=True)
class DenseRegression:
    """`channels` real values per pixel; targets float (n, channels, h, w), of `targets_of` in [0,
    1].
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
        return (outputs - targets).abs().mean(dim=(1, 2, 3))

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        """The outputs as they are: values have no probabilities."""
        return outputs

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean absolute difference from a teacher's outputs, (n,)."""
        return self.loss(outputs, targets)

    def metrics(self, outputs: torch.Tensor, targets: torch.Tensor) -> dict[str, float]:
        return {"mean-absolute-error": float(self.loss(outputs, targets).mean())}


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

    def metrics(self, outputs: torch.Tensor, targets: torch.Tensor) -> dict[str, float]:
        """Mean AUC over the findings for which it is defined. Raises ValueError if there is
        none.
        """
        defined = [value for value in auc_by_class(outputs, targets) if not math.isnan(value)]
        if not defined:
            raise ValueError(
                "no finding has images both with and without it, so that no AUC is defined; take"
                " more test images"
            )
        return {"mauc": sum(defined) / len(defined)}

    def place(self, outputs: torch.Tensor, findings: Sequence[str]) -> torch.Tensor:
        """Outputs (n, len(findings)) for the findings of another label set, in the places of this
        one's; NaN where it has none.
        """
        placed = outputs.new_full((len(outputs), len(self.findings)), math.nan)
        for column, finding in enumerate(self.findings):
            if finding in findings:
                placed[:, column] = outputs[:, list(findings).index(finding)]
        return placed


def placed(outputs: torch.Tensor, own: Task | None, task: Task) -> torch.Tensor:
    """Outputs of a network that was trained for its `own` task, as outputs of `task`; only label
    sets can differ so.

    Findings that its own label set lacks are NaN.
    """
    if isinstance(own, MultiLabel) and isinstance(task, MultiLabel) and own != task:
        return task.place(outputs, own.findings)
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

    Classes (n,) and segments (n, h, w) as int64; a map, uint8 (n, c, h, w) for 0...1, as float32 in
    [0, 1].
    """
    targets = torch.from_numpy(array)
    return targets.float() / 255 if annotation.kind == MAP else targets.long()


def resize_targets(targets: torch.Tensor, size: int) -> torch.Tensor:
    """Targets for images with sides of `size` pixels.

    Segments int64 (n, h, w) take the class in the middle of what a pixel covers; maps float (n, c,
    h, w) its mean, or are interpolated bilinearly when they grow, as images are. Classes (n,) stay.
    """
    if targets.ndim == 1 or targets.shape[-2:] == (size, size):
        return targets
    if targets.ndim == 3:
        rows, columns = (
            (torch.arange(size, device=targets.device) * 2 + 1) * side // (2 * size)
            for side in targets.shape[1:]
        )
        return targets[:, rows[:, None], columns]
    return F.interpolate(
        targets, size=(size, size), mode="area" if size < targets.shape[-1] else "bilinear"
    )
