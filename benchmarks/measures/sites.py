"""The task's metrics at the end of a run, on the test samples of the site that a cell names, or the
mean of all sites'; and pictures of what each row's model makes of a sample of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from fedtables.benchmarks.scenarios.scenario import built_on
from fedtables.benchmarks.tables.measure import (
    FittedCell,
    Measure,
    Taken,
    count_in,
    counted,
    mean_of_numbers,
)
from fedtables.benchmarks.tables.registry import find_scenario
from fedtables.metrics.names import BANDWIDTH, SUBJECTS, at_site
from fedtables.results.arrays import pack

if TYPE_CHECKING:
    from fedtables.benchmarks.scenarios.configuration import Configuration
    from fedtables.federation.data import LabelledSet


class BySite(Measure):
    """The table's metrics, mean over models, and over sites where several are tested. Of what a
    table may ask beside the task's, GB of the whole run (`bandwidth-gb`) and subjects. A metric
    that no model and site has, as the bytes where nothing crosses, has no number.
    """

    numbers = True

    def take(self, run: FittedCell) -> Taken:
        sites = self.sites(run)
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
        samples = sum(len(held.images) for held in sites.values())
        text = [f"on {samples} samples of {', '.join(sites)}, after training"]
        if len(sites) > 1:
            text.append("mean over sites")
        how = "; ".join(filter(None, (*text, run.over_models)))
        return Taken(tuple(measurements), how, self.picture(run, sites))

    def sites(self, run: FittedCell) -> Mapping[str, LabelledSet]:
        """What is measured: test samples by site, or validation samples of all together."""
        configuration, scenario = _of(run)
        if configuration.evaluation.on == "validation":
            return {"validation": run.federation.evaluation.require_validation()}
        device = built_on(run.federation.networks.device)
        return scenario.test_sets(configuration, run.sources, device)

    def picture(self, run: FittedCell, sites: Mapping[str, LabelledSet]) -> str:
        """What a picture is drawn from, by kind and site, packed; nothing where there is none."""
        arrays = {
            f"{kind}/{name}": values
            for name, held in sites.items()
            for kind, values in self.shown(run, held).items()
        }
        return pack(arrays) if arrays else ""

    def shown(self, run: FittedCell, held: LabelledSet) -> dict[str, np.ndarray]:
        """What is shown of a site, by kind; nothing while planning."""
        return {}

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


def _of(run: FittedCell) -> tuple[Configuration, ModuleType]:
    from fedtables.benchmarks.scenarios.configuration import Configuration

    configuration = Configuration.parse(run.config)
    return configuration, find_scenario(configuration.data.task)


def subjects(held: LabelledSet) -> dict[str, float]:
    """How many subjects are tested, where samples are known to be someone's."""
    if held.groups is None or held.groups.is_meta:
        return {}
    return {SUBJECTS: float(len(held.groups.unique()))}


SHOWN = 160
"""Pixels of a side of what is shown of a sample, its middle."""


class Contours(BySite):
    """The numbers of `by-site`, and of each site the sample with most that is labelled: image, true
    objects and those that the model finds.
    """

    numbers = False  # it is the picture that is looked at

    def shown(self, run: FittedCell, held: LabelledSet) -> dict[str, np.ndarray]:
        """Raises ValueError for volumes and for a task without objects."""
        import torch

        from fedtables.federation.training.loops import predictions

        federation, task = run.federation, run.federation.task
        if not hasattr(task, "found") or held.images.ndim != 4:
            raise ValueError(f"contours are of objects in images, and the task is {task}")
        if held.images.is_meta:
            return {}
        place = int((held.targets > 0).flatten(1).sum(dim=1).argmax())
        image, target = held.images[place : place + 1], held.targets[place : place + 1]
        module = federation.networks.module(run.models[0])
        [outputs] = predictions(module, image, normalise=federation.normalise, window=held.window)
        maps = {"image": image[0], "target": target[0], "predicted": task.found(outputs)[0]}
        rows, columns = (_middle(side) for side in target.shape[1:])
        kept = {
            kind: torch.as_tensor(values)[..., rows, columns].cpu() for kind, values in maps.items()
        }
        return {
            kind: values.numpy().astype(np.uint8 if kind == "image" else np.uint16)
            for kind, values in kept.items()
        }


def _middle(side: int) -> slice:
    """The middle `SHOWN` pixels of a side, or all."""
    start = max(0, (side - SHOWN) // 2)
    return slice(start, start + min(side, SHOWN))


class ErrorMaps(BySite):
    """The numbers of `by-site`, and of each site the middle slice of its first subject: a network's
    input, its truth and what it makes, each float32 (h, w).
    """

    numbers = False  # it is the picture that is looked at

    def shown(self, run: FittedCell, held: LabelledSet) -> dict[str, np.ndarray]:
        """Raises ValueError for a task whose targets are no grey images."""
        from fedtables.federation.training.loops import predict

        federation = run.federation
        if held.images.is_meta:
            return {}
        if held.images.shape != held.targets.shape or held.images.shape[1] != 1:
            raise ValueError(f"error maps are of grey images, and the task is {federation.task}")
        place = middle_slice(None if held.groups is None else held.groups.cpu().numpy())
        image, target = held.images[place : place + 1], held.targets[place : place + 1]
        module = federation.networks.module(run.models[0])
        made = predict(module, image, normalise=federation.normalise)
        maps = {"image": image, "target": target, "predicted": made}
        return {kind: values[0, 0].float().cpu().numpy() for kind, values in maps.items()}


def middle_slice(groups: np.ndarray | None) -> int:
    """The place of the middle one of the first group's samples; the first without groups."""
    if groups is None:
        return 0
    own = np.flatnonzero(groups == groups[0])
    return int(own[len(own) // 2])


MEASURES = {"by-site": BySite(), "contours": Contours(), "error-maps": ErrorMaps()}
