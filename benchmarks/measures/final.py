"""A number for each of the table's metrics: what a run has reached in the end, mean over its
models.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.tables.measure import FittedCell, Measure, Taken, count_in, counted, mean_of_numbers
from metrics.names import LOWER, facts

if TYPE_CHECKING:
    from benchmarks.scenarios.configuration import EvaluationSettings

OF_ONE_TASK = frozenset({"accuracy", "miou"})
"""Metrics that one kind of task has and others lack: classes of images, and of pixels."""


class Final(Measure):
    """One number per metric."""

    numbers = True

    def take(self, run: FittedCell) -> Taken:
        from benchmarks.scenarios.configuration import EvaluationSettings, read_section

        how = read_section(run.config, "evaluation", EvaluationSettings)
        models = run.models
        measurements = []
        for metric in metrics_of(run):
            histories = [checkpoint.history[metric] for checkpoint in models]
            values = [statistic_of(metric, history, how) for history in histories]
            counts = [
                count_in(checkpoint.history, metric, epochs_of(metric, history, how))
                for checkpoint, history in zip(models, histories, strict=True)
            ]
            mean = float(mean_of_numbers(values)) * run.scale(metric)
            measurements.append(counted(metric, mean, counts))
        return Taken(tuple(measurements), in_words(run, statistic_name(histories, how)))


def metrics_of(run: FittedCell) -> list[str]:
    """The table's metrics, but for those of tasks that the run's is not: a table may have columns
    of several.
    """
    others = OF_ONE_TASK - set(run.federation.task.metric_names)
    return [metric for metric in run.metrics if metric not in others]


def in_words(run: FittedCell, how: str) -> str:
    """How numbers came about that are `how` of each model: over how many models, and on which test
    films where there are findings.
    """
    from benchmarks.measures.film_counts import scarce_findings
    from federation.tasks.multi_label import MultiLabel

    federation = run.federation
    text = [", ".join(filter(None, (how, run.over_models)))]
    if isinstance(federation.task, MultiLabel):
        findings = federation.task.findings
        text += scarce_findings(federation.evaluation.test_set, findings, findings)
    return "; ".join(text)


def statistic_of(metric: str, history: Sequence[float], how: EvaluationSettings) -> float:
    """A run's number from its history: the median of the last epochs (of ten in DLAD, section V-D),
    or what the released code reports, the best; NaN if one of these is.

    With `at`, a share of the epochs, what the run had reached there.
    """
    values = [history[place] for place in epochs_of(metric, history, how)]
    return math.nan if any(map(math.isnan, values)) else statistics.median(values)


def epochs_of(metric: str, history: Sequence[float], how: EvaluationSettings) -> Sequence[int]:
    """The places in a history of the values that `statistic_of` is made of."""
    there = range(how.epochs(len(history)))
    if how.statistic != "best":
        return there[-how.last_epochs :]
    better = min if facts(metric).better == LOWER else max
    return [better(there, key=lambda place: history[place])]


def statistic_name(histories: Sequence[Sequence[float]], how: EvaluationSettings) -> str:
    """The statistic in words."""
    length = min(len(history) for history in histories)
    if how.at < 1:
        length = how.epochs(length)
    if how.statistic == "best":
        return (
            f"best of {length} epochs or rounds by test accuracy (optimistic, as the authors' code"
            " reports it)"
        )
    if (last := min(how.last_epochs, length)) > 1:
        return f"median of the last {last} epochs"
    if how.looks:
        return f"at the end of a run that was looked at {length} times"
    return f"after the last of {length} epochs or rounds"


MEASURE = Final()
