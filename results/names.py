"""Suggestions for names that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near(name: str, known: Iterable[str]) -> str:
    """`did you mean a or b?`, or all known names when none is near."""
    names = sorted(known)
    begun = [known_name for known_name in names if name and known_name.startswith(name)]
    close = list(dict.fromkeys([*begun, *difflib.get_close_matches(name, names, n=3, cutoff=0.5)]))[
        :3
    ]
    return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(names)}"
