"""Deep Leakage from Gradients (Zhu, Liu and Han 2019): a private image, back from the gradient that it left.

Algorithm 1 for a single image: L-BFGS moves a dummy image and a dummy label until their gradient is the shared one.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

FOUND = 1e-8
"""A start has succeeded at this distance over the squared norm of the shared gradient. Measured PSNR there in float64: 42 dB
for 32 x 32 pixels of noise, above 60 dB for digits of 8 x 8."""


@dataclass(frozen=True)
class Reconstruction:
    """What the attack found: the dummy image and label of the lowest distance that any start came by."""

    image: torch.Tensor
    """Shape (c, h, w), in the units that the model takes; not clamped."""
    label: torch.Tensor
    """Shape (classes,): probabilities."""
    distance: float
    """`gradient_distance` of their gradient and the shared one."""
    distances: tuple[float, ...]
    """The distance at which each iteration of the same start began; an early end makes it shorter."""


def gradients(
    model: nn.Module, images: torch.Tensor, labels: torch.Tensor, *, create_graph: bool = False
) -> tuple[torch.Tensor, ...]:
    """Gradients of the mean cross entropy by all parameters of `model`, in their order.

    `images` (n, c, h, w) are in the units that the model takes, `labels` (n, classes) are probabilities. With
    `create_graph` the gradients can be differentiated by both.
    """
    loss = F.cross_entropy(model(images), labels)
    return torch.autograd.grad(loss, tuple(model.parameters()), create_graph=create_graph)


def gradient_distance(first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> torch.Tensor:
    """Squared Euclidean distance of two gradients over all parameters (the paper's Eq. 4), a scalar."""
    return torch.stack([F.mse_loss(a, b, reduction="sum") for a, b in zip(first, second, strict=True)]).sum()


def dlg(
    model: nn.Module,
    shared: Sequence[torch.Tensor],
    image_shape: tuple[int, int, int],
    classes: int,
    *,
    generator: torch.Generator,
    iterations: int = 300,
    restarts: int = 1,
) -> Reconstruction:
    """Attack `shared`, the gradient of one image of shape (c, h, w) by each parameter of `model`, in their order.

    An iteration is a step of `torch.optim.LBFGS`, which evaluates the distance up to 20 times. A start is normal noise from
    `generator`; it ends early where it succeeds (`FOUND`), stands still or is no longer a number. The next one, of at most
    `restarts`, follows only where none succeeded. The dtype and device are the weights': prefer float64, for in float32
    rounding decides where a start leads. The model must be twice differentiable; it is left as it was.
    Raises ValueError for a gradient or shapes that do not fit the model, FloatingPointError if no start had a finite distance.
    """
    if iterations < 1 or restarts < 1:
        raise ValueError(f"iterations and restarts must be at least 1, not {iterations} and {restarts}")
    model = copy.deepcopy(model).requires_grad_(True)  # evaluating it may move running statistics, which are the caller's
    weight = next(model.parameters())
    shared = [gradient.detach().to(weight) for gradient in shared]
    _check_fit(model, shared, image_shape, classes)
    goal = FOUND * sum(float(gradient.square().sum()) for gradient in shared)
    found: Reconstruction | None = None
    for _ in range(restarts):
        image, logits = (
            torch.randn(shape, generator=generator, device=generator.device).to(weight)  # the same start in every dtype
            for shape in ((1, *image_shape), (1, classes))
        )
        start = _descend(model, shared, image, logits, iterations, goal)
        if math.isfinite(start.distance) and (found is None or start.distance < found.distance):
            found = start
        if found is not None and found.distance <= goal:
            break
    if found is None:
        raise FloatingPointError(
            f"no start of {restarts} had a finite gradient distance; check the weights, or use float64 or more restarts"
        )
    return found


def _descend(
    model: nn.Module, shared: list[torch.Tensor], image: torch.Tensor, logits: torch.Tensor, iterations: int, goal: float
) -> Reconstruction:
    """One start from `image` (1, c, h, w) and label `logits` (1, classes); at an infinite distance if none was finite."""
    variables = (image.requires_grad_(), logits.requires_grad_())
    optimiser = torch.optim.LBFGS(variables, lr=1.0, history_size=100)  # as released
    lowest, best = math.inf, (image.detach(), logits.detach())
    distances: list[float] = []

    def evaluate() -> float:
        nonlocal lowest, best
        distance = gradient_distance(gradients(model, image, logits.softmax(1), create_graph=True), shared)
        image.grad, logits.grad = torch.autograd.grad(distance, variables)
        value = float(distance.detach())
        if value < lowest:  # without line search, L-BFGS may leave a good point for ever
            lowest, best = value, (image.detach().clone(), logits.detach().clone())
        return value

    while len(distances) < iterations:
        distances.append(float(optimiser.step(evaluate)))
        stands_still = len(distances) > 1 and distances[-1] == distances[-2]
        if lowest <= goal or stands_still or not math.isfinite(distances[-1]):
            break
    return Reconstruction(best[0][0], best[1][0].softmax(0), lowest, tuple(distances))


def _check_fit(model: nn.Module, shared: list[torch.Tensor], image_shape: tuple[int, int, int], classes: int) -> None:
    """Raise ValueError where the gradient, the image or the number of classes does not belong to the model."""
    expected = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    if len(shared) != len(expected):
        raise ValueError(f"the shared gradient has {len(shared)} tensors, the model {len(expected)} parameters")
    for (name, shape), gradient in zip(expected.items(), shared, strict=True):
        if tuple(gradient.shape) != shape:
            raise ValueError(f"the shared gradient of {name} has shape {tuple(gradient.shape)}, not {shape}")
        if not gradient.isfinite().all():
            raise ValueError(f"the shared gradient of {name} is not finite; attack one from before training diverged")
    try:
        with torch.no_grad():
            scores = model(shared[0].new_zeros(1, *image_shape))
    except RuntimeError as error:
        raise ValueError(f"the model does not take an image of shape {tuple(image_shape)}: {error}") from error
    if tuple(scores.shape) != (1, classes):
        raise ValueError(f"for an image, the model gives scores of shape {tuple(scores.shape)}, not (1, {classes})")
