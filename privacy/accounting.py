"""The privacy accountant: Opacus's, behind one function that names its conventions.

Adjacency is add-or-remove of one record, sampling is Poisson, and mechanisms compose adaptively. Another convention
gives another epsilon for the same noise: compare only numbers that state theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from opacus.accountants import create_accountant

ACCOUNTANTS = ("rdp", "prv")


@dataclass(frozen=True)
class GaussianSteps:
    """A number of steps of the Poisson-subsampled Gaussian mechanism."""

    noise_multiplier: float
    """Standard deviation of the noise over the clipping norm."""
    sample_rate: float
    """Probability of each record to take part in a step."""
    steps: int

    def __post_init__(self) -> None:
        if self.noise_multiplier <= 0 or not 0 < self.sample_rate <= 1 or self.steps < 1:
            raise ValueError(f"noise_multiplier and steps must be positive and sample_rate in (0, 1]: {self}")


def epsilon(released: Iterable[GaussianSteps], delta: float, accountant: str = "rdp") -> float:
    """The epsilon at `delta` of everything released, composed.

    Raises ValueError for an unknown accountant (`rdp` and `prv` are known) or a delta outside (0, 1).
    """
    if accountant not in ACCOUNTANTS:
        raise ValueError(f"unknown accountant {accountant!r}; known: {', '.join(ACCOUNTANTS)}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie in (0, 1), not {delta}")
    ledger = create_accountant(accountant)
    ledger.history = [(part.noise_multiplier, part.sample_rate, part.steps) for part in released]
    return float(ledger.get_epsilon(delta)) if ledger.history else 0.0
