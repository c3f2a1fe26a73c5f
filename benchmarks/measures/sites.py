"""The task's metrics at the end of a run, on the test samples of the site that a cell names, or the
mean of all sites'; and pictures of what each row's model makes of a sample of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.tables.measure import FittedCell, Measure, Taken, count_in, counted, mean_of_numbers
from benchmarks.tables.registry import find_scenario
from metrics.names import BANDWIDTH, SUBJECTS, at_site
from results.arrays import pack
from results.record import Measurement

if TYPE_CHECKING:
    from benchmarks.scenarios.configuration import Configuration
    from federation.data import Checkpoint, LabelledSet
    from federation.federation import Federation


class BySite(Measure):
    """One number per metric; mean over models, and over sites where several are tested."""

    numbers = True

    def take(self, run: FittedCell) -> Taken:
        sites = samples_by_site(run)
        numbers = numbers_of(run, sites)
        return Taken(*numbers, self.picture(run, sites))

    def picture(self, run: FittedCell, sites: Mapping[str, LabelledSet]) -> str:
        """What a picture of the sites is drawn from, packed; nothing where there is none."""
        return ""

    def histories(self, run: FittedCell, metric: str) -> list[Sequence[float]]:
        """On each site that the cell is measured on. A history names no site where a run looks at
        one alone, and not the first of several.
        """
        configuration, scenario = _of(run)
        if configuration.evaluation.on == "validation":
            return super().histories(run, metric)
        names = [at_site(metric, site) for site in scenario.tested(configuration, run.sources)]
        return [
            model.history.get(name, model.history.get(metric, ()))
            for model in run.models
            for name in names or [metric]
        ]


def samples_by_site(run: FittedCell) -> Mapping[str, LabelledSet]:
    """What a cell is measured on: test samples by site, or validation samples of all together."""
    configuration, scenario = _of(run)
    if configuration.evaluation.on == "validation":
        return {"validation": run.federation.evaluation.require_validation()}
    device = str(run.federation.networks.device)
    return scenario.test_sets(configuration, run.sources, device)


def _of(run: FittedCell) -> tuple[Configuration, ModuleType]:
    from benchmarks.scenarios.configuration import Configuration

    configuration = Configuration.parse(run.config)
    return configuration, find_scenario(configuration.data.task)


def numbers_of(
    run: FittedCell, sites: Mapping[str, LabelledSet]
) -> tuple[tuple[Measurement, ...], str]:
    """The table's metrics, mean over models and sites, and how they came about; of what a table may
    ask beside the task's, GB of the whole run (`bandwidth-gb`) and subjects. A metric that no model
    and site has, as the bytes where nothing crosses, has no number.
    """
    federation = run.federation
    sent = sum(transfer.bytes for transfer in federation.channel.ledger) / 1e9
    exchanged = {BANDWIDTH: sent} if sent else {}
    found = [
        {
            **federation.evaluation.measured(federation.networks.module(model), held),
            **subjects(held),
            **exchanged,
        }
        for model in run.models
        for held in sites.values()
    ]
    samples = sum(len(held.images) for held in sites.values())
    text = [f"on {samples} samples of {', '.join(sites)}, after training"]
    if len(sites) > 1:
        text.append("mean over sites")
    measurements = []
    for metric in run.metrics:
        if any(metric in one for one in found):
            values = [one.get(metric, math.nan) for one in found]
            counts = [
                count_in({metric: [value], **{name: [one[name]] for name in one}}, metric)
                for one, value in zip(found, values, strict=True)
            ]
            mean = float(mean_of_numbers(values)) * run.scale(metric)
            measurements.append(counted(metric, mean, counts))
    return tuple(measurements), "; ".join(filter(None, (*text, run.over_models)))


def subjects(held: LabelledSet) -> dict[str, float]:
    """How many subjects are tested, where samples are known to be someone's."""
    if held.groups is None or held.groups.is_meta:
        return {}
    return {SUBJECTS: float(len(held.groups.unique()))}


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


MEASURES = {"by-site": BySite(), "contours": Contours(), "error-maps": ErrorMaps()}
