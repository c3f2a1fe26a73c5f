"""What the authors' code does where it departs from FedIOD's paper: two more terms of the
generator's loss, and its differential privacy, which has no epsilon.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from federation.federation import Federation
from federation.seeds import Stream
from methods.fediod.losses import entropy
from methods.fediod.settings import Settings
from models.generative import PatchDiscriminator
from privacy.conventions import replaced_epsilon
from privacy.releases import GaussianSteps
from privacy.sanitising import SENSITIVITY_FACTOR, sanitise

RELEASED_STEPS, RELEASED_DELTA = 64, 1e-3
"""What the authors' DP code gives its accountant: steps an epoch, whatever their number, and
delta."""
RELEASED_BOUND, RELEASED_FACTOR = 100.0, 0.1
"""Of its noise: the clipping norm times the size of the batch, at the input of the discriminator's
last convolution, where GS-WGAN has 1 and clips at the generated image; and the factor in place of
`SENSITIVITY_FACTOR`, so that noise is below the sensitivity."""


def released_diversity(probabilities: torch.Tensor) -> torch.Tensor:
    """The released code's term, which it adds: mean over clients of KL(mean over clients || q_k),
    clamped to [0.01, 0.99].

    It is low when clients agree, where Eq. 5 is low when they differ.
    """
    mean = probabilities.mean(dim=0).clamp(0.01, 0.99)
    divergences = [
        F.kl_div(each.clamp(0.01, 0.99).log(), mean, reduction="batchmean")
        for each in probabilities
    ]
    return torch.stack(divergences).mean()


def class_balance(probabilities: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The released code's term: sum_k pi_k sum_c p_k^c log2 p_k^c of the batch's mean prediction
    p_k; in bits.
    """
    return -(weights @ entropy(probabilities.mean(dim=1))) / math.log(2)


def noisy_scores(
    discriminator: PatchDiscriminator, images: torch.Tensor, noise_multiplier: float, noise: Stream
) -> torch.Tensor:
    """Patch logits (n, h, w); the gradient is clipped and noised on its way into the last layer."""
    features = discriminator.layers[:-1](images)
    if features.requires_grad:

        def noisy(gradient: torch.Tensor) -> torch.Tensor:
            return sanitise(
                gradient,
                RELEASED_BOUND / len(images),
                noise_multiplier,
                RELEASED_FACTOR,
                generator=noise.generator,
            )

        features.register_hook(noisy)
    logits: torch.Tensor = discriminator.layers[-1](features).squeeze(1)
    return logits


def note_released(settings: Settings, federation: Federation) -> None:
    """What the released code's own accountant says of the noise that it adds, and what that leaves
    out.
    """
    noise, clients = federation.privacy.plan.noise_multiplier, len(federation.clients)
    steps = GaussianSteps(noise, 1 / clients, settings.epochs * RELEASED_STEPS)
    claimed = replaced_epsilon(steps, RELEASED_DELTA, tight=False)
    federation.privacy.note(
        "released DP has no epsilon: logits and the teachers' gradients leave without noise,"
        " every client answers in every step, and the noise is"
        f" {noise * RELEASED_FACTOR / SENSITIVITY_FACTOR:g} sensitivities; its own accountant, with"
        f" noise multiplier {noise:g}, sample rate 1/{clients}, {RELEASED_STEPS} steps an epoch and"
        f" delta {RELEASED_DELTA:g}, says {claimed:.2f} for all {settings.epochs} epochs"
    )
