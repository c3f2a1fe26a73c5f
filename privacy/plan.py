"""How a run is made differentially private, and what it may spend."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf

from results.names import check_known

ACCOUNTANTS = ("rdp", "prv")

DP_SGD, PATE, GS_WGAN, RELEASED = MECHANISMS = ("dp-sgd", "pate", "gs-wgan", "released")
"""`dp-sgd` trains the clients' networks privately; `pate` sends noisy votes instead of outputs;
`gs-wgan` sends noisy gradients for a generator, and votes; `released` is what the code of FedIOD's
authors does, for which no epsilon holds."""

VOTES = ("gaussian", "laplace")

TRUST = {
    DP_SGD: "each client adds its noise by itself",
    PATE: "secure aggregation: the server sees the sum of the clients' votes alone",
    GS_WGAN: "secure aggregation of gradients and votes, and nobody learns who judged which image",
}
"""What the guarantee rests on."""


@dataclass(frozen=True)
class PrivacyPlan:
    """The mechanism, its budget, and its settings; the unit of privacy is one sample of one
    client.
    """

    mechanism: str
    epsilon: float
    """The budget of the whole run, for every client."""
    delta: float = 1e-5
    accountant: str = "rdp"
    """`rdp`, or `prv`, which is tighter and composes Gaussian noise only."""
    clip_norm: float = 1.0
    """Largest norm of a sample's gradient in DP-SGD."""
    noise_multiplier: float = 0.0
    """Of DP-SGD; 0 stands for the smallest that keeps the whole run within its budget."""
    counts_noise: float = 10.0
    """Standard deviation of the noise on label counts, where a method sends them."""
    votes: str = "gaussian"
    """Noise of the votes: `gaussian` (GNMax) or `laplace` (LNMax)."""
    queries: int = 300
    """Images that the clients vote on."""
    votes_share: float = 0.5
    """Share of epsilon that a method with noisy gradients leaves to its votes."""
    gradient_clip: float = 1.0
    """Largest norm of the gradient with respect to one generated image, of its own loss."""
    sample_rate: float = 0.0
    """Probability that a client judges a generated image; 0 stands for one over the number of
    clients."""

    def __post_init__(self) -> None:
        check_known(self, mechanism=MECHANISMS, accountant=ACCOUNTANTS, votes=VOTES)
        budgeted = self.mechanism != RELEASED
        if not self.epsilon > 0 or (budgeted and isinf(self.epsilon)) or not 0 < self.delta < 1:
            raise ValueError(
                "epsilon must be above 0 and finite, and delta between 0 and 1, not"
                f" {self.epsilon:g} and {self.delta:g}"
            )
        if not 0 < self.votes_share < 1 or not 0 <= self.sample_rate <= 1:
            raise ValueError(f"votes_share lies between 0 and 1, sample_rate is at most 1: {self}")
        if (
            min(self.clip_norm, self.gradient_clip, self.counts_noise) <= 0
            or self.noise_multiplier < 0
            or self.queries < 1
        ):
            raise ValueError(f"norms, noise and queries must be positive: {self}")
        if (
            self.accountant == "prv"
            and self.votes == "laplace"
            and self.mechanism in ("pate", "gs-wgan")
        ):
            raise ValueError(
                "the PRV accountant here composes Gaussian noise only; use votes=gaussian or"
                " accountant=rdp"
            )
