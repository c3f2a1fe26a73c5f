"""Gradients made private on their way out: each sample's is clipped, and noise is added.

As in GS-WGAN (Chen, Orekondy and Fritz 2020, "GS-WGAN: A Gradient-Sanitized Approach for Learning
Differentially Private Generators"): the generator learns only through what the discriminator, which
has seen the private records, sends back for each generated image.
"""

import torch
from torch import Tensor

from fedtables.privacy.releases import GaussianSteps

SENSITIVITY_FACTOR = 2.0
"""L2 sensitivity over the clipping norm: two discriminators may send opposite gradients."""


def clip(gradients: Tensor, norm: float) -> Tensor:
    """Each sample of `gradients` (n, ...), scaled down to an L2 norm of `norm` where it is longer;
    one whose norm is not finite contributes nothing.
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
    """`gradients` (n, ...) clipped, each value with Gaussian noise of deviation noise_multiplier *
    sensitivity_factor * clip_norm. Where the loss is an average over the batch, `clip_norm` is 1/n
    of a sample's own, as in GS-WGAN. Each sample costs one composition: `release`. On the meta
    device there is no generator.
    """
    clipped = clip(gradients, clip_norm)
    if gradients.is_meta:
        return clipped
    assert generator is not None
    drawn = torch.randn(gradients.shape, generator=generator, device=generator.device).to(gradients)
    return clipped + noise_multiplier * sensitivity_factor * clip_norm * drawn


def release(images: int, noise_multiplier: float, sample_rate: float) -> GaussianSteps:
    """What sanitising `images` gradients costs, with noise of `SENSITIVITY_FACTOR`. `sample_rate`
    is the chance of a record to have been behind the discriminator asked: below 1 where one of
    many, trained on disjoint records, is drawn at random, as in GS-WGAN.
    """
    return GaussianSteps(noise_multiplier, sample_rate, images)
