"""The task's metrics at the end of a run, on the test samples of the site that a cell names, or the
mean of all sites'.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from benchmarks.tables.measure import FittedCell, Measure, Taken, count_in, counted, mean_of_numbers
from benchmarks.tables.registry import find_scenario
from metrics.names import BANDWIDTH, SUBJECTS, at_site
from results.record import Measurement

if TYPE_CHECKING:
    from benchmarks.scenarios.configuration import Configuration
    from federation.data import LabelledSet


class BySite(Measure):
    """One number per metric; mean over models, and over sites where several are tested."""

    numbers = True

    def take(self, run: FittedCell) -> Taken:
        sites = samples_by_site(run)
        numbers = measure(run, sites)
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


def measure(
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


MEASURE = BySite()
