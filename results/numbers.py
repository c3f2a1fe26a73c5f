"""Numbers as people write them, not `1_0`, which Python reads, and what numbers settings take."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

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


@dataclass(frozen=True)
class Bounds:
    """What numbers a setting takes, as its field's annotation says."""

    least: float
    most: float
    above: bool = False
    """Whether `least` itself is too small."""

    def __str__(self) -> str:
        least = f"above {self.least:g}" if self.above else f"from {self.least:g}"
        return f"a number {least}, at most {self.most:.10g}"

    def __contains__(self, value: float) -> bool:
        return self.least <= value <= self.most and not (self.above and value == self.least)


Count = Annotated[int, Bounds(1, MOST_WHOLE)]
"""Of rounds, steps, or samples in a batch: without any, nothing would be learnt."""
Positive = Annotated[float, Bounds(0, MOST, above=True)]
"""Of a learning rate, say."""
Share = Annotated[float, Bounds(0, 1)]
SomeShare = Annotated[float, Bounds(0, 1, above=True)]
"""More than nothing, as of clients that take part."""


def check_bounds(settings: type, values: Mapping[str, Any], prefix: str = "") -> None:
    """Raise ValueError, with what is wanted, for a value that the annotation of its field in the
    class `settings` rules out; `prefix` stands before the field's name.
    """
    for name, bounds in _bounds(settings).items():
        if name in values and values[name] not in bounds:
            raise ValueError(f"{prefix}{name} is {bounds}, not {values[name]!r}")


@functools.cache
def _bounds(settings: type) -> Mapping[str, Bounds]:
    """The fields of a class that have bounds; none where an annotation names what is imported for
    type checkers alone.
    """
    try:
        hints = get_type_hints(settings, include_extras=True)
    except NameError:
        return {}
    return {
        name: extra
        for name, kind in hints.items()
        for extra in getattr(kind, "__metadata__", ())
        if isinstance(extra, Bounds)
    }
