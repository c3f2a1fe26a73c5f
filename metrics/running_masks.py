"""Running metrics of masks: one object in each sample, nuclei, and regions of a tumour, as
`fedtables.metrics.running` has others.

What is undefined where both masks are empty is left out of the mean, which says of how many it is
(`fedtables.metrics.running.means`).
"""

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np
import torch
from skimage.measure import label
from torch import Tensor

from fedtables.metrics.instances import aji, instances_of, object_dice, object_hausdorff
from fedtables.metrics.masks import RELEASED_LOGIT, Reading, counts, diagonal, hd95, shares, spread
from fedtables.metrics.names import BY_GROUP, DEFINED, OF
from fedtables.metrics.running import RunningMetrics, by_group, group_sums, means, unknown

NUCLEI = ("dice", "obj-dice", "aji", "hd95")


class BinaryOverlap(RunningMetrics):
    """Dice, sensitivity, specificity and HD95 of one object, means over samples, of logits (n, 1,
    *sides) and targets (n, *sides) of 0 and 1; pixels that are `ignore` do not count, and are
    background to HD95. Object is what has a probability above 0.5; to HD95 by the reading
    `released` a logit above `RELEASED_LOGIT`.

    By group there are all but HD95, from all pixels of a group together.
    """

    def __init__(self, ignore: int, reading: Reading = "paper"):
        super().__init__()
        self._ignore, self._reading = ignore, reading

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Counts and HD95 (n, 5). Raises ValueError for outputs and targets of other shapes."""
        _check(outputs, 1, targets)
        logits, labelled, truth = outputs[:, 0], targets != self._ignore, targets == 1
        predicted, lost = logits.sigmoid() > 0.5, unknown(outputs)
        counted = counts(torch.where(spread(lost, truth), ~truth, predicted), truth, labelled)
        released = self._reading == "released"
        contoured = logits > RELEASED_LOGIT if released else predicted
        distances = hd95(contoured & labelled, truth, self._reading)
        if not released:
            distances[lost.cpu()] = diagonal(truth.shape[1:])
        return torch.cat([counted.cpu().double().flatten(1), distances[:, None]], dim=1)

    def values(self, rows: Tensor, groups: Tensor | None) -> dict[str, float]:
        counted = rows[:, :4].unflatten(1, (2, 2))
        found = {**shares(counted, self._reading), "hd95": rows[:, 4]}
        if groups is not None:
            of_groups = shares(group_sums(counted, groups), self._reading)
            found |= {name + BY_GROUP: values for name, values in of_groups.items()}
        return means(found)


class NucleiOverlap(RunningMetrics):
    """Dice, object Dice, AJI and HD95 of objects in images, means over images, of logits (n, 3, h,
    w) as of `fedtables.metrics.instances.ternary` and label maps (n, h, w), 0 for background.
    Objects are recovered by `instances_of`, with `minimum` and `radius`; the Dice is that of their
    pixels. By group each is the mean over groups of the mean over a group's images.

    - `reading`: by `released` AJI may take one prediction for several nuclei, and true objects in
      pieces are several.
    - `distance`: HD95 of `objects`, weighted by their size, or of the `mask` of all their pixels.

    An image without objects in truth and prediction is left out, but for the AJI of `released`,
    which is 0. With objects in one of them alone Dice, object Dice and AJI are 0, and HD95 is the
    diagonal of the image; of the `mask`, `released` leaves it out.
    """

    def __init__(
        self,
        reading: Reading = "paper",
        distance: Literal["objects", "mask"] = "objects",
        minimum: int = 20,
        radius: int = 2,
    ):
        super().__init__()
        self._reading, self._distance = reading, distance
        self._minimum, self._radius = minimum, radius

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The four metrics (n, 4). Raises ValueError for outputs and targets of other shapes."""
        _check(outputs, 3, targets)
        truths, reuse = targets.cpu().numpy(), self._reading == "released"
        if reuse:
            truths = np.array([label(truth, connectivity=2) for truth in truths]).reshape(
                truths.shape
            )
        classes = outputs.argmax(dim=1).cpu().numpy()
        found = [instances_of(map_, self._minimum, self._radius) for map_ in classes]
        predicted = torch.from_numpy(np.array(found).reshape(truths.shape) > 0)
        truth = torch.from_numpy(truths > 0)
        values = torch.empty(len(truths), 4, dtype=torch.float64)
        values[:, 0] = shares(counts(predicted, truth))["dice"]
        for row, p, t in zip(values, found, truths, strict=True):
            row[1], row[2] = object_dice(p, t), aji(p, t, reuse)
            if self._distance == "objects":
                row[3] = object_hausdorff(p, t)
        if self._distance == "mask":
            values[:, 3] = hd95(predicted, truth, self._reading)
        missed = torch.tensor([0, 0, 0, diagonal(truth.shape[1:])], dtype=torch.float64)
        values[unknown(outputs).cpu()] = missed
        return values

    def values(self, rows: Tensor, groups: Tensor | None) -> dict[str, float]:
        found = dict(zip(NUCLEI, rows.T, strict=True))
        if groups is not None:
            of_groups = torch.stack([part.nanmean(dim=0) for part in by_group(rows, groups)])
            names = (name + BY_GROUP for name in NUCLEI)
            found |= dict(zip(names, of_groups.T, strict=True))
        return means(found)


