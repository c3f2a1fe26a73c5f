"""FedAD's Table 1: the AUC of every finding that a model and a test set share, and their means over
findings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from benchmarks.measures.film_counts import scarce_findings
from benchmarks.tables.measure import Config, FittedCell, Measure, Taken, counted
from benchmarks.tables.registry import find_scenario
from results.record import Measurement

if TYPE_CHECKING:
    from federation.data import Checkpoint, LabelledSet
    from federation.federation import Federation
    from federation.tasks.multi_label import MultiLabel

SITES = "findings."
"""What the settings begin with that list a site's findings; `findings.uncertain` lists none."""


class Findings(Measure):
    """AUCs on the test set that `evaluation.test` names, which may be of no client."""

    def take(self, run: FittedCell) -> Taken:
        from benchmarks.scenarios.configuration import Configuration

        configuration = Configuration.parse(run.config)
        scenario = find_scenario(configuration.data.task)
        wanted, device = configuration.evaluation.test, str(run.federation.networks.device)
        tested = next(source for source in run.sources if source.asked == wanted)
        test, labelled = scenario.test_set(configuration, tested, run.seeds, device)
        overlap = overlapping(run.config)
        return Taken(
            *measure(run.federation, run.models, test, labelled, overlap, tested.label, run.percent)
        )


def measure(
    federation: Federation,
    fitted: Sequence[Checkpoint],
    test: LabelledSet,
    findings: Sequence[str],
    overlap: Sequence[str],
    name: str,
    scale: float = 1.0,
) -> tuple[tuple[Measurement, ...], str]:
    """AUC by finding, their number, and their means over `overlap` and over all; mean over models.
    And how they came about.

    `test` has targets (n, findings) for its own `findings`; `name` is what the text calls its data
    set. A finding of which the AUC is not defined, or that no model knows, has no number. The mean
    over all is only of models that know all of them. AUCs are multiplied by `scale`. Raises
    ValueError for a task without findings, or if no finding has an AUC.
    """
    from federation.tasks.multi_label import MultiLabel
    from federation.training.loops import predict
    from metrics.classification import auc_by_class

    if not isinstance(federation.task, MultiLabel):
        raise ValueError(
            f"AUC by finding is of multi-label tasks, and the task is {federation.task}"
        )
    test_task = MultiLabel(tuple(findings))
    known, scores = set(findings), []
    for checkpoint in fitted:
        task = task_of(federation, checkpoint)
        known &= set(task.findings)
        outputs = predict(
            federation.networks.module(checkpoint), test.images, normalise=federation.normalise
        )
        scores.append(auc_by_class(test_task.place(outputs, task.findings), test.targets))
    # Of one finding all models have an AUC, or none: the test films decide, and models of one table
    # have one label set.
    means = {
        f: float(np.mean(column))
        for f, column in zip(findings, np.transpose(scores), strict=True)
        if _whole(column)
    }
    if not means:
        raise ValueError(
            f"no finding has films of {name} both with and without it, so that no AUC is defined"
        )
    models = [(1, 1)] * len(fitted)
    measurements = [
        counted("auc", scale * value, models, f"class={finding}")
        for finding, value in means.items()
    ]
    measurements.append(Measurement("num-classes", float(len(means)), "class=all"))
    shared = [means[finding] for finding in overlap if finding in means]
    if shared:
        mean, of = scale * float(np.mean(shared)), [(len(shared), len(overlap))]
        measurements.append(counted("mauc", mean, of, "class=overlap"))
    if known >= set(findings):
        mean, of = scale * float(np.mean(list(means.values()))), [(len(means), len(findings))]
        measurements.append(counted("mauc", mean, of, "class=total"))
    how = f"AUC on {len(test.images):,} test films of {name}, after training"
    text = [
        how + (", mean over models" if len(fitted) > 1 else ""),
        *scarce_findings(test, [f for f in findings if f in known], findings),
    ]
    return tuple(measurements), "; ".join(text)


def overlapping(config: Config) -> list[str]:
    """The findings that all sites of a configuration label, in the order of the first."""
    first, *others = [
        str(value).split("+")
        for name, value in config.items()
        if name.startswith(SITES) and name != "findings.uncertain"
    ]
    return [finding for finding in first if all(finding in other for other in others)]


def task_of(federation: Federation, checkpoint: Checkpoint) -> MultiLabel:
    """What a checkpoint has outputs for: its client's own label set, or the federation's."""
    tasks = {f"client-{client.index}": client.task for client in federation.clients}
    return cast("MultiLabel", tasks.get(checkpoint.owner) or federation.task)


def _whole(column: np.ndarray) -> bool:
    return not bool(np.isnan(column).any())


MEASURE = Findings()
