"""Scratch training: the target network learns from the server's own labelled samples."""

from dataclasses import dataclass

from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.shared.learner import learn_probe


@dataclass(frozen=True)
class Scratch(Method):
    """Supervised training on the probe set by the server's plan. Nothing crosses the channel."""

    title = "Scratch training"

    def fit(self, federation: Federation) -> Checkpoint:
        model = federation.networks.initial()
        learn_probe(federation, model, federation.server, "scratch", track=True, label="scratch")
        return federation.networks.checkpoint(model)
