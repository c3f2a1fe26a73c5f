"""Noisy Student: self-training with noisy student improves ImageNet classification (Xie et al.,
CVPR 2020).
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from fedtables.federation.augmentation import RandAugment
from fedtables.federation.costs import selected
from fedtables.federation.data import Checkpoint, LabelledSet, fetch, state_of
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.samples import see
from fedtables.federation.seeds import Stream
from fedtables.federation.shared.learner import learner_of
from fedtables.federation.shared.views import labelled_set, strong_view
from fedtables.federation.training.loops import predict
from fedtables.models.cut import halves
from fedtables.results.numbers import Count, Share


def filter_and_balance(
    probabilities: torch.Tensor, threshold: float, per_class: int, stream: Stream
) -> torch.Tensor:
    """Indices of the images that a student learns from: `per_class` of every class that was found,
    class by class.

    Of the images whose largest probability (n, classes) is at least `threshold`, the `per_class`
    most confident of each class; where there are fewer, copies of them, drawn at random, make up
    the number.
    """
    confidence, labels = probabilities.max(dim=1)
    chosen = []
    for label in range(probabilities.shape[1]):
        candidates = ((labels == label) & (confidence >= threshold)).nonzero().squeeze(1)
        best = candidates[confidence[candidates].argsort(descending=True, stable=True)][:per_class]
        missing = per_class - len(best) if len(best) else 0
        chosen += [best, best[stream.choose(len(best), missing)]] if missing else [best]
    return torch.cat(chosen)


def confident(probabilities: torch.Tensor, threshold: float) -> torch.Tensor:
    """Indices of the images whose pixels' largest probabilities (n, classes, h, w) are at least
    `threshold` on average.
    """
    return (probabilities.amax(dim=1).flatten(1).mean(dim=1) >= threshold).nonzero().squeeze(1)


def drop(features: torch.Tensor, rate: float, stream: Stream) -> torch.Tensor:
    """Dropout of whole channels of features (n, c, ...), from a stream of its own: of what they are
    pooled to, in a ResNet.
    """
    kept = stream.uniform(*features.shape[:2], *(1,) * (features.dim() - 2)) >= rate
    return features * kept / (1 - rate)


@dataclass(frozen=True)
class NoisyStudent(Method):
    """A teacher labels clean images; a student as large learns them with noise, RandAugment and
    dropout, and is the next teacher.

    Nothing leaves a client: the server trains on what it holds, with the optimiser and batches of
    its own plan, whose schedule goes over a network's steps. Dropout is on the encoder's features.
    Our networks have no stochastic depth, and students learn at one resolution. A round is the
    training of one network, the teacher's the first. For dense tasks there is no class to balance
    images by, and only images that are confident on average are kept.
    """

    title = "Noisy Student"
    quick: ClassVar[Mapping[str, Any]] = {"steps": 100, "iterations": 1, "ratio": 2}

    iterations: Count = 3
    """Students, one after another (the paper's)."""
    steps: Count = 10_000
    """Steps in the training of each network (our budget)."""
    ratio: Count = 5
    """Pseudo-labelled images in a step per labelled one (released script for SVHN)."""
    soft: bool = True
    """Whether pseudo-labels are probabilities (the paper's default) or their arg max."""
    threshold: Share = 0.3
    """Confidence below which an image is left out (the paper's)."""
    per_class: int = 0
    """Pseudo-labelled images of a class (the paper's: 130,000); 0 for its share of all."""
    operations: int = 2
    """N of RandAugment (the paper's)."""
    magnitude: float = 5.0
    """M of RandAugment on its scale up to 10 (released script for SVHN; 27, past its end, for the
    largest ImageNet networks)."""
    dropout: Share = 0.5
    """Share of channels set to zero before the head (the paper's)."""

    def fit(self, federation: Federation) -> Checkpoint:
        probe, unlabelled = labelled_set(federation), federation.public.images
        model = federation.networks.initial()
        initial = state_of(model)
        for number in federation.rounds(self.iterations + 1, model=model):
            stream = federation.streams.shuffling("noisy-student", number)
            pseudo = (
                None if number == 1 else self.pseudo_labelled(federation, model, unlabelled, stream)
            )
            model.load_state_dict(initial)
            self.train_noisily(federation, model, probe, pseudo, stream)
            federation.networks.check_finite(model)
            federation.evaluation.track(model)
        return federation.networks.checkpoint(model)

    def pseudo_labelled(
        self, federation: Federation, teacher: nn.Module, images: torch.Tensor, stream: Stream
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Images that the teacher, without noise, is confident of, and its labels for them."""
        probabilities = predict(teacher, images, normalise=federation.normalise).softmax(dim=1)
        if probabilities.dim() > 2:
            choose = functools.partial(confident, probabilities, self.threshold)
        else:
            per_class = self.per_class or max(1, len(images) // probabilities.shape[1])
            choose = functools.partial(
                filter_and_balance, probabilities, self.threshold, per_class, stream
            )
        chosen = selected(images, choose)
        labels = probabilities if self.soft else probabilities.argmax(dim=1)
        return fetch(images, chosen), labels[chosen]

    def train_noisily(
        self,
        federation: Federation,
        model: nn.Module,
        probe: LabelledSet,
        pseudo: tuple[torch.Tensor, torch.Tensor] | None,
        stream: Stream,
    ) -> None:
        """Train `model` in place on labelled and pseudo-labelled images (none for a teacher), all
        with noise.

        The loss is the average cross-entropy of all images in a step, as in the paper.
        """
        augmentation = RandAugment(self.operations, self.magnitude, sampled=False)
        plan = replace(federation.server, epochs=self.steps)
        learner = learner_of(plan, model)
        encoder: Any
        decoder: Any
        encoder, decoder = halves(model)
        model.train()
        for _ in federation.steps(self.steps, name="first" if pseudo is None else "noisy"):
            labelled = stream.choose(len(probe.images), plan.batch_size)
            images, others = fetch(probe.images, labelled), None
            if pseudo is not None and len(pseudo[0]):
                others = stream.choose(len(pseudo[0]), self.ratio * plan.batch_size)
                images = torch.cat([images, pseudo[0][others]])
            inputs = federation.normalise(
                strong_view(federation, images, stream, augmentation, cutout=0.0)
            )
            see(len(inputs))
            outputs = federation.forward(
                decoder, drop(federation.forward(encoder, inputs), self.dropout, stream)
            )
            targets = fetch(probe.targets, labelled)
            losses = [federation.task.loss(outputs[: len(labelled)], targets)]
            if pseudo is not None and others is not None:
                pseudo_losses = F.cross_entropy(
                    outputs[len(labelled) :], pseudo[1][others], reduction="none"
                )
                losses.append(pseudo_losses.view(len(others), -1).mean(dim=1))
            torch.cat(losses).mean().backward()
            if plan.clip_norm:
                nn.utils.clip_grad_norm_(model.parameters(), plan.clip_norm)
            learner.step()
