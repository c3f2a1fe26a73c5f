"""What a run has reached in the end; of a row that begins with a teacher's weights also how good
the teachers are at their own tasks: FedSA's trial.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.measures.final import Final
from benchmarks.tables.measure import FittedCell, Taken
from results.record import Measurement

if TYPE_CHECKING:
    from datasets.catalogue import ResolvedData
    from federation.federation import Federation

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

    from benchmarks.scenarios.sites import Site
    from datasets.partitions import class_groups
    from federation.training.measuring import evaluate

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
            own.images("test", part, device),
            targets,
            task=client.task or federation.task,
            normalise=client.normalise or federation.normalise,
        )
        accuracies.append(metrics["accuracy"])
    return accuracies


MEASURE = Teachers()
