"""Losses and weights of FedIOD, Eq. 2 to 11.

D_k is, as in Eq. 2, the probability that an image is generated: it is trained to be low on the
client's images.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from fedtables.federation.shared.averaging import class_count_weights

Term = tuple[float, Callable[[], torch.Tensor]]
"""A weight, and what gives the loss () that it is the weight of."""


@dataclass(frozen=True)
class Objective:
    """What G and S learn by in all forms of FedIOD."""

    mimic: float = 1.0
    """Weight of L_mimic for G; 0 leaves it out there. The student always learns by it."""
    confidence: float = 1.0
    """Weight of L_conf."""
    uniqueness: float = 1.0
    """Weight of L_unique."""
    weights: str = "eq8"
    """Weights of the ensemble: `eq8`; `eq8-own` with 1 - D_k for D_k; `size` (common in FL, Table
    6); `class-count`; of pixels also `sum`, all one (released code)."""
    temperature: float = 0.0
    """tau of L_mimic; 0 stands for infinity, where it is the limit of Eq. 6."""
    printed_mimic: bool = False
    """Whether L_mimic at infinity is |S - A|^2 of Eq. 10 as printed, at least 2C times more than
    the limit of Eq. 6 that it stands for."""

    def mimic_loss(self, student: torch.Tensor, ensemble: torch.Tensor) -> torch.Tensor:
        """L_mimic () between logits (n, classes), as it is set."""
        return mimic_loss(student, ensemble, self.temperature, self.printed_mimic)

    def terms(
        self, probabilities: torch.Tensor, mimic: torch.Tensor, pi: torch.Tensor
    ) -> tuple[Term, ...]:
        """L_conf + L_unique - L_mimic of Algorithm 1, of (clients, n, classes)."""
        return (
            (-self.mimic, lambda: mimic),
            (self.confidence, lambda: confidence_loss(probabilities, pi)),
            (-self.uniqueness, lambda: jensen_shannon(probabilities, pi).mean()),
        )


def weighted_sum(*terms: Term) -> torch.Tensor:
    """The sum () of losses; one whose weight is 0 asks nothing of the clients."""
    return torch.stack([weight * loss() for weight, loss in terms if weight]).sum()


def size_weights(sizes: torch.Tensor) -> torch.Tensor:
    """pi_k of Eq. 2: each client's share of all samples, (clients,)."""
    return sizes / sizes.sum()


def discriminator_loss(
    generated: torch.Tensor, own_logits: torch.Tensor, logarithmic: bool
) -> torch.Tensor:
    """What a client minimises over D_k: E[D_k(x')] + E[1 - D_k(G(w))] of Eq. 2, from patch logits
    (n, h, w).

    With `logarithmic` (released code) the binary cross-entropy, summed over patches, averaged over
    both halves.
    """
    if logarithmic:
        real = F.binary_cross_entropy_with_logits(
            own_logits, torch.zeros_like(own_logits), reduction="sum"
        )
        fake = F.binary_cross_entropy_with_logits(
            generated, torch.ones_like(generated), reduction="sum"
        )
        return (real + fake) / (len(own_logits) + len(generated))
    return own_logits.sigmoid().mean() + 1 - generated.sigmoid().mean()


def adversarial_loss(
    scores: torch.Tensor, weights: torch.Tensor, logarithmic: bool
) -> torch.Tensor:
    """What G minimises of Eq. 2, up to a constant: sum_k pi_k E[D_k(G(w))], from patch logits
    (clients, n, h, w).

    The printed bracket has pi_k on the clients' own images only, where G has no say and D_k = 1
    would be optimal; it is read as the weight of the client's whole term, as in the released code.
    With `logarithmic` (released code) the cross-entropy against "own", summed over patches.
    """
    if logarithmic:
        per_patch = F.binary_cross_entropy_with_logits(
            scores, torch.zeros_like(scores), reduction="none"
        )
        per_client = per_patch.sum(dim=(2, 3)).mean(dim=1)
    else:
        per_client = scores.sigmoid().mean(dim=(1, 2, 3))
    return weights @ per_client


