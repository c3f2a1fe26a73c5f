"""Numbers as people write them: no `1_0`, which Python reads, and none that nothing here counts."""

from __future__ import annotations

import math
import re

MOST_WHOLE, MOST = 2**31 - 1, 1e12
"""The largest whole number and the largest number that any option or setting takes."""
_WHOLE = re.compile(r"-?[0-9]{1,10}", re.ASCII)
_NUMBER = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?", re.ASCII | re.IGNORECASE
)


def whole_number(text: str, least: int = -MOST_WHOLE, most: int = MOST_WHOLE) -> int:
    """The whole number that `text` is. Raises ValueError, with what is wanted, for any other text
    and for a number out of bounds.
    """
    if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
        raise ValueError(f"{shortened(text)} is no whole number from {least} to {most}")
    return int(text)


def finite_number(text: str, least: float = -MOST, most: float = MOST) -> float:
    """The number that `text` is. Raises ValueError, with what is wanted, for any other text, for an
    infinite one and for one out of bounds.
    """
    if not _NUMBER.fullmatch(text) or not least <= float(text) <= most:
        raise ValueError(f"{shortened(text)} is no number from {least:g} to {most:g}")
    return float(text)


def shortened(text: str, longest: int = 60) -> str:
    """`text` in quotes, as part of a message of one line."""
    shown = repr(text)
    return shown if len(shown) <= longest else f"{shown[:longest]}...'"


def is_infinite(text: str) -> bool:
    """Whether `text` stands for plus infinity."""
    return text.lower() in ("inf", "+inf", "infinity") and math.isinf(float(text))
