"""Scratch training: the target network learns from the server's own labelled samples, and from
nobody else.
"""

from __future__ import annotations

from dataclasses import dataclass

from federation.data import Checkpoint
from federation.federation import Federation
from federation.method import Method


@dataclass(frozen=True)
class Scratch(Method):
    """Supervised training on the probe set by the server's plan. Nothing crosses the channel."""

    title = "Scratch training"

    def fit(self, federation: Federation) -> Checkpoint:
        probe = federation.probe()
        model = federation.networks.initial()
        federation.train(
            model,
            probe.images,
            probe.targets,
            federation.task.loss,
            federation.server,
            "scratch",
            track=True,
            label="scratch",
        )
        return federation.networks.checkpoint(model)