def entropy(probabilities: torch.Tensor) -> torch.Tensor:
    """Shannon entropy in nats over the last dimension, 0 log 0 being 0."""
    return -torch.xlogy(probabilities, probabilities.clamp_min(1e-30)).sum(dim=-1)


def confidence_loss(probabilities: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """L_conf () of Eq. 3: mean of sum_k pi_k H(q_k), of probabilities (clients, n, classes)."""
    return (weights @ entropy(probabilities)).mean()


def jensen_shannon(probabilities: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """JSD of Eq. 4, (n,): H(sum_k pi_k q_k) - sum_k pi_k H(q_k). Eq. 5 is minus its mean."""
    mixture = torch.einsum("k,knc->nc", weights, probabilities)
    return entropy(mixture) - weights @ entropy(probabilities)


def label_ratio(counts: torch.Tensor) -> torch.Tensor:
    """First factor of Eq. 8 up to a factor per class: the share of class c among client k's labels,
    (clients, classes).

    Its denominator is the same for all clients and drops out when weights are normalised per class.
    """
    return counts / counts.sum(dim=1, keepdim=True).clamp(min=1)


def importance(labels: torch.Tensor, discriminators: torch.Tensor) -> torch.Tensor:
    """Eq. 8, normalised over clients for each class: (clients, n, classes).

    `labels` (clients, classes) is its first factor, `discriminators` (clients, n) its second,
    D_k(x) / E[D_k(x')]. For a class that nobody holds clients count alike.
    """
    weights = labels[:, None, :] * discriminators[:, :, None]
    total = weights.sum(dim=0)
    return torch.where(total > 0, weights / total.clamp_min(1e-30), 1 / len(weights))


def aggregate(logits: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """A of Eq. 9, (n, classes): sum_k pi_k(x) * z_k, of logits (clients, n, classes)."""
    return (weights * logits).sum(dim=0)


def ensemble_weights(
    kind: str,
    pi: torch.Tensor,
    counts: torch.Tensor,
    scores: torch.Tensor,
    own_scores: torch.Tensor,
) -> torch.Tensor:
    """pi_k^c(x), to broadcast to (clients, n, classes): `kind` as of `Settings.weights`, from
    shares of samples (clients,) and label counts (clients, classes).

    Patch logits (clients, n, h, w) and E[D_k(x')] (clients,) are only read for the weights of
    Eq. 8.
    """
    if kind == "size":
        return pi[:, None, None]
    if kind == "class-count":
        return class_count_weights(counts)[:, None]
    generated = scores.sigmoid().mean(dim=(2, 3))
    if kind == "eq8-own":
        generated, own_scores = 1 - generated, 1 - own_scores
    return importance(label_ratio(counts), generated / own_scores[:, None].clamp_min(1e-6))


def mimic_loss(
    student: torch.Tensor, ensemble: torch.Tensor, temperature: float, printed: bool = False
) -> torch.Tensor:
    """L_mimic, mean over the batch: T^2 KL(A || S) of Eq. 6, or at temperature 0 its limit for
    infinity, the squared distance of centred logits over 2C.

    Eq. 10 prints |S(x) - A|^2 for that limit, which is at least 2C times more: with `printed` it is
    that, for outputs that are no scores of classes too. The divergence is taken in float64: at the
    T = 10,001 of the released code it is lost in float32.
    """
    if temperature == 0:
        difference = student - ensemble
        if printed:
            return difference.square().sum(dim=1).mean()
        centred = difference - difference.mean(dim=1, keepdim=True)
        return centred.square().sum(dim=1).mean() / (2 * student.shape[1])
    # MPS has no double precision.
    wide = torch.float32 if student.device.type == "mps" else torch.float64
    target = (ensemble.to(wide) / temperature).log_softmax(dim=1)
    divergence = F.kl_div(
        (student.to(wide) / temperature).log_softmax(dim=1),
        target,
        reduction="batchmean",
        log_target=True,
    )
    return (temperature**2 * divergence).to(student.dtype)


# -- of the authors' code --


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
    """The released code's term, in bits: sum_k pi_k sum_c p_k^c log2 p_k^c, p_k batch means."""
    return -(weights @ entropy(probabilities.mean(dim=1))) / math.log(2)
