"""What teachers have to give: how well each transfers, how a method scores them when it selects,
and how good they are at their own tasks. FedSA's Table 3, Figure 4a and trial.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from fedtables.benchmarks.measures.final import Final
from fedtables.benchmarks.tables.measure import Config, FittedCell, Measure, Taken
from fedtables.results.record import Measurement

if TYPE_CHECKING:
    import torch

    from fedtables.datasets.catalogue import ResolvedData
    from fedtables.federation.federation import Federation


OWN = "teacher-accuracy"
"""The metric: the mean over teachers of each one's accuracy on held-out images of its classes."""
LENT = "teacher-weights"
"""What a method that begins with a teacher's weights declares to know (`Method.oracle`)."""


class Teachers(Final):
    """A number per metric, as `final` has it, beside the teachers' own accuracy where a row shows
    what their weights are worth.
    """

    def take(self, run: FittedCell) -> Taken:
        taken = super().take(run)
        if LENT not in run.method.oracle:
            return taken
        name = str(run.config["private.name"])
        (private,) = (source for source in run.sources if source.asked == name)
        value = fmean(own_accuracies(run.federation, private)) * run.percent
        return Taken((*taken.measurements, Measurement(OWN, value)), taken.statistic)


def own_accuracies(federation: Federation, private: ResolvedData) -> list[float]:
    """Every teacher's accuracy on the test images of its own classes of `private`, among which the
    clients' classes are shared out in groups. Raises DataError if there are no such images.
    """
    import torch

    from fedtables.benchmarks.scenarios.sites import Site
    from fedtables.datasets.partitions import class_groups
    from fedtables.federation.data import LabelledSet
    from fedtables.federation.training.loops import evaluate

    own = Site(private, federation.networks.image_shape[-1])
    labels = own.labels("test")
    parts, groups = class_groups(labels, len(federation.clients), own.source.classes)
    device = str(federation.networks.device)
    accuracies = []
    for client, teacher, part, group in zip(
        federation.clients, federation.stages.teachers(), parts, groups, strict=True
    ):
        targets = torch.from_numpy(labels[part]).to(device) - group.start
        metrics = evaluate(
            federation.networks.module(teacher),
            LabelledSet(own.images("test", part, device), targets, ""),
            client.task or federation.task,
            client.normalise or federation.normalise,
        )
        accuracies.append(metrics["accuracy"])
    return accuracies


class Selection(Measure):
    """At every selection each teacher's transferability, scaled to [0, 1] over the teachers, and
    its draws. The history has `transferability/N` and `selected/N` of every teacher N, from 1.
    """

    def take(self, run: FittedCell) -> Taken:
        import torch

        from fedtables.models.saliency import unit_scaled

        history = run.fitted[0].history
        teachers = range(1, int(run.config["partition.clients"]) + 1)
        found = [history[f"transferability/{n}"] for n in teachers]
        scores = torch.tensor(found, dtype=torch.float64).T
        measurements = []
        for number, row in enumerate(unit_scaled(scores).tolist(), 1):
            for teacher, value in zip(teachers, row, strict=True):
                column = f"selection={number} teacher={teacher}"
                draws = history[f"selected/{teacher}"][number - 1]
                measurements.append(Measurement("transferability", value, column))
                measurements.append(Measurement("selected", draws, column))
        return Taken(tuple(measurements), "at each selection of the run")


SELECTING = "evaluation.selecting"
"""The setting that names the method which scores the teachers, by how their saliency looks like
the target network's. It has `first_scores(federation)`, scores (teachers,) before any teacher has
taught, and `cosines(federation, scores)`, which they stand for."""
TRANSFER_ACCURACY = "transfer-accuracy"
"""What the table calls the accuracy of a new last layer on a frozen teacher."""
ACCURACY = "accuracy"
"""What that layer's training calls it."""


class Transferability(Measure):
    """Two numbers of the teacher that the row's method names in its field `teacher`: accuracy, and
    similarity by another method, scaled to [0, 1] over all teachers.
    """

    def methods(self, config: Config) -> tuple[str, ...]:
        return (str(config[SELECTING]),) if SELECTING in config else ()

    def histories(self, run: FittedCell, metric: str) -> list[Sequence[float]]:
        return super().histories(run, ACCURACY if metric == TRANSFER_ACCURACY else metric)

    def take(self, run: FittedCell) -> Taken:
        from fedtables.models.saliency import unit_scaled

        selecting: Any = run.other_method(str(run.config[SELECTING]))
        teacher = int(run.config[f"{run.name}.teacher"])
        scores = first_scores(run.federation, selecting)
        cosines = selecting.cosines(run.federation, scores)
        how = (
            "frozen encoder, new last layer; similarity before the first selection,"
            f" {float(cosines.min()):.4f} to {float(cosines.max()):.4f} stretched over 0 to 1"
        )
        accuracy = run.fitted[0].history[ACCURACY][-1] * run.percent
        similarity = float(unit_scaled(scores)[teacher - 1])
        names = (TRANSFER_ACCURACY, "saliency-similarity")
        return Taken(tuple(map(Measurement, names, (accuracy, similarity))), how)


def first_scores(federation: Federation, method: Any) -> torch.Tensor:
    """The method's first scores (teachers,), computed once for the cells of all teachers."""
    from fedtables.federation.cache import Stage, StageRequest

    inputs = {**federation.stages.identity(), "method": dataclasses.asdict(method)}
    request = StageRequest(
        "similarities",
        "saliency of all teachers",
        inputs,
        lambda: Stage({"scores": method.first_scores(federation)}),
        type(method).__module__,
    )
    return federation.stages.cache.get(request).tensors["scores"]


MEASURES = {"teachers": Teachers(), "selection": Selection(), "transferability": Transferability()}
