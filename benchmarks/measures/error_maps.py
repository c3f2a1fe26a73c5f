"""Pictures of reconstructions: what each row's model makes of a test slice of each site, beside the
numbers on all test subjects.
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


class ErrorMaps(BySite):
    """The numbers of `by-site`, and of each site the middle slice of its first subject."""

    numbers = False  # it is the picture that is looked at

    def picture(self, run: FittedCell, sites: Mapping[str, LabelledSet]) -> str:
        return reconstructed(run.federation, run.models[0], sites)


def reconstructed(
    federation: Federation, model: Checkpoint, sites: Mapping[str, LabelledSet]
) -> str:
    """By site a network's input, its truth and what it makes, each float32 (h, w), packed; nothing
    while planning. Raises ValueError for a task whose targets are no grey images.
    """
    from federation.training.loops import predict

    arrays: dict[str, np.ndarray] = {}
    module = federation.networks.module(model)
    for name, held in sites.items():
        if held.images.is_meta:
            return ""
        if held.images.shape != held.targets.shape or held.images.shape[1] != 1:
            raise ValueError(f"error maps are of grey images, and the task is {federation.task}")
        place = middle_slice(None if held.groups is None else held.groups.cpu().numpy())
        image, target = held.images[place : place + 1], held.targets[place : place + 1]
        made = predict(module, image, normalise=federation.normalise)
        for kind, values in (("image", image), ("target", target), ("predicted", made)):
            arrays[f"{kind}/{name}"] = values[0, 0].float().cpu().numpy()
    return pack(arrays)


def middle_slice(groups: np.ndarray | None) -> int:
    """The place of the middle one of the first group's samples; the first without groups."""
    if groups is None:
        return 0
    own = np.flatnonzero(groups == groups[0])
    return int(own[len(own) // 2])


MEASURE = ErrorMaps()
