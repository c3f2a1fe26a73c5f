"""Names that do not exist: what may have been meant, and settings that have none but known ones."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

COUNTS = ("rounds", "last_epochs", "clients", "batch_size", "interval", "iterations")
"""What settings that count end in, where there is at least one of what they count."""


def near(name: str, known: Iterable[str]) -> str:
    """`did you mean a or b?`, or all known names when none is near."""
    names = sorted(known)
    begun = [known_name for known_name in names if name and known_name.startswith(name)]
    close = list(dict.fromkeys([*begun, *difflib.get_close_matches(name, names, n=3, cutoff=0.5)]))[
        :3
    ]
    return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(names)}"


def check_known(settings: object, **known: Collection[str]) -> None:
    """Raise ValueError, with what is known, for a field of `settings` that has another value."""
    for field, values in known.items():
        value = getattr(settings, field)
        if value not in values:
            raise ValueError(f"unknown {field} {value!r}; known: {', '.join(values)}")


def check_counts(values: Mapping[str, Any]) -> None:
    """Raise ValueError for a setting, by its name, that ends in one of `COUNTS` and is below 1."""
    for name, value in values.items():
        if name.endswith(COUNTS) and isinstance(value, int) and value < 1:
            raise ValueError(f"{name} is a whole number from 1, not {value}")
