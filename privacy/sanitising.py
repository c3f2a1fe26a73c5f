"""Gradients made private on their way out: each sample's is clipped, and noise is added.

As in GS-WGAN (Chen, Orekondy and Fritz, "GS-WGAN: A Gradient-Sanitized Approach for Learning
Differentially Private Generators", 2020): the generator learns only through what the discriminator,
which has seen the private records, sends back for each generated image. That is what is sanitised,
so everything trained from it is private at the same price.
"""

from __future__ import annotations

import torch
from torch import Tensor

from privacy.releases import GaussianSteps

SENSITIVITY_FACTOR = 2.0
"""L2 sensitivity over the clipping norm: two discriminators may send opposite gradients."""


def clip(gradients: Tensor, norm: float) -> Tensor:
    """Each sample of `gradients` (n, ...), scaled down to an L2 norm of `norm` where it is longer,
    to the rounding of its dtype.

    A sample whose norm is not finite contributes nothing: no input may take it past the bound.
    """
    # Half precision holds no squares.
    flat = gradients.flatten(1).to(torch.promote_types(gradients.dtype, torch.float32))
    norms = torch.linalg.vector_norm(flat, dim=1, keepdim=True)
    scaled = flat * (norm / norms).clamp(max=1)  # norm / 0 is infinite, and clamped
    return torch.where(norms.isfinite(), scaled, 0).to(gradients.dtype).view_as(gradients)


def sanitise(
    gradients: Tensor,
    clip_norm: float,
    noise_multiplier: float,
    sensitivity_factor: float,
    generator: torch.Generator | None,
) -> Tensor:
    """`gradients` (n, ...) clipped, each value with Gaussian noise.

    Its standard deviation is noise_multiplier * sensitivity_factor * clip_norm. Where the loss is
    an average over the batch, each sample's gradient is 1/n of its own, and `clip_norm` must be in
    that unit too (GS-WGAN's is 1/n). Each sample costs one composition: `release`. On the meta
    device there is nothing to draw, and no generator.
    """
    clipped = clip(gradients, clip_norm)
    if generator is None:
        return clipped
    drawn = torch.randn(gradients.shape, generator=generator, device=generator.device).to(gradients)
    return clipped + noise_multiplier * sensitivity_factor * clip_norm * drawn


def release(images: int, noise_multiplier: float, sample_rate: float) -> GaussianSteps:
    """What sanitising `images` gradients costs, one composition each, with noise of
    `SENSITIVITY_FACTOR`.

    `sample_rate` is the chance of a record to have been behind the discriminator asked: below 1
    only where many were trained on disjoint records, and one is drawn at random, as in GS-WGAN. All
    clients of a round being asked, it is 1.
    """
    return GaussianSteps(noise_multiplier, sample_rate, images)
