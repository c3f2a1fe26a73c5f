"""Co-Boosting: enhancing one-shot federated learning through data and ensemble co-boosting (Dai et
al., ICLR 2024).

Clients send their own models once. In every epoch the server makes images that are hard for their
ensemble and for the student, and weighs the models by how well the ensemble knows earlier images.
The student learns the ensemble on images that are moved at random.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.shared import datafree
from fedtables.federation.shared.learner import learner_of
from fedtables.federation.training.plan import TrainingPlan
from fedtables.privacy.plan import DP_SGD

CLIP_NORM = 10.0
"""Largest norm of a gradient of the generator's or the student's weights (released code)."""


def weighted_mean(logits: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """A_w (n, classes): sum_k w_k z_k / sum_k w_k of logits (clients, n, classes)."""
    return torch.einsum("k,knc->nc", weights / weights.sum().clamp_min(1e-12), logits)


def hard_sample_loss(ensemble: torch.Tensor, labels: torch.Tensor, hardness: float) -> torch.Tensor:
    """L_H (): mean of (1 - p_y)^hardness CE(A_w, y) of logits (n, classes); the factor is fixed."""
    errors = F.cross_entropy(ensemble, labels, reduction="none")
    return ((1 - (-errors.detach()).exp()).pow(hardness) * errors).mean()


def reweighted(
    weights: torch.Tensor, logits: torch.Tensor, labels: torch.Tensor, step: float
) -> torch.Tensor:
    """w - step sign(grad_w CE(A_w, y)) in [0, 1], (clients,), of logits (clients, n, classes)."""
    variable = weights.detach().requires_grad_().clone()  # no plan follows a leaf's gradient
    loss = F.cross_entropy(weighted_mean(logits, variable), labels)
    (gradient,) = torch.autograd.grad(loss, variable)
    return (weights.detach() - step * gradient.sign()).clamp(0, 1)


def direction(
    inputs: torch.Tensor, ensemble: Callable[[torch.Tensor], torch.Tensor], draws: torch.Tensor
) -> torch.Tensor:
    """sign of the gradient of u . softmax(A_w(x) / 4) for inputs x (n, c, h, w) and draws u
    (n, classes) (released code).
    """
    inputs = inputs.detach().requires_grad_().clone()
    score = (draws * (ensemble(inputs) / 4).softmax(dim=1)).sum()
    return torch.autograd.grad(score, inputs)[0].sign()


@dataclass(frozen=True)
class CoBoosting(datafree.Synthesis, Method):
    """The released code's loop, without its 8-bit files and random crops of images."""

    title = "Co-Boosting"
    sends = frozenset({"parameters"})
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: sends}
    quick: ClassVar[Mapping[str, float]] = {**datafree.QUICK, "epochs": 20, "lr": 0.05}

    hardness: float = 1.0
    """Exponent of L_H's factor (paper)."""
    adversarial: float = 1.0
    """beta, the weight of L_A, the student's negative divergence (paper)."""
    adversarial_temperature: float = 3.0
    """Temperature of L_A (released code)."""
    mu: float = 0.1
    """Step of w, over the number of clients (paper; released code: 0.01 whatever their number)."""
    mu_decay: float = 0.99
    """Factor of that step from epoch to epoch (released code)."""
    epsilon: float = 8 / 255
    """How far each value of normalised images moves in a step of the student (released code)."""
    weight_decay: float = 1e-4
    """Weight decay of the student (released code)."""
    temperature: float = 4.0
    """Temperature of the student's loss (released code)."""

    def fit(self, federation: Federation) -> Checkpoint:
        teachers, device = datafree.uploaded_networks(federation), federation.networks.device
        start = torch.full((len(teachers),), 1 / len(teachers), device=device)
        pool, weights = datafree.Pool(device), nn.ParameterList([start]).requires_grad_(False)
        recipe = ("sgd", self.momentum, self.weight_decay, "cosine")
        plan = TrainingPlan(self.epochs, self.batch_size, self.lr, *recipe)
        learner = learner_of(plan, federation.networks.initial())
        student, parts = learner.module, learner.parts("student")

        def ensemble(inputs: torch.Tensor) -> torch.Tensor:
            return weighted_mean(datafree.answers(federation, teachers, inputs), weights[0])

        def generation_loss(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            judged, known = federation.forward(student, inputs), ensemble(inputs)
            apart = datafree.divergence(judged, known, self.adversarial_temperature).mean()
            return hard_sample_loss(known, labels, self.hardness) - self.adversarial * apart

        for epoch in federation.rounds(self.epochs, pool=pool, weights=weights, **parts):
            with datafree.frozen(student):
                images, labels = self.synthesise(federation, generation_loss, epoch, CLIP_NORM)
            step = self.mu / len(teachers) * self.mu_decay ** (epoch - 1)
            for rows in pool.batches(federation, "ensemble", epoch, self.batch_size):
                logits, known = pool["logits"][rows].transpose(0, 1), pool["labels"][rows]
                weights[0].data = reweighted(weights[0], logits, known, step)
            with torch.no_grad():
                logits = datafree.answers(federation, teachers, federation.normalise(images))
            pool.add(images=images, labels=labels, logits=logits.transpose(0, 1))
            student.train()
            stream = federation.streams.shuffling("directions", epoch)
            for rows in pool.batches(federation, "student", epoch, self.batch_size):
                draws = 2 * stream.uniform(len(rows), federation.task.outputs) - 1
                inputs = federation.normalise(pool["images"][rows])
                inputs = inputs + self.epsilon * direction(inputs, ensemble, draws)
                with torch.no_grad():
                    wanted = ensemble(inputs)
                judged = federation.forward(student, inputs)
                datafree.divergence(judged, wanted, self.temperature).mean().backward()
                nn.utils.clip_grad_norm_(student.parameters(), CLIP_NORM)
                learner.optimizer.step()
                learner.optimizer.zero_grad(set_to_none=True)
            learner.schedule.step()
            federation.networks.check_finite(student)
            federation.evaluation.track(student)
        return federation.networks.checkpoint(student)