class RegionOverlap(RunningMetrics):
    """Dice of regions that overlap, of logits (n, regions, *sides), one channel for each of
    `regions` in their order, a region being where its probability is above 0.5, and targets (n,
    *sides) of labels; pixels that are `ignore` do not count.

    `dice-REGION` is the mean over samples, and `dice` the mean over the regions that have one; by
    group both are means over groups. A region that is in neither truth nor prediction is left out;
    by the reading `released` also one that is in the prediction alone, as NVFlare does it. The
    count of `dice` is that of all regions.
    """

    def __init__(
        self, regions: Mapping[str, Iterable[int]], ignore: int, reading: Reading = "paper"
    ):
        super().__init__()
        self._regions = {name: sorted(labels) for name, labels in regions.items()}
        self._ignore, self._reading = ignore, reading

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Counts (n, regions, 2, 2). Raises ValueError for outputs and targets of other shapes."""
        _check(outputs, len(self._regions), targets)
        predicted, labelled = outputs.sigmoid() > 0.5, targets != self._ignore
        lost = spread(unknown(outputs), targets)
        by_region = []
        for channel, labels in enumerate(self._regions.values()):
            truth = torch.isin(targets, torch.tensor(labels).to(targets))
            found = torch.where(lost, ~truth, predicted[:, channel])
            by_region.append(counts(found, truth, labelled))
        return torch.stack(by_region, dim=1)

    def values(self, rows: Tensor, groups: Tensor | None) -> dict[str, float]:
        found = self._dice(rows)
        if groups is not None:
            found |= self._dice(group_sums(rows, groups), BY_GROUP)
        return found

    def _dice(self, counted: Tensor, by: str = "") -> dict[str, float]:
        names = [f"dice-{name}{by}" for name in self._regions]
        of_regions = means(
            {name: self._shares(counted[:, channel]) for channel, name in enumerate(names)}
        )
        together = {
            f"dice{by}{end}": sum(of_regions[name + end] for name in names) for end in (DEFINED, OF)
        }
        regions = torch.tensor([of_regions[name] for name in names], dtype=torch.float64)
        return {**means({f"dice{by}": regions}), **of_regions, **together}

    def _shares(self, counted: Tensor) -> Tensor:
        """Dice of one region in each sample, (n,), of counts (n, 2, 2); NaN where left out."""
        found = shares(counted)["dice"]
        if self._reading == "released":
            found[counted[:, 1].sum(dim=1) == 0] = torch.nan
        return found


def _check(outputs: Tensor, channels: int, targets: Tensor) -> None:
    expected = (len(targets), channels, *targets.shape[1:])
    if outputs.shape != expected:
        raise ValueError(f"expected logits {expected}, not {tuple(outputs.shape)}")
