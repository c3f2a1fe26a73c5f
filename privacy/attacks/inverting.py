"""Inverting Gradients (Geiping, Bauermeister, Dröge and Moeller 2020): match the gradient's
direction, and stay smooth.

Adam, on the sign of its gradient, minimises one minus the cosine plus the total variation, within
the range of images. The attack needs no smooth network: it is the one for ReLU. It takes labels as
known, as the paper does: for one image they can be read off (`idlg.leaked_label`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privacy.attacks.matching import ReconstructedImages, best_of, checked, cosine_distance, noise
from privacy.attacks.threat import ThreatModel, share

DECAY_AT = (3 / 8, 5 / 8, 7 / 8)
"""Shares of the iterations after which the learning rate is a tenth of before: the released
code."""


def total_variation(images: Tensor) -> Tensor:
    """Mean absolute difference of pixels beside each other, plus that of pixels above each other:
    the released code's.
    """
    across = (images[..., 1:] - images[..., :-1]).abs().mean()
    down = (images[..., 1:, :] - images[..., :-1, :]).abs().mean()
    return across + down


def invert_gradients(
    model: nn.Module,
    shared: Sequence[Tensor],
    image_shape: tuple[int, int, int],
    labels: Tensor,
    classes: int,
    threat: ThreatModel,
    *,
    generator: torch.Generator,
    iterations: int = 4800,
    restarts: int = 1,
    lr: float = 0.1,
    tv: float = 0.1,
    bounds: tuple[float | Tensor, float | Tensor] = (0.0, 1.0),
) -> ReconstructedImages:
    """Attack `shared`, what a client with images (c, h, w) of classes `labels` (n,) sends under
    `threat`; else as `deep_leakage`.

    `bounds` are the darkest and brightest pixel in the units that the model takes, numbers or (c,
    1, 1); images are clamped to them after each step. An iteration is one step and one evaluation.
    `iterations` and `lr` are those that the released code's baseline experiments start with. `tv`
    is the weight of the total variation: 0.1 by the authors' later `breaching`, whereas the
    released command line starts with 1e-4. Of all starts the one of the least cosine distance is
    returned, at its last image, as released; `trajectory` includes the total variation.

    Raises ValueError for a share, shapes or labels that do not fit, FloatingPointError if no start
    had a finite distance.
    """
    shared = checked(model, shared, image_shape, classes, iterations, restarts)
    if tuple(labels.shape) != (threat.images,) or not ((labels >= 0) & (labels < classes)).all():
        raise ValueError(
            f"expected labels of {threat.images} images, from 0 to {classes - 1}, not"
            f" {labels.tolist()}"
        )
    labels = labels.to(shared[0].device)
    low, high = (torch.as_tensor(bound).to(shared[0]) for bound in bounds)

    def start() -> ReconstructedImages:
        images = noise((threat.images, *image_shape), shared[0], generator).requires_grad_()
        optimiser = torch.optim.Adam([images], lr=lr)
        milestones = [max(1, int(iterations * part)) for part in DECAY_AT]
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, milestones, gamma=0.1)
        trajectory = []
        for _ in range(iterations):
            distance = cosine_distance(
                share(model, images, labels, threat, create_graph=True), shared
            )
            objective = distance + tv * total_variation(images)
            trajectory.append(float(objective.detach()))
            if not math.isfinite(trajectory[-1]):
                break
            (gradient,) = torch.autograd.grad(objective, images)
            images.grad = gradient.sign()
            optimiser.step()
            schedule.step()
            with torch.no_grad():
                images.clamp_(low, high)
        reconstructed = images.detach()
        distance = cosine_distance(share(model, reconstructed, labels, threat), shared)
        return ReconstructedImages(
            reconstructed,
            F.one_hot(labels, classes).to(reconstructed),
            float(distance),
            tuple(trajectory),
            starts=1,
        )

    return best_of(start, restarts)
