"""Cells of a CSV that no spreadsheet runs: what begins like a formula gets a quote before it."""

from __future__ import annotations

import math
from typing import Any

RUN = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes a cell for a formula by, or leaves out to find one."""
QUOTE = "'"
QUOTED = tuple(QUOTE + start for start in (*RUN, QUOTE))
"""How cells begin that have been quoted."""


def quoted(value: Any) -> Any:
    """A cell as it is written: a text that a spreadsheet would run, or that reads as if it had been
    quoted, with a quote before it. Numbers, as texts too, stay as they are.
    """
    if not isinstance(value, str) or not value.startswith((*RUN, *QUOTED)) or _is_number(value):
        return value
    return QUOTE + value


def unquoted(text: str) -> str:
    """The cell that `quoted` was given."""
    return text[1:] if text.startswith(QUOTED) else text


def _is_number(text: str) -> bool:
    try:
        return not math.isnan(float(text)) and text == text.strip() and "_" not in text
    except ValueError:
        return False
