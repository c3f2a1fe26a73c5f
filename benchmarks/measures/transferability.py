"""FedSA's Table 3: how well each frozen teacher transfers, beside how much its saliency looks like
the target network's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import torch

from benchmarks.tables.spec import Scalar
from federation.amalgamation import train_weak
from federation.checkpoint import Checkpoint
from federation.federation import Federation
from federation.stages import Stage, StageRequest
from methods.fedsa import FedSA
from models.saliency import unit_scaled
from results.record import Measurement


def transferabilities(federation: Federation, method: FedSA) -> torch.Tensor:
    """Q of every teacher for the weak target network; (teachers,).

    The target network is what Algorithm 1 has at its first selection: trained on the probe set,
    before any teacher.
    """

    def compute() -> Stage:
        probe = federation.probe()
        images = method.shown(probe)
        target = federation.networks.initial()
        train_weak(federation, target, method.weak_epochs, 1)
        pairs = zip(federation.clients, federation.stages.teachers(), strict=True)
        own = [
            method.teacher_maps(federation, client, teacher, images, probe.digest)
            for client, teacher in pairs
        ]
        return Stage(
            {
                "scores": method.scores(
                    own, method.maps_of(federation.normalise, target, images), len(images)
                )
            }
        )

    inputs = {**federation.stages.identity(), "method": asdict(method)}
    request = StageRequest("similarities", "saliency of all teachers", inputs, compute, __name__)
    return federation.stages.cache.get(request).tensors["scores"]


def measure(
    federation: Federation, method: FedSA, teacher: int, fitted: Sequence[Checkpoint], scale: float
) -> tuple[tuple[Measurement, ...], str]:
    """A teacher's two numbers (`teacher` counts from 1), and how they were made; the similarity
    scaled to [0, 1] over all.
    """
    accuracy = fitted[0].history["accuracy"][-1] * scale
    scores = transferabilities(federation, method)
    similarity = float(unit_scaled(scores)[teacher - 1])
    found = (
        Measurement("transfer-accuracy", accuracy),
        Measurement("saliency-similarity", similarity),
    )
    if method.transferability == "eq2":
        scores = scores * len(method.shown(federation.probe()))  # the cosine: 1 / d is cos / M
    span = f"{float(scores.min()):.4f} to {float(scores.max()):.4f}"
    return (
        found,
        (
            f"frozen encoder, new last layer; similarity before the first selection, {span}"
            " stretched over 0 to 1"
        ),
    )


def selections(
    fitted: Sequence[Checkpoint], config: dict[str, Scalar]
) -> tuple[tuple[Measurement, ...], str]:
    """Figure 4a: at every selection each teacher's transferability, scaled to [0, 1] over the
    teachers, and its draws.
    """
    history = fitted[0].history
    teachers = range(1, int(config["partition.clients"]) + 1)
    scores = torch.tensor(
        [history[f"transferability/{n}"] for n in teachers], dtype=torch.float64
    ).T
    found = []
    for number, row in enumerate(unit_scaled(scores).tolist(), 1):
        for teacher, value in zip(teachers, row, strict=True):
            column = f"selection={number} teacher={teacher}"
            found.append(Measurement("transferability", value, column))
            found.append(
                Measurement("selected", history[f"selected/{teacher}"][number - 1], column)
            )
    return tuple(found), "at each selection of the run"
