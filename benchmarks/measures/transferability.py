"""How well each frozen teacher transfers, beside how much its saliency looks like the target
network's: FedSA's Table 3.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from benchmarks.tables.measure import Config, FittedCell, Measure, Taken
from results.record import Measurement

if TYPE_CHECKING:
    import torch

    from federation.data import Checkpoint
    from federation.federation import Federation

SELECTING = "evaluation.selecting"
"""The setting that names the method which scores the teachers."""
TRANSFER_ACCURACY = "transfer-accuracy"
"""What the table calls the accuracy of a new last layer on a frozen teacher."""
ACCURACY = "accuracy"
"""What that layer's training calls it."""


class Selecting(Protocol):
    """A method that scores teachers by how their saliency looks like the target network's."""

    def first_scores(self, federation: Federation) -> torch.Tensor:
        """Scores (teachers,) before any teacher has taught."""

    def cosines(self, federation: Federation, scores: torch.Tensor) -> torch.Tensor:
        """The cosines (teachers,) that scores stand for."""


class Transferability(Measure):
    """Two numbers of the teacher that the row's method names in its field `teacher`: accuracy, and
    similarity by another method.
    """

    def methods(self, config: Config) -> tuple[str, ...]:
        return (str(config[SELECTING]),) if SELECTING in config else ()

    def histories(self, run: FittedCell, metric: str) -> list[Sequence[float]]:
        return super().histories(run, ACCURACY if metric == TRANSFER_ACCURACY else metric)

    def take(self, run: FittedCell) -> Taken:
        selecting = cast(Selecting, run.other_method(str(run.config[SELECTING])))
        teacher = int(run.config[f"{run.name}.teacher"])
        return Taken(*measure(run.federation, selecting, teacher, run.fitted, run.percent))


def first_scores(federation: Federation, method: Selecting) -> torch.Tensor:
    """The method's first scores (teachers,), computed once for the cells of all teachers."""
    from federation.cache import Stage, StageRequest

    inputs = {**federation.stages.identity(), "method": dataclasses.asdict(cast(Any, method))}
    request = StageRequest(
        "similarities",
        "saliency of all teachers",
        inputs,
        lambda: Stage({"scores": method.first_scores(federation)}),
        type(method).__module__,
    )
    return federation.stages.cache.get(request).tensors["scores"]


def measure(
    federation: Federation,
    method: Selecting,
    teacher: int,
    fitted: Sequence[Checkpoint],
    scale: float,
) -> tuple[tuple[Measurement, ...], str]:
    """A teacher's two numbers (`teacher` counts from 1), and how they were made; the similarity
    scaled to [0, 1] over all.
    """
    from models.saliency import unit_scaled

    accuracy = fitted[0].history[ACCURACY][-1] * scale
    scores = first_scores(federation, method)
    similarity = float(unit_scaled(scores)[teacher - 1])
    measurements = (
        Measurement(TRANSFER_ACCURACY, accuracy),
        Measurement("saliency-similarity", similarity),
    )
    cosines = method.cosines(federation, scores)
    span = f"{float(cosines.min()):.4f} to {float(cosines.max()):.4f}"
    return (
        measurements,
        (
            f"frozen encoder, new last layer; similarity before the first selection, {span}"
            " stretched over 0 to 1"
        ),
    )


MEASURE = Transferability()
