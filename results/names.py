"""Suggestions for names that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near(name: str, known: Iterable[str]) -> str:
    """`did you mean a or b?`, or all known names when none is near."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(names)}"
