"""Metrics that are fed batch by batch: what they keep is a few numbers per sample, not the outputs.

A sample of which any score is not a number is a miss. What is undefined even so is left out of a
mean, and beside it stands of how many values it is (`counts`). `groups` (n,) says to which patient,
volume or slide each sample belongs. With it there is a second value, `NAME-by-group`, the mean over
groups of what the metric is within each.
"""

import math
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from fedtables.metrics.classification import auc_by_class
from fedtables.metrics.masks import confusions, dice, mean_iou
from fedtables.metrics.names import BY_GROUP, DEFINED, OF


class RunningMetrics:
    """What a task is measured by, fed with one batch after another. A subclass says what `rows` it
    keeps of a batch, and what `values` all of them give.
    """

    def __init__(self) -> None:
        self._rows: list[Tensor] = []
        self._groups: list[Tensor] = []

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """What is kept of outputs (n, ...) and targets (n, ...), a row for each sample."""
        raise NotImplementedError

    def values(self, rows: Tensor, groups: Tensor | None) -> dict[str, float]:
        """The metrics of all rows (n, ...), which are of these groups (n,)."""
        raise NotImplementedError

    def update(self, outputs: Tensor, targets: Tensor, groups: Tensor | None = None) -> None:
        """Take in the outputs (n, ...) of a batch, their targets (n, ...) and groups (n,)."""
        self._rows.append(self.rows(outputs, targets).cpu())
        if groups is not None:
            self._groups.append(groups.cpu())

    def compute(self) -> dict[str, float]:
        """The metrics of all that was taken in, by name, the headline first; behind them the
        `counts` of those that may be undefined. Raises ValueError where they all are.
        """
        rows = torch.cat(self._rows) if self._rows else torch.empty(0)
        if not len(rows):
            raise ValueError("the metrics of no samples are undefined")
        return self.values(rows, torch.cat(self._groups) if self._groups else None)


def measured(
    metrics: RunningMetrics, outputs: Tensor, targets: Tensor, groups: Tensor | None = None
) -> dict[str, float]:
    """The metrics of a single batch. Raises ValueError where they are undefined."""
    metrics.update(outputs, targets, groups)
    return metrics.compute()


def counts(name: str, values: Tensor) -> dict[str, float]:
    """How many of the values (n,) of the mean `name` are defined, and how many there are."""
    return {name + DEFINED: int((~values.isnan()).sum()), name + OF: len(values)}


def means(values: Mapping[str, Tensor]) -> dict[str, float]:
    """By name the mean of the defined values (n,), the same in any order; and the `counts`."""
    found, counted = dict[str, float](), dict[str, float]()
    for name, all_of_it in values.items():
        defined = all_of_it[~all_of_it.isnan()].tolist()
        found[name] = math.fsum(defined) / len(defined) if defined else math.nan
        counted |= counts(name, all_of_it)
    return found | counted


def unknown(outputs: Tensor) -> Tensor:
    """Which of n samples have a score, of (n, ...), that is not a number, bool (n,)."""
    return outputs.isnan().flatten(1).any(dim=1)


def by_group(rows: Tensor, groups: Tensor) -> Iterator[Tensor]:
    """The rows of each group (m, ...), of rows (n, ...) that belong to groups (n,)."""
    for group in groups.unique():
        yield rows[groups == group]


def group_sums(rows: Tensor, groups: Tensor) -> Tensor:
    """The sums of rows (n, ...) within each group, (groups, ...)."""
    return torch.stack([of_group.sum(dim=0) for of_group in by_group(rows, groups)])


class SampleMean(RunningMetrics):
    """The mean over samples of a number of each, which is always defined."""

    name: str

    def values(self, rows: Tensor, groups: Tensor | None) -> dict[str, float]:
        found = {self.name: float(rows.mean())}
        if groups is not None:
            of_groups = [of_group.mean() for of_group in by_group(rows.double(), groups)]
            found[self.name + BY_GROUP] = float(torch.stack(of_groups).mean())
        return found


class Accuracy(SampleMean):
    """Share of samples whose highest score (n, classes) is at their label (n,)."""

    name = "accuracy"

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        right = (outputs.argmax(dim=1) == targets) & ~unknown(outputs)
        return right.cpu().double()  # MPS has no double precision


class AbsoluteError(SampleMean):
    """Mean absolute difference of outputs and targets (n, channels, *sides)."""

    name = "mean-absolute-error"

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets).abs().mean(dim=tuple(range(1, outputs.ndim)))


class Overlap(RunningMetrics):
    """Mean IoU of the likeliest classes, of scores (n, classes, *sides), from the pixels of all
    samples together, and with groups the Dice, mean over samples and mean over groups. Targets (n,
    *sides) that are `ignore` do not count. Without any foreground there is no Dice. The count of
    the mean IoU is that of the classes that occur in the targets.
    """

    def __init__(self, classes: int, ignore: int):
        super().__init__()
        self._classes, self._ignore = classes, ignore

    def update(self, outputs: Tensor, targets: Tensor, groups: Tensor | None = None) -> None:
        super().update(outputs, targets, groups)
        if groups is None:  # of all samples together one sum is enough
            self._rows = [torch.cat(self._rows).sum(dim=0, keepdim=True)]

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Confusions (n, classes, classes)."""
        predicted, targets, lost = outputs.argmax(dim=1), targets.long(), unknown(outputs)
        predicted[lost] = (targets[lost] + 1) % self._classes
        return confusions(predicted, targets, self._classes, self._ignore)

    def values(self, rows: Tensor, groups: Tensor | None) -> dict[str, float]:
        pixels = rows.sum(dim=0)
        found = {"miou": mean_iou(pixels)}
        present = int((pixels.sum(dim=1) > 0).sum())
        counted: dict[str, float] = {"miou" + DEFINED: present, "miou" + OF: self._classes}
        if groups is None:
            return found | counted
        of_groups = dice(group_sums(rows, groups))
        for name, of_it in (("dice", dice(rows)), ("dice" + BY_GROUP, of_groups)):
            found[name] = float(of_it.nanmean())
            counted |= counts(name, of_it)
        return found | counted


class MeanAUC(RunningMetrics):
    """Mean area under the ROC curve over the classes for which it is defined, of scores (n,
    classes), all of which are kept; groups have none.
    """

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Scores and targets (n, 2, classes)."""
        return torch.stack([outputs, targets.to(outputs)], dim=1)

    def values(self, rows: Tensor, groups: Tensor | None) -> dict[str, float]:
        scores, targets = rows.unbind(dim=1)
        by_class = auc_by_class(scores, targets)
        defined = [value for value in by_class if not math.isnan(value)]
        if not defined and scores.isnan().all():
            raise ValueError("no AUC is defined: no score is a number, so training diverged")
        if not defined:
            raise ValueError(
                "no finding has images both with and without it, so that no AUC is defined; take"
                " more test images"
            )
        return {"mauc": sum(defined) / len(defined), **counts("mauc", torch.tensor(by_class))}
