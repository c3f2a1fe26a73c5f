"""Pseudo-Label (Lee, ICML 2013 workshop): unlabelled images have the class they seem to be."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from fedtables.federation.data import Checkpoint, fetch
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.shared.learner import learner_of
from fedtables.federation.shared.views import labelled_set, training_steps, weak_view
from fedtables.results.numbers import Count


def ramped_weight(step: int, start: int, end: int, final: float) -> float:
    """alpha(t) of Eq. 16: 0 before `start` (T_1), linear, `final` (alpha_f) from `end` (T_2)."""
    if step < start:
        return 0.0
    return final if step >= end else final * (step - start) / (end - start)


def pseudo_label_loss(logits: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy () of logits (n, classes, ...) against their own arg max."""
    return F.cross_entropy(logits, logits.detach().argmax(dim=1))


@dataclass(frozen=True)
class PseudoLabel(Method):
    """Every step takes labelled images, and unlabelled ones with the class that the network now
    gives them, Eq. 15.

    Nothing leaves a client: the server trains on what it holds, with the optimiser and batches of
    its own plan, whose schedule goes over the rounds of `interval` steps. Without the paper's
    dropout and pre-training by auto-encoders.
    """

    title = "Pseudo-Label"
    quick: ClassVar[Mapping[str, Any]] = {
        "steps": 150,
        "interval": 50,
        "ramp_start": 30,
        "ramp_end": 120,
        "unlabelled_batch_size": 48,
    }

    steps: Count = 10_000
    """Steps of training (our budget; the paper names none)."""
    interval: Count = 500
    """Steps in a round: between two measurements, and two snapshots (ours)."""
    unlabelled_batch_size: Count = 256
    """Unlabelled images in a step (the paper's, beside 32 labelled ones)."""
    unlabelled_weight: float = 3.0
    """alpha_f of Eq. 16, the weight that the unlabelled loss ends with (the paper's)."""
    ramp_start: int = 1_000
    """T_1 of Eq. 16 in steps (the paper's is 100, in a unit that it does not name)."""
    ramp_end: int = 6_000
    """T_2 of Eq. 16 in steps (the paper's is 600)."""

    def fit(self, federation: Federation) -> Checkpoint:
        probe, unlabelled = labelled_set(federation), federation.public.images
        plan = replace(federation.server, epochs=-(-self.steps // self.interval))
        learner = learner_of(plan, federation.networks.initial())
        model, parts = learner.module, learner.parts("model")
        for step, stream in training_steps(
            federation, self.steps, self.interval, "pseudo-label", model, **parts
        ):
            labelled = stream.choose(len(probe.images), plan.batch_size)
            others = stream.choose(len(unlabelled), self.unlabelled_batch_size)
            views = [
                weak_view(federation, fetch(probe.images, labelled), stream),
                weak_view(federation, fetch(unlabelled, others), stream),
            ]
            outputs = federation.forward(model, federation.normalise(torch.cat(views)))
            sure, unsure = outputs.split([len(view) for view in views])
            alpha = ramped_weight(step, self.ramp_start, self.ramp_end, self.unlabelled_weight)
            supervised = federation.task.loss(sure, fetch(probe.targets, labelled)).mean()
            learner.optimizer.zero_grad(set_to_none=True)
            (supervised + alpha * pseudo_label_loss(unsure)).backward()
            if plan.clip_norm:
                nn.utils.clip_grad_norm_(model.parameters(), plan.clip_norm)
            learner.optimizer.step()
        return federation.networks.checkpoint(model)
