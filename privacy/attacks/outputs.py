"""Matching what a client answers: a private image, from what its trained model says of images that
the server knows.

An attacker who knows the initial weights guesses that the client's model came from them by a few
steps of plain SGD. A dummy image and its label are moved until a model so trained would answer as
the client's did: DLG with answers in the place of the gradient, and no published attack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from privacy.attacks.matching import ReconstructedImages, Search, best_of, descend, noise
from privacy.attacks.threat import ThreatModel, share, squared_norm

FOUND = 1e-12
"""A start has succeeded at this relative distance. Answers hold an image more loosely than a
gradient does: at 1e-8, digits of 8 x 8 behind one step came back at 16 to 23 dB."""

Answer = Callable[[Tensor, Tensor], Sequence[Tensor]]
"""A dummy image (1, c, h, w) and label (1, classes) to what its client would have sent."""


def trained_weights(
    model: nn.Module, images: Tensor, labels: Tensor, threat: ThreatModel
) -> dict[str, Tensor]:
    """The weights of `model` by name after the local steps of `threat` on images (n, c, h, w) and
    their labels; differentiable by both.
    """
    change = share(model, images, labels, replace(threat, shares="update"), create_graph=True)
    return {
        name: weight.detach() + moved
        for (name, weight), moved in zip(model.named_parameters(), change, strict=True)
    }


def relative_distance(answers: Sequence[Tensor], observed: Sequence[Tensor]) -> Tensor:
    """Mean over the kinds of answers of their squared difference over the squared norm of the
    observed ones. Raises ValueError for an observed answer that is zero everywhere.
    """
    parts = []
    for answered, seen in zip(answers, observed, strict=True):
        norm = squared_norm([seen])
        if not norm > 0:
            raise ValueError("an observed answer is zero everywhere; there is nothing to match")
        parts.append((answered - seen).square().sum() / norm)
    return torch.stack(parts).mean()


def match_answers(
    answer: Answer,
    observed: Sequence[Tensor],
    image_shape: tuple[int, ...],
    classes: int,
    search: Search,
) -> ReconstructedImages:
    """Choose a dummy image of shape (c, h, w), and a label, whose answers are the observed ones, by
    `relative_distance` and L-BFGS. The image is not clamped. Raises FloatingPointError if no start
    had a finite distance.
    """

    def start() -> ReconstructedImages:
        images, logits = (
            noise(1, shape, observed[0], search) for shape in (image_shape, (classes,))
        )
        return descend(
            lambda images, labels: relative_distance(answer(images, labels), observed),
            images,
            lambda: logits.softmax(dim=1),
            (images, logits),
            search.iterations,
            FOUND,
        )

    return best_of(start, search.restarts, FOUND)
