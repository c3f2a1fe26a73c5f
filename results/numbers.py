"""Numbers as people write them, not `1_0`, which Python reads, and what numbers settings take."""

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


def whole_number(given: str | float, least: int = -MOST_WHOLE, most: int = MOST_WHOLE) -> int:
    """The whole number that a text is, or a number itself. Raises ValueError, with what is wanted,
    for anything else and for a number out of bounds.
    """
    value = int(given) if isinstance(given, str) and _WHOLE.fullmatch(given) else given
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{shortened(given)} is not a whole number from {least} to {most}")
    return value


def finite_number(given: str | float, least: float = -MOST, most: float = MOST) -> float:
    """The number that a text is, or a number itself. Raises ValueError, with what is wanted, for
    anything else, for an infinite one and for one out of bounds.
    """
    value = float(given) if isinstance(given, str) and _NUMBER.fullmatch(given) else given
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{shortened(given)} is not a number from {least:g} to {most:g}")
    return float(value)


def shortened(given: object, longest: int = 60) -> str:
    """A value as Python writes it, a text in quotes, as part of a message of one line."""
    shown = repr(given)
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
