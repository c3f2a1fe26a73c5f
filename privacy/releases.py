"""Releases under differential privacy, and their Rényi divergences at each of `ORDERS`.

The subsampled Gaussian's divergence is Opacus's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from opacus.accountants.analysis.rdp import compute_rdp

SUMMED = 1024
"""Largest order at which Opacus sums: its binomial coefficients overflow soon after."""
ORDERS: tuple[float, ...] = (
    *(1.001, 1.002, 1.005, 1.01, 1.015, 1.02, 1.03, 1.05, 1.07),
    *(1 + tenths / 10 for tenths in range(1, 100)),
    *range(11, 64),
    *(round(64 * 2 ** (quarter / 4)) for quarter in range(41)),
    *(2**power for power in range(17, 31)),
)
"""Opacus's, with more below for epsilons up to 10,000 and more above for little noise."""


class Release(Protocol):
    """Something that was released under differential privacy. Hashable and never changed."""

    def rdp(self, orders: Sequence[float]) -> np.ndarray:
        """The Rényi divergence at each of `orders`, all above 1."""


@dataclass(frozen=True)
class GaussianSteps:
    """A number of steps of the Poisson-subsampled Gaussian mechanism."""

    noise_multiplier: float
    """Standard deviation of the noise over the clipping norm."""
    sample_rate: float
    """Probability of each record to take part in a step."""
    steps: int

    def __post_init__(self) -> None:
        if not self.noise_multiplier > 0 or not 0 < self.sample_rate <= 1 or self.steps < 1:
            raise ValueError(
                f"noise_multiplier and steps must be positive and sample_rate in (0, 1]: {self}"
            )

    def rdp(self, orders: Sequence[float]) -> np.ndarray:
        """Mironov, Talwar and Zhang 2019 ("... of the Sampled Gaussian Mechanism"), section 3.3."""
        return self.steps * _gaussian_rdp(self.noise_multiplier, self.sample_rate, tuple(orders))


@dataclass(frozen=True)
class LaplaceSteps:
    """A number of steps of the Laplace mechanism on all records."""

    scale: float
    """Scale of the noise over the L1 sensitivity."""
    steps: int

    def __post_init__(self) -> None:
        if not self.scale > 0 or self.steps < 1:
            raise ValueError(f"scale and steps must be positive: {self}")

    def rdp(self, orders: Sequence[float]) -> np.ndarray:
        """Mironov, "Rényi Differential Privacy" (2017), Table II and Proposition 6."""
        return self.steps * _laplace_rdp(self.scale, tuple(orders))


@dataclass(frozen=True)
class RenyiCurve:
    """A release known by its Rényi divergences only, such as a data-dependent bound."""

    values: tuple[float, ...]
    """The divergence at each of `ORDERS`."""

    def rdp(self, orders: Sequence[float]) -> np.ndarray:
        """Orders are of `ORDERS`."""
        known = dict(zip(ORDERS, self.values, strict=True))
        return np.array([known[order] for order in orders])


Steps = GaussianSteps | LaplaceSteps
"""What a ledger holds."""
KINDS: dict[str, type[Steps]] = {"gaussian": GaussianSteps, "laplace": LaplaceSteps}


def to_json(steps: Steps) -> dict[str, Any]:
    """Plain values for a record or a snapshot."""
    [kind] = (kind for kind, of_kind in KINDS.items() if isinstance(steps, of_kind))
    return {"kind": kind, **asdict(steps)}


def from_json(values: Mapping[str, Any]) -> Steps:
    """The inverse of `to_json`."""
    fields = dict(values)
    return KINDS[fields.pop("kind")](**fields)


def together(releases: Iterable[Steps]) -> tuple[Steps, ...]:
    """The same releases, those of one mechanism, which differ in steps alone, as one."""
    found: dict[Steps, int] = {}
    for release in releases:
        mechanism = replace(release, steps=1)
        found[mechanism] = found.get(mechanism, 0) + release.steps
    return tuple(replace(mechanism, steps=steps) for mechanism, steps in found.items())


@lru_cache(maxsize=4096)
def _gaussian_rdp(
    noise_multiplier: float, sample_rate: float, orders: tuple[float, ...]
) -> np.ndarray:
    """Divergences of one step; never above those without sampling, by quasi-convexity."""
    values = np.array(orders) / (2 * noise_multiplier**2)
    if sample_rate < 1:
        summed = np.array(orders) <= SUMMED
        low = compute_rdp(
            q=sample_rate,
            noise_multiplier=noise_multiplier,
            steps=1,
            orders=[a for a in orders if a <= SUMMED],
        )
        values[summed] = np.fmin(
            values[summed], np.maximum(low, 0.0)
        )  # rounding may leave less than nothing
    values.setflags(write=False)
    return values


@lru_cache(maxsize=4096)
def _laplace_rdp(scale: float, orders: tuple[float, ...]) -> np.ndarray:
    """Divergences of one step; exact for small and large scales."""
    a = np.array(orders)
    values = 1 / scale + np.log1p((a - 1) * np.expm1((1 - 2 * a) / scale) / (2 * a - 1)) / (a - 1)
    values.setflags(write=False)
    return values
