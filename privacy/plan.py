"""How a run is made differentially private, and what it may spend."""

from dataclasses import dataclass
from math import isinf
from typing import Annotated

from fedtables.results.names import check_known
from fedtables.results.numbers import MOST, Bounds, Count, Positive, Share, SomeShare, check_bounds

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
    """How a run is made differentially private. The protected unit is one sample of one client."""

    mechanism: str
    epsilon: float
    """The budget of the whole run, for every client."""
    delta: SomeShare = 1e-5
    accountant: str = "rdp"
    """`rdp`, or `prv`, which is tighter and composes Gaussian noise only."""
    clip_norm: Positive = 1.0
    """Largest norm of a sample's gradient in DP-SGD."""
    noise_multiplier: Annotated[float, Bounds(0, MOST)] = 0.0
    """Noise multiplier of DP-SGD; 0: the smallest that keeps the run within its budget."""
    counts_noise: Positive = 10.0
    """Standard deviation of the noise on label counts."""
    votes: str = "gaussian"
    """Noise of the votes: `gaussian` (GNMax) or `laplace` (LNMax)."""
    queries: Count = 300
    """Number of images that clients vote on."""
    votes_share: SomeShare = 0.5
    """Share of epsilon that a method with noisy gradients leaves to its votes."""
    gradient_clip: Positive = 1.0
    """Largest norm of the gradient for one generated image."""
    sample_rate: Share = 0.0
    """Probability that a client judges a generated image; 0: one over the number of clients."""

    def __post_init__(self) -> None:
        """Raises ValueError for settings that make no sense."""
        check_known(self, mechanism=MECHANISMS, accountant=ACCOUNTANTS, votes=VOTES)
        check_bounds(PrivacyPlan, vars(self))
        if not self.epsilon > 0 or (self.mechanism != RELEASED and isinf(self.epsilon)):
            raise ValueError(f"epsilon must be above 0 and finite, not {self.epsilon:g}")
        laplace = self.mechanism in (PATE, GS_WGAN) and self.votes == "laplace"
        if laplace and self.accountant == "prv":
            raise ValueError(
                "the PRV accountant here composes Gaussian noise only; use votes=gaussian or"
                " accountant=rdp"
            )
