"""FedKD: preserving privacy in federated learning with ensemble cross-domain knowledge distillation
(Gong et al., AAAI 2022).

Not the other method of that name (Wu et al. 2022, communication-efficient mutual distillation).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import nn

from federation.client import Shard
from federation.data import Checkpoint
from federation.federation import Federation
from federation.method import Method
from federation.shared.averaging import class_count_weights
from federation.shared.learner import learner_of
from federation.shared.views import public_view
from federation.shared.voting import vote
from federation.training.loops import predict
from methods.fedmd import absolute_error
from privacy.plan import DP_SGD, PATE


def weighted_ensemble(logits: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Sum (n, classes) of logits (clients, n, classes) with weights (clients, classes)."""
    return torch.einsum("knc,kc->nc", logits, weights)


@dataclass(frozen=True)
class FedKD(Method):
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

        def answers(shard: Shard, teacher: Checkpoint) -> dict[str, torch.Tensor]:
            return {"logits": federation.public_outputs(teacher)}

        logits = [
            federation.channel.up(client.index, "logits", client.run(answers, teacher))["logits"]
            for client, teacher in zip(federation.clients, teachers, strict=True)
        ]
        return federation.distill(weighted_ensemble(torch.stack(logits), weights), absolute_error)

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
        return federation.distill(labels, federation.task.loss, federation.public.images[chosen])

    def distill_online(
        self, federation: Federation, teachers: Sequence[Checkpoint], weights: torch.Tensor
    ) -> Checkpoint:
        """A round is an epoch, for public images that all augment by a shared seed."""
        plan = federation.server
        student = learner_of(plan, federation.networks.initial())
        modules = [federation.networks.module(teacher) for teacher in teachers]

        def answers(
            shard: Shard, module: nn.Module, images: torch.Tensor
        ) -> dict[str, torch.Tensor]:
            return {"logits": predict(module, images, normalise=federation.normalise)}

        for number in federation.rounds(plan.epochs, **student.parts("student")):
            images = public_view(federation, number)
            answered = [
                client.run(answers, module, images)
                for client, module in zip(federation.clients, modules, strict=True)
            ]
            logits = [
                federation.channel.up(client.index, "logits", answer)["logits"]
                for client, answer in zip(federation.clients, answered, strict=True)
            ]
            federation.train(
                student.module,
                images,
                weighted_ensemble(torch.stack(logits), weights),
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
