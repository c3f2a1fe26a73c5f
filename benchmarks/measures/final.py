"""The table's metrics by a run's history: what it has reached in the end, after every epoch, and
against the bytes that had crossed; each the mean over its models.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fedtables.benchmarks.tables.measure import (
    FittedCell,
    Measure,
    Taken,
    count_in,
    counted,
    mean_of_numbers,
)
from fedtables.metrics.names import BANDWIDTH, LOWER, facts
from fedtables.results.record import Measurement

if TYPE_CHECKING:
    from fedtables.benchmarks.scenarios.configuration import EvaluationSettings
    from fedtables.federation.channel import Transfer
    from fedtables.federation.data import LabelledSet


OF_ONE_TASK = frozenset({"accuracy", "miou"})
"""Metrics that one kind of task has and others lack: classes of images, and of pixels."""


class Final(Measure):
    """One number per metric."""

    numbers = True

    def take(self, run: FittedCell) -> Taken:
        from fedtables.benchmarks.scenarios.configuration import EvaluationSettings, read_section

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
    from fedtables.federation.tasks.images import MultiLabel

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


def scarce_findings(
    test: LabelledSet, counted: Sequence[str], findings: Sequence[str]
) -> list[str]:
    """What a reader of means over the findings `counted` must know: how few films some are of, and
    which have no AUC.

    `findings` are those of the columns of the test set's targets.
    """
    from fedtables.metrics.classification import UNKNOWN

    known = (test.targets != UNKNOWN).sum(dim=0).tolist()
    present = (test.targets == 1).sum(dim=0).tolist()
    having, without = [], []
    for finding, total, positive in zip(findings, known, present, strict=True):
        if finding not in counted:
            continue
        if 0 < positive < total:
            having.append(f"{finding} {positive:,}")
        elif total:
            without.append(f"{finding} ({positive:,} of {total:,} films)")
        else:
            without.append(f"{finding} (not labelled)")
    text = [f"films with each: {', '.join(having)}"] if having else []
    return text + ([f"no AUC, and no part in the means: {', '.join(without)}"] if without else [])


class Curve(Measure):
    """A number per metric and epoch, under the column key `epoch`, counted from 1."""

    every_epoch = True

    def take(self, run: FittedCell) -> Taken:
        models, measurements = run.models, list[Measurement]()
        for metric in metrics_of(run):
            histories = [checkpoint.history for checkpoint in models]
            means = mean_of_numbers([h[metric] for h in histories]) * run.scale(metric)
            for place, mean in enumerate(means):
                counts = [count_in(history, metric, [place]) for history in histories]
                measurements.append(counted(metric, mean, counts, f"epoch={place + 1}"))
        return Taken(tuple(measurements), in_words(run, "epochs"))


class Bandwidth(Measure):
    """The table's first metric, mean over models, and the bandwidth in GB (10^9 bytes) up to it,
    under the column key `round`.
    """

    every_epoch = True

    def take(self, run: FittedCell) -> Taken:
        metric, models, measurements = run.metrics[0], run.models, list[Measurement]()
        values = mean_of_numbers([model.history[metric] for model in models]) * run.scale(metric)
        rounds = getattr(run.method, "rounds", None)
        sizes = crossed(run.federation.channel.ledger, len(values), rounds)
        for place, (value, size) in enumerate(zip(values, sizes, strict=True)):
            counts = [count_in(model.history, metric, [place]) for model in models]
            at = f"round={place + 1}"
            measurements.append(counted(metric, value, counts, at))
            measurements.append(Measurement(BANDWIDTH, size / 1e9, at))
        if len(set(sizes)) > 1:
            how = f"after each of {len(values)} rounds, with the bytes until then"
        else:
            how = f"after each of {len(values)} epochs, when all bytes had crossed"
        text = how + (", mean over models" if len(models) > 1 else "")
        return Taken(tuple(measurements), text)


def crossed(ledger: Sequence[Transfer], count: int, rounds: int | None = None) -> list[int]:
    """Bytes, of all clients and both ways, that had crossed when each of a history's `count` values
    was measured.

    A history with a value per round of the ledger was measured after each of them. Any other is of
    a model that was trained after everything had crossed. So is one where the method has fewer
    `rounds` of its own: FedMD books the last consensus, from which its central model learns, as one
    more.
    """
    per_round = Counter[int]()
    for transfer in ledger:
        per_round[transfer.round] += transfer.bytes
    last = max(per_round, default=0)
    if count != last or (rounds is not None and rounds < last):
        return [per_round.total()] * count
    return list(itertools.accumulate(per_round[number] for number in range(last + 1)))[1:]


MEASURES = {"final": Final(), "curve": Curve(), "bandwidth": Bandwidth()}
