"""FedKD: preserving privacy in federated learning with ensemble cross-domain knowledge distillation
(Gong et al., AAAI 2022).

Not FedKD of Wu et al. 2022, communication-efficient mutual distillation.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import torch

from fedtables.federation.data import Checkpoint, fetch
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.shared.averaging import class_count_weights
from fedtables.federation.shared.learner import learner_of
from fedtables.federation.shared.views import public_view
from fedtables.federation.shared.voting import vote
from fedtables.federation.training.loops import predict
from fedtables.methods.fedmd import absolute_error
from fedtables.privacy.plan import DP_SGD, PATE

T = TypeVar("T")
ALIASES = {"fedkd": "FedKD is also the name of Wu et al. 2022, another method"}


def weighted_ensemble(logits: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Sum (n, classes) of logits (clients, n, classes) with weights (clients, classes)."""
    return torch.einsum("knc,kc->nc", logits, weights)


@dataclass(frozen=True)
class FedKDGong(Method):
    """One-way distillation of an ensemble whose members are weighted per class by the samples they
    hold.
    """

    title = "FedKD"
    sends = frozenset({"logits", "labels"})
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: sends, PATE: frozenset({"votes"})}
    privacy: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": {"mechanism": PATE}}

    multi_round: bool = False
    """False: one answer, on plain public images. True: in every epoch, on augmented ones."""

    def fit(self, federation: Federation) -> Checkpoint:
        teachers = federation.local_models()
        if federation.privacy.mechanism == PATE:
            if self.multi_round:
                raise ValueError(
                    "PATE has one vote on every public image: FedKD runs under it with multi_round"
                    " = False"
                )
            return self.learn_from_votes(federation, teachers)
        weights = class_count_weights(federation.label_counts())
        if self.multi_round:
            return self.distill_online(federation, teachers, weights)

        ensemble = self.ask(federation, teachers, weights, federation.public_outputs)
        return federation.distill(ensemble, absolute_error)

    def ask(
        self,
        federation: Federation,
        teachers: Sequence[T],
        weights: torch.Tensor,
        logits_of: Callable[[T], torch.Tensor],
    ) -> torch.Tensor:
        """The weighted ensemble (n, classes) of what `logits_of` gives of the clients' teachers,
        each on its client.
        """
        sent = []
        for client, teacher in zip(federation.clients, teachers, strict=True):
            logits = client.run(lambda shard, own: logits_of(own), teacher)
            sent.append(federation.channel.up(client.index, "logits", {"logits": logits})["logits"])
        return weighted_ensemble(torch.stack(sent), weights)

    def learn_from_votes(
        self, federation: Federation, teachers: Sequence[Checkpoint]
    ) -> Checkpoint:
        """PATE on the clients' outputs (FedIOD, Privacy Analysis): the student learns the class
        that noisy votes elect.

        Votes count alike, since weights per class would tell of the clients' labels; only some
        public images are voted on.
        """
        queries = min(federation.privacy.plan.queries, len(federation.public))
        chosen = federation.streams.shuffling("queries").shuffled(len(federation.public))[:queries]
        able = [client for client in federation.clients if client.size]
        labels = vote(
            federation,
            able,
            lambda client: federation.public_outputs(teachers[client.index])[chosen],
            queries,
        )
        return federation.distill(
            labels, federation.task.loss, fetch(federation.public.images, chosen)
        )

    def distill_online(
        self, federation: Federation, teachers: Sequence[Checkpoint], weights: torch.Tensor
    ) -> Checkpoint:
        """A round is an epoch, for public images that all augment by a shared seed."""
        plan = federation.server
        student = learner_of(plan, federation.networks.initial())
        modules = [federation.networks.module(teacher) for teacher in teachers]

        for number in federation.rounds(plan.epochs, **student.parts("student")):
            images = public_view(federation, number)
            answer = functools.partial(predict, images=images, normalise=federation.normalise)
            federation.train(
                student.module,
                images,
                self.ask(federation, modules, weights, answer),
                absolute_error,
                replace(plan, epochs=1),
                "student",
                number,
                optimizer=student.optimizer,
                schedule=student.schedule,
                augmented=False,
            )
            federation.evaluation.track(student.module)
        return federation.networks.checkpoint(student.module)
