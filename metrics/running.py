"""Metrics that are fed batch by batch: what they keep is a few numbers per sample or per group, not
the outputs.

A sample of which any score is not a number is a miss: no class is right there, no mask overlaps.
What is undefined even so is left out of a mean, and beside it stands of how many values it is
(`counts`).

Every one has `update(outputs, targets, groups)` and `compute()`. `groups` (n,) says to which
patient, volume or slide each sample belongs; with it there is a second value, `NAME-by-group`, the
mean over groups of what the metric is within each. torchmetrics has the accuracy and the confusion
too, but in single precision and of all samples together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from metrics.classification import auc_by_class
from metrics.names import BY_GROUP, DEFINED, OF
from metrics.segmentation import confusions, dice, mean_iou


class RunningMetrics(Protocol):
    """What a task is measured by, fed with one batch after another."""

    def update(self, outputs: Tensor, targets: Tensor, groups: Tensor | None = None) -> None:
        """Take in the outputs (n, ...) of a batch, their targets (n, ...) and groups (n,)."""

    def compute(self) -> dict[str, float]:
        """The metrics of all that was taken in, by name, the headline first; behind them the
        `counts` of those that may be undefined. Raises ValueError where they all are.
        """


def measured(
    metrics: RunningMetrics, outputs: Tensor, targets: Tensor, groups: Tensor | None = None
) -> dict[str, float]:
    """The metrics of a single batch. Raises ValueError where they are undefined."""
    metrics.update(outputs, targets, groups)
    return metrics.compute()


def of_samples(batches: list[Tensor]) -> Tensor:
    """The rows of all batches, (n, ...). Raises ValueError if there is none."""
    rows = torch.cat(batches) if batches else torch.empty(0)
    if not len(rows):
        raise ValueError("the metrics of no samples are undefined")
    return rows


def counts(name: str, values: Tensor) -> dict[str, float]:
    """How many of the values (n,) that the mean `name` is of are defined, and how many there
    are.
    """
    return {name + DEFINED: int((~values.isnan()).sum()), name + OF: len(values)}


def means(values: Mapping[str, Tensor]) -> dict[str, float]:
    """By name the mean of those of the values (n,) that are defined, the same in any order, NaN if
    none is; behind them their `counts`.
    """
    found, counted = dict[str, float](), dict[str, float]()
    for name, all_of_it in values.items():
        defined = all_of_it[~all_of_it.isnan()].tolist()
        found[name] = math.fsum(defined) / len(defined) if defined else math.nan
        counted |= counts(name, all_of_it)
    return found | counted


def unknown(outputs: Tensor) -> Tensor:
    """Which of n samples have a score, of (n, ...), that is not a number, bool (n,)."""
    return outputs.isnan().flatten(1).any(dim=1)


class GroupSums:
    """Sums of rows by group."""

    def __init__(self) -> None:
        self._sums: dict[int, Tensor] = {}

    def add(self, rows: Tensor, groups: Tensor | None) -> None:
        """Add rows (n, ...) to the sums of their groups (n,); nothing without groups."""
        if groups is None:
            return
        present, places = groups.to(rows.device).unique(return_inverse=True)
        sums = rows.new_zeros(len(present), *rows.shape[1:]).index_add_(0, places, rows).cpu()
        for group, total in zip(present.tolist(), sums, strict=True):
            self._sums[group] = self._sums[group] + total if group in self._sums else total

    def stacked(self) -> Tensor | None:
        """The sums of all groups, (groups, ...); None if there is none."""
        return torch.stack([*self._sums.values()]) if self._sums else None


class Accuracy:
    """Share of samples whose highest score, of (n, classes), is at the label (n,), in [0, 1]."""

    def __init__(self) -> None:
        self._right = self._samples = 0
        self._groups = GroupSums()

    def update(self, outputs: Tensor, targets: Tensor, groups: Tensor | None = None) -> None:
        right = (outputs.argmax(dim=1) == targets) & ~unknown(outputs)
        self._right += int(right.sum())
        self._samples += len(right)
        self._groups.add(torch.stack([right, torch.ones_like(right)], dim=1).long(), groups)

    def compute(self) -> dict[str, float]:
        if not self._samples:
            raise ValueError("the accuracy of no samples is undefined")
        values = {"accuracy": self._right / self._samples}
        if (sums := self._groups.stacked()) is not None:
            values["accuracy" + BY_GROUP] = float((sums[:, 0].double() / sums[:, 1]).mean())
        return values


class Overlap:
    """Mean IoU of the likeliest classes, of scores (n, classes, *sides), from the pixels of all
    samples together, and with groups the Dice, mean over samples and mean over groups.

    Targets (n, *sides) that are `ignore` do not count. Samples and groups without any foreground
    have no Dice; it is NaN if none has any. The count of the mean IoU is that of the classes that
    occur in the targets: another that is predicted has IoU 0, one that is not has none.
    """

    def __init__(self, classes: int, ignore: int):
        self._classes, self._ignore = classes, ignore
        self._pixels = torch.zeros(classes, classes, dtype=torch.int64)
        self._dice: list[Tensor] = []
        self._groups = GroupSums()

    def update(self, outputs: Tensor, targets: Tensor, groups: Tensor | None = None) -> None:
        predicted = outputs.argmax(dim=1)
        lost = unknown(outputs)
        predicted[lost] = (targets[lost] + 1) % self._classes
        matrices = confusions(predicted, targets, self._classes, self._ignore)
        self._pixels += matrices.sum(dim=0).cpu()
        self._groups.add(matrices, groups)
        if groups is not None:
            self._dice.append(dice(matrices))

    def compute(self) -> dict[str, float]:
        values = {"miou": mean_iou(self._pixels)}
        present = int((self._pixels.sum(dim=1) > 0).sum())
        counted: dict[str, float] = {"miou" + DEFINED: present, "miou" + OF: self._classes}
        if (sums := self._groups.stacked()) is not None:
            for name, all_of_it in (
                ("dice", torch.cat(self._dice)),
                ("dice" + BY_GROUP, dice(sums)),
            ):
                values[name] = float(all_of_it.nanmean())
                counted |= counts(name, all_of_it)
        return values | counted


class AbsoluteError:
    """Mean absolute difference of outputs and targets (n, channels, *sides)."""

    def __init__(self) -> None:
        self._errors: list[Tensor] = []
        self._groups = GroupSums()

    def update(self, outputs: Tensor, targets: Tensor, groups: Tensor | None = None) -> None:
        errors = (outputs - targets).abs().mean(dim=tuple(range(1, outputs.ndim)))
        self._errors.append(errors)
        self._groups.add(torch.stack([errors, torch.ones_like(errors)], dim=1).double(), groups)

    def compute(self) -> dict[str, float]:
        values = {"mean-absolute-error": float(of_samples(self._errors).mean())}
        if (sums := self._groups.stacked()) is not None:
            values["mean-absolute-error" + BY_GROUP] = float((sums[:, 0] / sums[:, 1]).mean())
        return values


class MeanAUC:
    """Mean area under the ROC curve over the classes for which it is defined, of scores (n,
    classes) (`metrics.classification.auc_by_class`). An AUC needs all scores, which are kept;
    groups have none.
    """

    def __init__(self) -> None:
        self._scores: list[Tensor] = []
        self._targets: list[Tensor] = []

    def update(self, outputs: Tensor, targets: Tensor, groups: Tensor | None = None) -> None:
        self._scores.append(outputs.cpu())
        self._targets.append(targets.cpu())

    def compute(self) -> dict[str, float]:
        scores = of_samples(self._scores)
        by_class = auc_by_class(scores, of_samples(self._targets))
        defined = [value for value in by_class if not math.isnan(value)]
        if not defined and scores.isnan().all():
            raise ValueError("no AUC is defined: no score is a number, so training diverged")
        if not defined:
            raise ValueError(
                "no finding has images both with and without it, so that no AUC is defined; take"
                " more test images"
            )
        values = {"mauc": sum(defined) / len(defined)}
        return values | counts("mauc", torch.tensor(by_class))
