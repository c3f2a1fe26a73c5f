"""Training on the public set's own labels: what a server could do without any client."""

from dataclasses import dataclass

from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method


@dataclass(frozen=True)
class PublicOnly(Method):
    """Supervised training on the labelled public set; nothing crosses. Distillation should do
    better to be worth its name.

    Offered for tables whose public set is labelled with the task's own classes.
    """

    title = "Public labels only"
    oracle = frozenset({"public-labels"})

    def fit(self, federation: Federation) -> Checkpoint:
        model = federation.networks.initial()
        federation.train(
            model,
            federation.public.images,
            federation.evaluation.public_labels(),
            federation.task.loss,
            federation.server,
            "public only",
            track=True,
            label="public only",
        )
        return federation.networks.checkpoint(model)
