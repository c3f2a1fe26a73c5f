"""DENSE: data-free one-shot federated learning (Zhang et al., NeurIPS 2022).

Clients send their own models once. The server trains a generator until the ensemble of these models
knows its images as their labels, its batch statistics are those of their BatchNorm layers, and the
student judges them otherwise. The student learns the ensemble on all images made so far.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F

from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.shared.datafree import (
    QUICK,
    Pool,
    Synthesis,
    answers,
    divergence,
    frozen,
    measured_statistics,
    uploaded_networks,
)
from fedtables.federation.shared.learner import learner_of
from fedtables.federation.training.loops import predict
from fedtables.federation.training.plan import TrainingPlan
from fedtables.privacy.plan import DP_SGD
from fedtables.results.numbers import Positive


def boundary_loss(student: torch.Tensor, ensemble: torch.Tensor) -> torch.Tensor:
    """L_div () of Eq. 4: -mean of omega KL(D || f_S), of logits (n, classes); omega is 1 where the
    two differ in their class, else 0.
    """
    differ = student.argmax(dim=1) != ensemble.argmax(dim=1)
    return -(differ * divergence(student, ensemble)).mean()


@dataclass(frozen=True)
class DENSE(Synthesis, Method):
    """Data generation by Eq. 5, then model distillation by Eq. 6, in every epoch.

    As in the released code, labels are drawn from all classes, and the student goes through all
    images made so far; there they pass through 8-bit files and are cropped at random, here not.
    """

    title = "DENSE"
    sends = frozenset({"parameters"})
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: sends}
    quick: ClassVar[Mapping[str, float]] = {
        **QUICK,
        "boundary": 4.0,
        "lr": 0.02,
        "temperature": 20.0,
    }

    statistics: float = 1.0
    """lambda_1, the weight of L_BN (paper)."""
    boundary: float = 0.5
    """lambda_2, the weight of L_div (paper)."""
    temperature: Positive = 1.0
    """Of the student's loss (Eq. 6 has none; README: 20)."""

    def fit(self, federation: Federation) -> Checkpoint:
        teachers = uploaded_networks(federation)
        plan = TrainingPlan(self.epochs, self.batch_size, self.lr, "sgd", self.momentum)
        student = learner_of(plan, federation.networks.initial())

        def generation_loss(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            ensemble = answers(federation, teachers, inputs, measured=True).mean(dim=0)
            loss = F.cross_entropy(ensemble, labels)
            if distances:  # those of this pass
                loss = loss + self.statistics * torch.stack(distances).sum() / len(teachers)
                distances.clear()
            judged = federation.forward(student.module, inputs)
            return loss + self.boundary * boundary_loss(judged, ensemble)

        loss = functools.partial(divergence, temperature=self.temperature)
        pool = Pool(federation.networks.device)
        for epoch in federation.rounds(self.epochs, pool=pool, **student.parts("student")):
            with frozen(student.module), measured_statistics(teachers) as distances:
                images, _ = self.synthesise(federation, generation_loss, epoch)
            logits = [predict(t, images, normalise=federation.normalise) for t in teachers]
            pool.add(images=images, ensemble=torch.stack(logits).mean(dim=0))
            federation.train(
                student.module,
                pool["images"],
                pool["ensemble"],
                loss,
                replace(plan, epochs=1),
                "student",
                epoch,
                optimizer=student.optimizer,
                schedule=student.schedule,
                augmented=False,
            )
            federation.networks.check_finite(student.module)
            federation.evaluation.track(student.module)
        return federation.networks.checkpoint(student.module)
