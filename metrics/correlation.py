"""How far two quantities go together over the same items: Pearson's and Spearman's correlation
coefficients.
"""

import math
from collections.abc import Callable, Sequence


def pearson(first: Sequence[float], second: Sequence[float]) -> float:
    """Linear correlation, from -1 to 1; NaN for fewer than two items, and where either quantity is
    the same for all of them or not finite. Raises ValueError for quantities that do not pair.
    """
    from scipy.stats import pearsonr  # takes its time, and most commands need no correlation

    return _defined(pearsonr, first, second)


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Rank correlation, equal values sharing their mean rank; undefined where `pearson` is."""
    from scipy.stats import spearmanr

    return _defined(spearmanr, first, second)


def _defined(
    coefficient: Callable[..., tuple[float, float]], first: Sequence[float], second: Sequence[float]
) -> float:
    finite = all(map(math.isfinite, (*first, *second)))
    if not finite or min(len(set(first)), len(set(second))) < 2:
        return math.nan
    return float(coefficient(first, second)[0])
