"""The numbers of a table's lines, for what draws them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from metrics.names import TEXTS
from results.published import format_column, parse_column
from results.record import OK

NUMBERS = ("value", "std", "published")


def measured(lines: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """The lines that have a number and any of the `keys` in their column, if such are given.

    Numbers are floats. Each key is taken out of `column` and is a column of its own, empty in a
    line without it.
    """
    there = lines[(lines["status"] == OK) & ~lines["metric"].isin(TEXTS)]
    pairs = [parse_column(column) for column in there["column"]]
    own = {key: [pair.pop(key, "") for pair in pairs] for key in keys}
    numbers = {name: pd.to_numeric(there[name], errors="coerce") for name in NUMBERS}
    found = there.assign(column=[format_column(pair) for pair in pairs], **numbers, **own)
    return found[(found[[*keys]] != "").any(axis="columns")] if keys else found


def ends(found: pd.DataFrame) -> list[float]:
    """All that an axis has to show of some numbers: each less its spread, and more."""
    around = np.nan_to_num(found["std"])
    return [*(found["value"] - around), *(found["value"] + around)]
