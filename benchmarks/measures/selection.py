"""How a method scores the teachers each time that it selects among them: FedSA's Figure 4a."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.tables.measure import Config, FittedCell, Measure, Taken
from results.record import Measurement

if TYPE_CHECKING:
    from federation.data import Checkpoint


class Selection(Measure):
    """A score and a count of draws for each selection and teacher."""

    def take(self, run: FittedCell) -> Taken:
        return Taken(*selections(run.fitted, run.config))


def selections(fitted: Sequence[Checkpoint], config: Config) -> tuple[tuple[Measurement, ...], str]:
    """At every selection each teacher's transferability, scaled to [0, 1] over the teachers, and
    its draws.

    The history has `transferability/N` and `selected/N` of every teacher N, counted from 1.
    """
    import torch

    from models.saliency import unit_scaled

    history = fitted[0].history
    teachers = range(1, int(config["partition.clients"]) + 1)
    scores = torch.tensor(
        [history[f"transferability/{n}"] for n in teachers], dtype=torch.float64
    ).T
    measurements = []
    for number, row in enumerate(unit_scaled(scores).tolist(), 1):
        for teacher, value in zip(teachers, row, strict=True):
            column = f"selection={number} teacher={teacher}"
            measurements.append(Measurement("transferability", value, column))
            measurements.append(
                Measurement("selected", history[f"selected/{teacher}"][number - 1], column)
            )
    return tuple(measurements), "at each selection of the run"


MEASURE = Selection()
