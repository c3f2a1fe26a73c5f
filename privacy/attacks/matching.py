"""What all attacks by matching have in common: what they are given and return, starts from noise,
and the descent of L-BFGS. And the attack on what a client answers, `match_answers`: a private
image, from what its trained model says of images that the server knows.

An attacker who knows the initial weights guesses that the client's model came from them by a few
steps of plain SGD. A dummy image and its label are moved until a model so trained would answer as
the client's did: DLG with answers in the place of the gradient, and no published attack.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from fedtables.privacy.attacks.threat import ThreatModel, share, squared_norm

FOUND = 1e-8
"""A start has succeeded at this squared distance over the squared norm of what was shared: with DLG
on `lenet-sigmoid` 55 to 62 dB for ten MNIST digits, 38 to 51 dB for ten CIFAR-10 images."""

SCALE = 1e3
"""L-BFGS sees the relative distance times this, about the released code's distance. It throws away
curvatures below an absolute 1e-10, so a smaller scale loses the last digits."""

PATIENCE = 25
"""A start that has not come nearer by a tenth in so many iterations stands still."""


@dataclass(frozen=True)
class Message:
    """What a client sent, and what the attacker knows of how it came about."""

    model: nn.Module
    """Of the dtype, and on the device, in which the attack computes; it is left as it was. Prefer
    float64, for in float32 rounding decides where a start leads."""
    shared: Sequence[Tensor]
    """A tensor by each parameter, in their order, of the same dtype and device."""
    image_shape: tuple[int, ...]
    """Of one image, (c, h, w)."""
    classes: int
    threat: ThreatModel


@dataclass(frozen=True)
class Search:
    """The work that is put into an attack."""

    generator: torch.Generator
    """A start is normal noise from it."""
    iterations: int
    """Of the optimiser, in one start."""
    restarts: int = 1
    """Starts at most; the next one follows only where none succeeded."""


@dataclass(frozen=True)
class ReconstructedImages:
    """What the attack found: the dummy images of the lowest distance that any start came by."""

    images: Tensor
    """Shape (n, c, h, w), in the units that the model takes; clamped only by an attack that says
    so. A batch comes in no particular order: match it to the truth before it is scored."""
    labels: Tensor
    """Shape (n, classes): probabilities."""
    distance: float
    """Of what they would share to what was shared: its square over the squared norm of what was
    shared, or one minus the cosine for Inverting Gradients. Either is 0 for the private images
    themselves."""
    starts: int = 1
    """Starts that were tried."""


def noise(count: int, shape: Sequence[int], like: Tensor, search: Search) -> Tensor:
    """Normal noise (count, *shape), the same in every dtype and on every device of `like`."""
    generator = search.generator
    return torch.randn((count, *shape), generator=generator, device=generator.device).to(like)


def best_of(
    start: Callable[[], ReconstructedImages], restarts: int, goal: float = FOUND
) -> ReconstructedImages:
    """The best of at most `restarts` starts; the first of a distance of at most `goal` is the last.
    FloatingPointError if none was finite.
    """
    best: ReconstructedImages | None = None
    for tried in range(1, restarts + 1):
        one = start()
        if math.isfinite(one.distance) and (best is None or one.distance < best.distance):
            best = one
        if best is not None and best.distance <= goal:
            return replace(best, starts=tried)
    if best is None:
        raise FloatingPointError(
            f"no start of {restarts} had a finite distance; check the weights, or use float64 or"
            " more restarts"
        )
    return replace(best, starts=restarts)


def descend(
    distance_of: Callable[[Tensor, Tensor], Tensor],
    images: Tensor,
    labels_of: Callable[[], Tensor],
    variables: Sequence[Tensor],
    iterations: int,
    goal: float = FOUND,
) -> ReconstructedImages:
    """One start: L-BFGS moves `variables`, on which `images` and `labels_of()` depend, to lessen
    `distance_of(images, labels_of())`. It ends early where it succeeds, stands still (`PATIENCE`)
    or is no longer a number. An iteration is a step of `torch.optim.LBFGS`, which evaluates the
    distance, times `SCALE`, some 20 times, by a line search (strong Wolfe).
    """
    for variable in variables:
        variable.requires_grad_()
    # Not the released tolerances, torch's, which are absolute: with a small gradient or update they
    # would end the descent before it began.
    optimiser = torch.optim.LBFGS(
        variables,
        lr=1.0,
        history_size=100,
        tolerance_grad=0.0,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )
    lowest, best = math.inf, (images.detach().clone(), labels_of().detach().clone())

    def evaluate() -> float:
        nonlocal lowest, best
        labels = labels_of()
        distance = distance_of(images, labels)
        gradients = torch.autograd.grad(SCALE * distance, variables)
        for variable, gradient in zip(variables, gradients, strict=True):
            variable.grad = gradient
        value = float(distance.detach())
        if value < lowest:  # L-BFGS may leave a good point
            lowest, best = value, (images.detach().clone(), labels.detach().clone())
        return SCALE * value

    lows: list[float] = []
    for _ in range(iterations):
        value = float(optimiser.step(evaluate))
        lows.append(lowest)
        stands_still = len(lows) > PATIENCE and lows[-1] > 0.9 * lows[-1 - PATIENCE]
        if lowest <= goal or stands_still or not math.isfinite(value):
            break
    return ReconstructedImages(*best, lowest)


ANSWERED = 1e-12
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
            ANSWERED,
        )

    return best_of(start, search.restarts, ANSWERED)
