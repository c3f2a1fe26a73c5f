"""What all attacks by gradient matching have in common: what they return, starts from noise, and
the descent of L-BFGS.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privacy.attacks.threat import ThreatModel, share, squared_norm

FOUND = 1e-8
"""A start has succeeded at this squared distance over the squared norm of what was shared. Measured
PSNR there, of DLG on `lenet-sigmoid` at its initial weights in float64: 55 to 62 dB for ten MNIST
digits, 38 to 51 dB for ten CIFAR-10 images."""

SCALE = 1e3
"""With a line search, L-BFGS sees the relative distance times this: about the released code's
distance for the DLG paper's network and weights (squared norms of 85 to 1,130 for ten CIFAR-10
images). Curvatures below an absolute 1e-10 it throws away, so a smaller scale loses the last
digits."""

PATIENCE = 25
"""A start that has not come nearer by a tenth in so many iterations stands still."""


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
    trajectory: tuple[float, ...]
    """The objective at which each iteration of the same start began; an early end makes it
    shorter."""
    starts: int
    """Starts that were tried."""
    goal: float = FOUND
    """The distance at which a start has succeeded."""

    @property
    def succeeded(self) -> bool:
        """Whether the distance is at most the goal."""
        return self.distance <= self.goal


def squared_distance(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    """Squared Euclidean distance over all tensors, a scalar: what DLG and iDLG minimise."""
    return torch.stack(
        [F.mse_loss(a, b, reduction="sum") for a, b in zip(first, second, strict=True)]
    ).sum()


def cosine_distance(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    """One minus the cosine between all tensors, taken as one vector, a scalar between 0 and 2: what
    Inverting Gradients minimises. Not a number if one of them is all zeros."""
    product = torch.stack([(a * b).sum() for a, b in zip(first, second, strict=True)]).sum()
    return 1 - product / (squared_norm(first).sqrt() * squared_norm(second).sqrt())


def checked(
    model: nn.Module,
    shared: Sequence[Tensor],
    image_shape: tuple[int, int, int],
    classes: int,
    iterations: int,
    restarts: int,
) -> list[Tensor]:
    """`shared` in the model's dtype and on its device. Raises ValueError where an argument does not
    belong to the model.
    """
    if iterations < 1 or restarts < 1:
        raise ValueError(
            f"iterations and restarts must be at least 1, not {iterations} and {restarts}"
        )
    weight = next(model.parameters())
    shared = [tensor.detach().to(weight) for tensor in shared]
    expected = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    if len(shared) != len(expected):
        raise ValueError(
            f"what was shared has {len(shared)} tensors, the model {len(expected)} parameters"
        )
    for (name, shape), tensor in zip(expected.items(), shared, strict=True):
        if tuple(tensor.shape) != shape:
            raise ValueError(
                f"what was shared of {name} has shape {tuple(tensor.shape)}, not {shape}"
            )
        if not tensor.isfinite().all():
            raise ValueError(
                f"what was shared of {name} is not finite; attack a round from before training"
                " diverged"
            )
    if not squared_norm(shared) > 0:
        raise ValueError("what was shared is zero everywhere: it tells nothing of the images")
    modes = {module: module.training for module in model.modules()}
    try:
        with torch.no_grad():
            scores = model.eval()(weight.new_zeros(1, *image_shape))
    except RuntimeError as error:
        raise ValueError(
            f"the model does not take an image of shape {tuple(image_shape)}: {error}"
        ) from error
    finally:
        for module, mode in modes.items():
            module.training = mode
    if tuple(scores.shape) != (1, classes):
        raise ValueError(
            f"for an image, the model gives scores of shape {tuple(scores.shape)}, not (1,"
            f" {classes})"
        )
    return shared


def noise(shape: tuple[int, ...], like: Tensor, generator: torch.Generator) -> Tensor:
    """Normal noise from `generator`, the same in every dtype and wherever `like`, whose they
    become, lives.
    """
    return torch.randn(shape, generator=generator, device=generator.device).to(like)


def best_of(start: Callable[[], ReconstructedImages], restarts: int) -> ReconstructedImages:
    """The best of at most `restarts` starts; the first that succeeds is the last.
    FloatingPointError if none was finite.
    """
    best: ReconstructedImages | None = None
    for tried in range(1, restarts + 1):
        one = start()
        if math.isfinite(one.distance) and (best is None or one.distance < best.distance):
            best = one
        if best is not None and best.succeeded:
            return replace(best, starts=tried)
    if best is None:
        raise FloatingPointError(
            f"no start of {restarts} had a finite distance; check the weights, or use float64 or"
            " more restarts"
        )
    return replace(best, starts=restarts)


def match_shared(
    model: nn.Module,
    shared: Sequence[Tensor],
    threat: ThreatModel,
    images: Tensor,
    labels_of: Callable[[], Tensor],
    variables: Sequence[Tensor],
    iterations: int,
    line_search: bool,
) -> ReconstructedImages:
    """One start of DLG or iDLG: `descend` until `images` and `labels_of()` would share what was
    shared.

    With `line_search` the distance is scaled (`SCALE`); without, it is as it is, as released.
    """
    norm = squared_norm(shared)

    def distance_of(labels: Tensor) -> Tensor:
        return (
            squared_distance(share(model, images, labels, threat, create_graph=True), shared) / norm
        )

    scale = SCALE if line_search else float(norm)
    return descend(
        distance_of, images, labels_of, variables, iterations, scale=scale, line_search=line_search
    )


def descend(
    distance_of: Callable[[Tensor], Tensor],
    images: Tensor,
    labels_of: Callable[[], Tensor],
    variables: Sequence[Tensor],
    iterations: int,
    *,
    scale: float = SCALE,
    line_search: bool = True,
    goal: float = FOUND,
) -> ReconstructedImages:
    """One start: L-BFGS moves `variables`, on which `images` and `labels_of()` depend, to lessen
    `distance_of(labels_of())`.

    At an infinite distance if none was finite. An iteration is a step of `torch.optim.LBFGS`, which
    evaluates the distance, times `scale`, some 20 times. With `line_search` each of its own
    iterations meets the strong Wolfe conditions; without, steps have length 1.
    """
    for variable in variables:
        variable.requires_grad_()
    # Tolerances are not the released ones, torch's: a trained model's gradient, or an update at a
    # small learning rate, is so small that those, which are absolute, would end the descent before
    # it began.
    optimiser = torch.optim.LBFGS(
        variables,
        lr=1.0,
        history_size=100,
        tolerance_grad=0.0,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe" if line_search else None,
    )
    lowest, best = math.inf, (images.detach().clone(), labels_of().detach().clone())
    trajectory: list[float] = []

    def evaluate() -> float:
        nonlocal lowest, best
        labels = labels_of()
        distance = distance_of(labels)
        for variable, gradient in zip(
            variables, torch.autograd.grad(scale * distance, variables), strict=True
        ):
            variable.grad = gradient
        value = float(distance.detach())
        if value < lowest:  # L-BFGS may leave a good point, without a line search for ever
            lowest, best = value, (images.detach().clone(), labels.detach().clone())
        return scale * value

    lows: list[float] = []
    for _ in range(iterations):
        trajectory.append(float(optimiser.step(evaluate)) / scale)
        lows.append(lowest)
        stands_still = len(lows) > PATIENCE and lows[-1] > 0.9 * lows[-1 - PATIENCE]
        if lowest <= goal or stands_still or not math.isfinite(trajectory[-1]):
            break
    return ReconstructedImages(*best, lowest, tuple(trajectory), starts=1, goal=goal)
