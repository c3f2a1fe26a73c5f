"""Matching what a client answers: a private image, from what its trained model says of images that the server knows.

Federated distillation shares no gradient of weights. What is left to an attacker who knows the initial weights, the network
and the learning rate is to guess that the client's model came from the initial one by a few steps of plain SGD, and to move
dummy images and labels until a model so trained would answer as the client's did. It is DLG (Zhu, Liu and Han 2019) with
answers in the place of the gradient, and no published attack: that it fails says nothing about others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.func import functional_call

from privacy.attacks.matching import PATIENCE, SCALE, noise
from privacy.attacks.threat import ThreatModel, share, squared_norm

FOUND = 1e-12
"""A start has succeeded at this relative distance. Answers hold an image more loosely than a gradient does: at 1e-8, digits of
8 x 8 behind one step came back at 16 to 23 dB."""

Answer = Callable[[Tensor, Tensor], Sequence[Tensor]]
"""Dummy images (n, c, h, w) and label probabilities (n, classes) to what a client holding them would have sent; twice
differentiable."""


@dataclass(frozen=True)
class Match:
    """What the attack found: the dummies of the lowest distance that any start came by."""

    images: Tensor
    """Shape (n, c, h, w), in the units that the model takes; not clamped."""
    labels: Tensor
    """Shape (n, classes): probabilities."""
    distance: float
    """`relative_distance` of their answers to the observed ones."""


def trained_weights(model: nn.Module, images: Tensor, labels: Tensor, threat: ThreatModel) -> dict[str, Tensor]:
    """The weights of `model` by name after the local steps of `threat` on (n, c, h, w) images and their labels.

    Differentiable by both; the model stays as it is.
    """
    change = share(model, images, labels, replace(threat, shares="update"), create_graph=True)
    return {name: weight.detach() + moved for (name, weight), moved in zip(model.named_parameters(), change, strict=True)}


def logits_after(model: nn.Module, images: Tensor, labels: Tensor, threat: ThreatModel, probes: Tensor) -> Tensor:
    """What `model` says, (m, classes), of the `probes` (m, c, h, w) after the local steps of `threat` on images and labels.

    In the model's own mode; differentiable by images and labels.
    """
    logits: Tensor = functional_call(model, trained_weights(model, images, labels, threat), (probes,))
    return logits


def relative_distance(answers: Sequence[Tensor], observed: Sequence[Tensor]) -> Tensor:
    """Mean over the kinds of answers of their squared difference over the squared norm of the observed ones; a scalar.

    Raises ValueError for an observed answer that is zero everywhere.
    """
    parts = []
    for own, seen in zip(answers, observed, strict=True):
        norm = squared_norm([seen])
        if not norm > 0:
            raise ValueError("an observed answer is zero everywhere; there is nothing to match")
        parts.append((own - seen).square().sum() / norm)
    return torch.stack(parts).mean()


def match_answers(
    answer: Answer,
    observed: Sequence[Tensor],
    image_shape: tuple[int, int, int],
    classes: int,
    count: int,
    *,
    generator: torch.Generator,
    iterations: int = 100,
    restarts: int = 1,
) -> Match:
    """Choose `count` dummy images of shape (c, h, w), and labels, whose answers are the observed ones, by L-BFGS.

    A start is normal noise from `generator`; it ends early where it succeeds (`FOUND`), stands still or is no longer a
    number, and the next one, of at most `restarts`, follows only where none succeeded. The dtype and device are those of
    `observed`. Raises ValueError for fewer than one iteration or restart, FloatingPointError if no start had a finite distance.
    """
    if iterations < 1 or restarts < 1:
        raise ValueError(f"iterations and restarts must be at least 1, not {iterations} and {restarts}")
    found: Match | None = None
    for _ in range(restarts):
        images, logits = (noise(shape, observed[0], generator) for shape in ((count, *image_shape), (count, classes)))
        start = _descend(answer, observed, images, logits, iterations)
        if math.isfinite(start.distance) and (found is None or start.distance < found.distance):
            found = start
        if found is not None and found.distance <= FOUND:
            break
    if found is None:
        raise FloatingPointError(f"no start of {restarts} had a finite distance; use float64, more restarts or a lower local_lr")
    return found


def _descend(answer: Answer, observed: Sequence[Tensor], images: Tensor, logits: Tensor, iterations: int) -> Match:
    """One start from `images` and label `logits`; at an infinite distance if none was finite."""
    variables = (images.requires_grad_(), logits.requires_grad_())
    # Unlike DLG's this descent searches along its lines, for what an answer says of an image is often nearly flat.
    optimiser = torch.optim.LBFGS(
        variables, lr=1.0, history_size=100, line_search_fn="strong_wolfe", tolerance_grad=0, tolerance_change=0
    )
    lowest, best = math.inf, (images.detach(), logits.detach())

    def evaluate() -> float:
        nonlocal lowest, best
        distance = relative_distance(answer(images, logits.softmax(1)), observed)
        images.grad, logits.grad = torch.autograd.grad(SCALE * distance, variables)
        value = float(distance.detach())
        if value < lowest:
            lowest, best = value, (images.detach().clone(), logits.detach().clone())
        return SCALE * value

    lows: list[float] = []
    for _ in range(iterations):
        value = float(optimiser.step(evaluate))
        lows.append(lowest)
        stands_still = len(lows) > PATIENCE and lows[-1] > 0.9 * lows[-1 - PATIENCE]
        if lowest <= FOUND or stands_still or not math.isfinite(value):
            break
    return Match(best[0], best[1].softmax(1), lowest)
