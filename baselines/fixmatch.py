"""FixMatch: semi-supervised learning by consistency and confidence (Sohn et al., 2020)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from fedtables.federation.augmentation import RandAugment
from fedtables.federation.data import Checkpoint, fetch
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.shared.views import (
    labelled_set,
    strong_view,
    training_steps,
    update_ema,
    weak_view,
)
from fedtables.results.numbers import Count, Positive, Share


def consistency_loss(weak: torch.Tensor, strong: torch.Tensor, threshold: float) -> torch.Tensor:
    """l_u of Eq. 4: cross-entropy of strong views' logits against the arg max of weak views', where
    that is confident.

    Both (n, classes, ...). The mean is over all images (or pixels), also those whose largest
    probability is below `threshold` and that count nothing; no gradient goes through the weak
    views.
    """
    confidence, labels = weak.detach().softmax(dim=1).max(dim=1)
    return (F.cross_entropy(strong, labels, reduction="none") * (confidence >= threshold)).mean()


def cosine_factor(step: int, steps: int) -> float:
    """cos(7 pi k / 16 K), by which the paper multiplies the learning rate at step k of K."""
    return math.cos(7 * math.pi * step / (16 * steps))


@dataclass(frozen=True)
class FixMatch(Method):
    """What the network says of a weak view with confidence becomes the label of a strong view,
    RandAugment and cutout.

    Nothing leaves a client: the server trains on what it holds. The moving average of the weights
    is what is evaluated. Defaults are the paper's for CIFAR-10.
    """

    title = "FixMatch"
    quick: ClassVar[Mapping[str, Any]] = {
        "steps": 150,
        "interval": 50,
        "batch_size": 16,
        "mu": 2,
        "ema_decay": 0.95,
    }

    steps: Count = 2**20
    """K, steps of training (the paper's)."""
    interval: Count = 1_024
    """Steps in a round: between two measurements, and two snapshots (kekmodel/FixMatch-pytorch)."""
    batch_size: Count = 64
    """B, labelled images in a step (the paper's)."""
    mu: Count = 7
    """Unlabelled images in a step per labelled one (the paper's)."""
    threshold: Share = 0.95
    """tau, the confidence from which a label counts (the paper's)."""
    unlabelled_weight: float = 1.0
    """lambda_u, weight of the unlabelled loss (the paper's)."""
    lr: Positive = 0.03
    """eta of SGD with Nesterov momentum, times 7/16 of a cosine's half period (the paper's)."""
    momentum: Share = 0.9
    """beta of SGD (the paper's)."""
    weight_decay: float = 5e-4
    """Of all parameters but biases and BatchNorm's (the paper's, of kernels alone in its code; 1e-3
    for CIFAR-100)."""
    ema_decay: Share = 0.999
    """Decay of the moving average of the weights (the paper's)."""
    operations: int = 2
    """N of RandAugment (released code)."""
    magnitude: float = 10.0
    """M of RandAugment, up to which an operation's strength is drawn (released code)."""
    cutout: Share = 0.5
    """Side of the cutout as a share of the image's (kekmodel/FixMatch-pytorch; the paper draws it
    up to this)."""

    def fit(self, federation: Federation) -> Checkpoint:
        probe, unlabelled = labelled_set(federation), federation.public.images
        augmentation = RandAugment(self.operations, self.magnitude)
        model, ema = (federation.networks.initial() for _ in range(2))
        optimizer = self.make_optimizer(model)
        parts: dict[str, Any] = {"model": model, "ema": ema, "optimizer": optimizer}
        for step, stream in training_steps(
            federation, self.steps, self.interval, "fixmatch", ema, **parts
        ):
            for group in optimizer.param_groups:
                group["lr"] = self.lr * cosine_factor(step, self.steps)
            labelled = stream.choose(len(probe.images), self.batch_size)
            others = fetch(unlabelled, stream.choose(len(unlabelled), self.mu * self.batch_size))
            views = [
                weak_view(federation, fetch(probe.images, labelled), stream),
                weak_view(federation, others, stream),
                strong_view(federation, others, stream, augmentation, self.cutout),
            ]
            outputs = federation.forward(model, federation.normalise(torch.cat(views)))
            sure, weak, strong = outputs.split([len(view) for view in views])
            supervised = federation.task.loss(sure, fetch(probe.targets, labelled)).mean()  # Eq. 3
            optimizer.zero_grad(set_to_none=True)
            unsure = consistency_loss(weak, strong, self.threshold)
            (supervised + self.unlabelled_weight * unsure).backward()
            optimizer.step()
            update_ema(ema, model, self.ema_decay)
        return federation.networks.checkpoint(ema)

    def make_optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        parameters = list(model.parameters())
        kernels = [parameter for parameter in parameters if parameter.ndim > 1]
        others = [parameter for parameter in parameters if parameter.ndim <= 1]
        groups: list[dict[str, Any]] = [
            {"params": kernels, "weight_decay": self.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        return torch.optim.SGD(groups, self.lr, momentum=self.momentum, nesterov=True)
