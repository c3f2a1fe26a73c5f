"""Matching what a client answers: a private image, from what its trained model says of images that
the server knows.

Federated distillation shares no gradient of weights. What is left to an attacker who knows the
initial weights, the network and the learning rate is to guess that the client's model came from the
initial one by a few steps of plain SGD, and to move dummy images and labels until a model so
trained would answer as the client's did. It is DLG (Zhu, Liu and Han 2019) with answers in the
place of the gradient, and no published attack: that it fails says nothing about others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.func import functional_call

from privacy.attacks.matching import ReconstructedImages, best_of, descend, noise
from privacy.attacks.threat import ThreatModel, share, squared_norm

FOUND = 1e-12
"""A start has succeeded at this relative distance. Answers hold an image more loosely than a
gradient does: at 1e-8, digits of 8 x 8 behind one step came back at 16 to 23 dB."""

Answer = Callable[[Tensor, Tensor], Sequence[Tensor]]
"""Dummy images (n, c, h, w) and label probabilities (n, classes) to what a client holding them
would have sent; twice differentiable."""


def trained_weights(
    model: nn.Module, images: Tensor, labels: Tensor, threat: ThreatModel
) -> dict[str, Tensor]:
    """The weights of `model` by name after the local steps of `threat` on (n, c, h, w) images and
    their labels.

    Differentiable by both; the model stays as it is.
    """
    change = share(model, images, labels, replace(threat, shares="update"), create_graph=True)
    return {
        name: weight.detach() + moved
        for (name, weight), moved in zip(model.named_parameters(), change, strict=True)
    }


def logits_after(
    model: nn.Module, images: Tensor, labels: Tensor, threat: ThreatModel, probes: Tensor
) -> Tensor:
    """What `model` says, (m, classes), of the `probes` (m, c, h, w) after the local steps of
    `threat` on images and labels.

    In the model's own mode; differentiable by images and labels.
    """
    logits: Tensor = functional_call(
        model, trained_weights(model, images, labels, threat), (probes,)
    )
    return logits


def relative_distance(answers: Sequence[Tensor], observed: Sequence[Tensor]) -> Tensor:
    """Mean over the kinds of answers of their squared difference over the squared norm of the
    observed ones; a scalar.

    Raises ValueError for an observed answer that is zero everywhere.
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
    count: int,
    *,
    generator: torch.Generator,
    iterations: int = 100,
    restarts: int = 1,
) -> ReconstructedImages:
    """Choose `count` dummy images of shape (c, h, w), and labels, whose answers are the observed
    ones, by L-BFGS.

    Images come in the units that the model takes, not clamped; their distance is
    `relative_distance`. A start is normal noise from `generator`; it ends early where it succeeds
    (`FOUND`), stands still or is no longer a number, and the next one, of at most `restarts`,
    follows only where none succeeded. The dtype and device are those of `observed`. Always with a
    line search: what an answer says of an image is often nearly flat. Raises ValueError for fewer
    than one iteration or restart, FloatingPointError if no start had a finite distance.
    """
    if iterations < 1 or restarts < 1:
        raise ValueError(
            f"iterations and restarts must be at least 1, not {iterations} and {restarts}"
        )

    def start() -> ReconstructedImages:
        images, logits = (
            noise(shape, observed[0], generator)
            for shape in ((count, *image_shape), (count, classes))
        )
        return descend(
            lambda labels: relative_distance(answer(images, labels), observed),
            images,
            lambda: logits.softmax(dim=1),
            (images, logits),
            iterations,
            goal=FOUND,
        )

    return best_of(start, restarts)
