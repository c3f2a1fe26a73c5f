"""Running metrics of masks: one object in each sample, nuclei, and regions of a tumour, as
`metrics.running` has others.

What is undefined where both masks are empty is left out of the mean, which says of how many it is
(`metrics.running.means`), or settled by another rule (`metrics.masks.Empty`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from metrics import masks
from metrics.instances import aji, components, instances_of, object_dice, object_hausdorff
from metrics.masks import RELEASED_LOGIT, Empty, Reading, counts, diagonal, hd95
from metrics.names import BY_GROUP, DEFINED, OF
from metrics.running import GroupSums, means, of_samples, unknown

OVERLAPS = {
    "dice": masks.dice,
    "sensitivity": masks.sensitivity,
    "specificity": masks.specificity,
}
"""What is computed from `metrics.masks.counts`, by name."""
NUCLEI = ("dice", "obj-dice", "aji", "hd95")


class BinaryOverlap:
    """Dice, sensitivity, specificity and HD95 of one object, means over samples, of logits (n, 1,
    *sides) and targets (n, *sides) of 0 and 1, images or volumes; pixels that are `ignore` do not
    count, and are background to HD95. Object is what has a probability above 0.5.

    By group there are Dice, sensitivity and specificity: the mean over groups of what they are from
    all pixels of a group together. HD95 has no such value, for a group's slices have no order.

    `reading` and `empty` as `metrics.masks.hd95` has them, which by `released` takes masks of raw
    logits above `RELEASED_LOGIT`, and leaves out samples with an empty prediction; the authors'
    Dice, sensitivity and specificity are those of `empty="zero"`.
    """

    def __init__(self, ignore: int, reading: Reading = "paper", empty: Empty = "skip"):
        self._ignore, self._reading, self._empty = ignore, reading, empty
        self._counts: list[Tensor] = []
        self._distances: list[Tensor] = []
        self._groups = GroupSums()

    def update(self, outputs: Tensor, targets: Tensor, groups: Tensor | None = None) -> None:
        """Raises ValueError for outputs and targets of other shapes."""
        if outputs.shape != (len(targets), 1, *targets.shape[1:]):
            raise ValueError(
                f"expected logits (n, 1, *sides) of targets (n, *sides), not"
                f" {tuple(outputs.shape)} of {tuple(targets.shape)}"
            )
        logits, labelled, truth = outputs[:, 0], targets != self._ignore, targets == 1
        predicted, lost = logits.sigmoid() > 0.5, unknown(outputs)
        counted = counts(torch.where(spread(lost, truth), ~truth, predicted), truth, labelled)
        self._counts.append(counted.cpu())
        self._groups.add(counted, groups)
        released = self._reading == "released"
        contoured = logits > RELEASED_LOGIT if released else predicted
        distances = hd95(contoured & labelled, truth, self._reading, self._empty)
        if not released:
            distances[lost.cpu()] = diagonal(truth.shape[1:])
        self._distances.append(distances)

    def compute(self) -> dict[str, float]:
        counted = of_samples(self._counts)
        values = {name: of(counted, self._empty) for name, of in OVERLAPS.items()}
        values["hd95"] = torch.cat(self._distances)
        if (sums := self._groups.stacked()) is not None:
            values |= {name + BY_GROUP: of(sums, self._empty) for name, of in OVERLAPS.items()}
        return means(values)


class NucleiOverlap:
    """Dice, object Dice, AJI and HD95 of objects in images, means over images, of logits (n, 3, h,
    w) of background, inside and boundary (`metrics.instances.ternary`) and targets that are label
    maps (n, h, w), 0 for background and a number for each object.

    Objects are recovered from the likeliest classes by `metrics.instances.instances_of`, with
    `minimum` and `radius`; the Dice is that of the pixels in any object. By group each is the mean
    over groups of the mean over a group's images.

    - `reading`: by `paper` AJI takes every prediction once; by `released`, as the authors' code, it
      may take one for several nuclei, and true objects that are in pieces are several
      (`metrics.instances.components`). Their code has no object Dice and no HD95 of nuclei.
    - `distance`: HD95 of `objects`, weighted by their size, in pixels, or of the `mask` of all
      pixels in any object, as `metrics.masks.hd95` has it in that reading. FedIOD's text counts the
      Hausdorff distance among the metrics of semantic segmentation, which speaks for `mask`.

    An image without objects in truth and prediction is left out of all of them, but for the AJI of
    `released`, which is 0 without a prediction. With objects in one of them alone Dice, object Dice
    and AJI are 0, and HD95 is the diagonal of the image; of the `mask`, `released` leaves it out.

    An object is matched by its Jaccard index (J of FedIOD's text, before Eq. 12).
    """

    def __init__(
        self,
        reading: Reading = "paper",
        distance: Literal["objects", "mask"] = "objects",
        minimum: int = 20,
        radius: int = 2,
    ):
        if reading not in get_args(Reading):
            raise ValueError(f"there is no reading {reading!r} of AJI; paper and released are")
        if distance not in ("objects", "mask"):
            raise ValueError(f"HD95 is that of objects or of the mask, not of {distance!r}")
        self._reading, self._distance = reading, distance
        self._minimum, self._radius = minimum, radius
        self._values: list[Tensor] = []
        self._groups: list[Tensor] = []

    def update(self, outputs: Tensor, targets: Tensor, groups: Tensor | None = None) -> None:
        """Raises ValueError for outputs and targets of other shapes."""
        if targets.ndim != 3 or outputs.shape != (len(targets), 3, *targets.shape[1:]):
            raise ValueError(
                f"expected logits (n, 3, h, w) of label maps (n, h, w), not"
                f" {tuple(outputs.shape)} of {tuple(targets.shape)}"
            )
        truths = targets.cpu().numpy()
        if self._reading == "released":
            truths = np.array([components(truth) for truth in truths]).reshape(truths.shape)
        classes = outputs.argmax(dim=1).cpu().numpy()
        preds = [instances_of(map_, self._minimum, self._radius) for map_ in classes]
        pairs = [*zip(preds, truths, strict=True)]
        predicted = torch.from_numpy(np.array(preds).reshape(truths.shape) > 0)
        truth = torch.from_numpy(truths > 0)

        def of_objects(values: Iterable[float]) -> Tensor:
            return torch.tensor([*values], dtype=torch.float64)

        reuse = self._reading == "released"
        columns = [
            masks.dice(counts(predicted, truth)),
            of_objects(object_dice(p, t, match="jaccard") for p, t in pairs),
            of_objects(aji(p, t, reuse) for p, t in pairs),
            of_objects(object_hausdorff(p, t, match="jaccard") for p, t in pairs)
            if self._distance == "objects"
            else hd95(predicted, truth, self._reading),
        ]
        values = torch.stack(columns, dim=1)
        values[unknown(outputs).cpu()] = torch.tensor(
            [0, 0, 0, diagonal(truth.shape[1:])], dtype=values.dtype
        )
        self._values.append(values)
        if groups is not None:
            self._groups.append(groups.cpu())

    def compute(self) -> dict[str, float]:
        values = of_samples(self._values)
        columns = dict(zip(NUCLEI, values.T, strict=True))
        if self._groups:
            groups = torch.cat(self._groups)
            of_group = [values[groups == group].nanmean(dim=0) for group in groups.unique()]
            by_group = (name + BY_GROUP for name in NUCLEI)
            columns |= dict(zip(by_group, torch.stack(of_group).T, strict=True))
        return means(columns)


class RegionOverlap:
    """Dice of regions that overlap, of logits (n, regions, *sides), one channel for each of
    `regions` in their order, a region being where its probability is above 0.5, and targets (n,
    *sides) of labels; pixels that are `ignore` do not count.

    `dice-REGION` is the mean over samples, and `dice` the mean over the regions that have one; by
    group both are means over groups (of a subject's volumes, pixels are counted together). A region
    that is in neither truth nor prediction is left out; by the reading `released` also one that is
    in the prediction alone, as NVFlare does it. The count of `dice` is that of all regions.
    """

    def __init__(
        self, regions: Mapping[str, Iterable[int]], ignore: int, reading: Reading = "paper"
    ):
        self._regions = {name: sorted(labels) for name, labels in regions.items()}
        self._ignore, self._reading = ignore, reading
        self._counts: list[Tensor] = []
        self._groups = GroupSums()

    def update(self, outputs: Tensor, targets: Tensor, groups: Tensor | None = None) -> None:
        """Raises ValueError for outputs and targets of other shapes."""
        if outputs.shape != (len(targets), len(self._regions), *targets.shape[1:]):
            raise ValueError(
                f"expected logits (n, {len(self._regions)}, *sides) of targets (n, *sides), not"
                f" {tuple(outputs.shape)} of {tuple(targets.shape)}"
            )
        predicted, labelled = outputs.sigmoid() > 0.5, targets != self._ignore
        lost = spread(unknown(outputs), targets)
        by_region = []
        for channel, labels in enumerate(self._regions.values()):
            truth = torch.isin(targets, torch.tensor(labels, device=targets.device))
            found = torch.where(lost, ~truth, predicted[:, channel])
            by_region.append(counts(found, truth, labelled))
        counted = torch.stack(by_region, dim=1)
        self._counts.append(counted.cpu())
        self._groups.add(counted, groups)

    def compute(self) -> dict[str, float]:
        values = self._dice(of_samples(self._counts))
        if (sums := self._groups.stacked()) is not None:
            values |= self._dice(sums, BY_GROUP)
        return values

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
        shares = masks.dice(counted)
        if self._reading == "released":
            shares[counted[:, 1].sum(dim=1).cpu() == 0] = torch.nan
        return shares


def spread(samples: Tensor, like: Tensor) -> Tensor:
    """What is known of n samples (n,), of every pixel of `like` (n, *sides)."""
    return samples.view(-1, *[1] * (like.ndim - 1)).expand_as(like)
