"""The task's metrics at the end of a run, on the test samples of the site that a cell names, or the
mean of all sites'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.tables.measure import Fitted, Measure, Taken
from benchmarks.tables.registry import find_scenario
from metrics.names import BANDWIDTH, SUBJECTS
from results.record import Measurement

if TYPE_CHECKING:
    from federation.federation import Federation
    from federation.parties.checkpoint import Checkpoint
    from federation.parties.data import LabelledSet


class BySite(Measure):
    """One number per metric; mean over models, and over sites where several are tested."""

    numbers = True

    def take(self, run: Fitted) -> Taken:
        from benchmarks.scenarios.configuration import Configuration

        configuration = Configuration.parse(run.config)
        scenario = find_scenario(configuration.data.task).load()
        device = str(run.federation.networks.device)
        sites = scenario.test_sets(configuration, run.sources, device)
        return Taken(*measure(run.federation, run.models, sites, run.metrics, run.scale))


def measure(
    federation: Federation,
    models: Sequence[Checkpoint],
    sites: Mapping[str, LabelledSet],
    metrics: Sequence[str],
    scale: Callable[[str], float] = lambda metric: 1.0,
) -> tuple[tuple[Measurement, ...], str]:
    """Metrics by name, each times its `scale`, and how they came about; of what a table may ask
    beside the task's, GB of the whole run (`bandwidth-gb`) and subjects. A metric that is not
    defined for one model and site, as a distance from nothing, is left out of the mean, and the
    text says of how many it is; nothing is left if it is for none.
    """
    sent = sum(transfer.bytes for transfer in federation.channel.ledger) / 1e9
    exchanged = {BANDWIDTH: sent} if sent else {}
    found = [
        {
            **federation.evaluation.measured(federation.networks.module(model), held),
            **subjects(held),
            **exchanged,
        }
        for model in models
        for held in sites.values()
    ]
    samples = sum(len(held.images) for held in sites.values())
    text = [f"on {samples} test samples of {', '.join(sites)}, after training"]
    if len(sites) > 1:
        text.append("mean over sites")
    if len(models) > 1:
        text.append("mean over models")
    measurements = []
    for metric in metrics:
        values = [one.get(metric, math.nan) for one in found]
        defined = [value for value in values if not math.isnan(value)]
        if defined:
            measurements.append(Measurement(metric, float(np.mean(defined)) * scale(metric)))
        if len(defined) < len(values) and metric != BANDWIDTH:  # where nothing crosses
            text.append(f"{metric} of {len(defined)} of {len(values)}")
    return tuple(measurements), "; ".join(text)


def subjects(held: LabelledSet) -> dict[str, float]:
    """How many subjects are tested, where samples are known to be someone's."""
    if held.groups is None or held.groups.is_meta:
        return {}
    return {SUBJECTS: float(len(held.groups.unique()))}


MEASURE = BySite()
