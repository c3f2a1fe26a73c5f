"""Pictures of segmentations: what each row's model finds in a test sample of each site, beside the
numbers on all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.measures.by_site import BySite
from benchmarks.tables.measure import FittedCell
from results.arrays import pack

if TYPE_CHECKING:
    from federation.data import Checkpoint, LabelledSet
    from federation.federation import Federation

SHOWN = 160
"""Pixels of a side of what is shown of a sample, its middle."""


class Contours(BySite):
    """The numbers of `by-site`, and of each site the sample with most that is labelled."""

    numbers = False  # it is the picture that is looked at

    def picture(self, run: FittedCell, sites: Mapping[str, LabelledSet]) -> str:
        return found(run.federation, run.models[0], sites)


def found(federation: Federation, model: Checkpoint, sites: Mapping[str, LabelledSet]) -> str:
    """By site an image, its true objects and those that the model finds, packed; nothing while
    planning. Raises ValueError for volumes and for a task without objects.
    """
    import torch

    from federation.training.loops import predictions

    task = federation.task
    if not hasattr(task, "found") or any(held.images.ndim != 4 for held in sites.values()):
        raise ValueError(f"contours are of objects in images, and the task is {task}")
    arrays: dict[str, np.ndarray] = {}
    module = federation.networks.module(model)
    for name, held in sites.items():
        if held.images.is_meta:
            return ""
        place = int((held.targets > 0).flatten(1).sum(dim=1).argmax())
        image, target = held.images[place : place + 1], held.targets[place : place + 1]
        [outputs] = predictions(module, image, normalise=federation.normalise, window=held.window)
        maps = {"image": image[0], "target": target[0], "predicted": task.found(outputs)[0]}
        for kind, values in maps.items():
            kept = torch.as_tensor(values)[..., middle(target.shape[1]), middle(target.shape[2])]
            arrays[f"{kind}/{name}"] = (
                kept.cpu().numpy().astype(np.uint8 if kind == "image" else np.uint16)
            )
    return pack(arrays)


def middle(side: int) -> slice:
    """The middle `SHOWN` pixels of a side, or all."""
    start = max(0, (side - SHOWN) // 2)
    return slice(start, start + min(side, SHOWN))


MEASURE = Contours()
