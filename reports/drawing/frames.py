"""The numbers of a table's lines, for what draws them, and what of a table is drawn."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from fedtables.reports.tables.table import (
    Block,
    Layout,
    Panel,
    blocks,
    cut_short,
    heading,
    is_number,
    left_out,
)
from fedtables.results.published import format_column, parse_column
from fedtables.results.record import OK, TEXTS

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


def ends(found: pd.DataFrame, name: str = "value", spread: str = "std") -> list[float]:
    """All that an axis has to show of some numbers: each less its spread, and more."""
    around = np.nan_to_num(found[spread])
    return [*(found[name] - around), *(found[name] + around)]


def numbers_of(block: Block) -> pd.DataFrame:
    """By row and column what was measured: `value`, `std`, `published` and `published_std`, the
    last two where they can be compared; whether the run was cut `short`, and of how many values a
    mean is that leaves some out (`told`).
    """
    names = [*NUMBERS, "published_std"]
    there = {place: line for place, line in block.cells.items() if line["status"] == OK}
    index = pd.MultiIndex.from_tuples(there, names=["row", "column"])
    texts = pd.DataFrame([[line[n] for n in names] for line in there.values()], index, names)
    found = texts.apply(pd.to_numeric, errors="coerce")
    if block.unlike:
        found[["published", "published_std"]] = np.nan
    found["short"] = [cut_short(line) for line in there.values()]
    found["told"] = [left_out(line) for line in there.values()]
    return found[found["value"].notna()]


def drawn_blocks(layout: Layout, lines: pd.DataFrame) -> list[tuple[Block, pd.DataFrame]]:
    """The metrics of a table that are drawn, each with its numbers, and with the panels and columns
    in which any row has one; counts only where there is nothing else.
    """
    found = []
    for block in blocks(layout, lines[~lines["metric"].isin(TEXTS)]):
        numbers = numbers_of(block)
        there = set(numbers.index.get_level_values("column"))
        kept = [
            replace(panel, columns={c: n for c, n in panel.columns.items() if c in there})
            for panel in block.panels
        ]
        panels = [panel for panel in kept if panel.columns]
        if panels:
            found.append((replace(block, panels=panels), numbers))
    return [one for one in found if not one[0].scale.counted] or found


def runs_along(panel: Panel) -> bool:
    """Whether a panel's columns are numbers, but for one at most that has none."""
    numbers = sum(map(is_number, panel.columns.values()))
    return numbers > 1 and len(panel.columns) - numbers <= 1


def panel_names(panels: Sequence[Panel]) -> tuple[list[str], str]:
    """What tells the panels of a picture apart, and what all of several have in common. Values have
    their keys with them where two keys have one value.
    """
    every = [_keys(panel) for panel in panels]
    shared = set.intersection(*(set(keys.items()) for keys in every)) if len(every) > 1 else set()
    apart = [{k: v for k, v in keys.items() if (k, v) not in shared} for keys in every]
    items = {item for keys in apart for item in keys.items()}
    alike = len({value for _, value in items}) < len(items)
    names = [
        ", ".join(f"{key} {value}" for key, value in keys.items()) if alike else heading(keys)
        for keys in apart
    ]
    return names, heading({k: v for k, v in every[0].items() if (k, v) in shared})


def _keys(panel: Panel) -> dict[str, str]:
    """The keys of a panel, those of its column too if it has but one."""
    (column, *others) = panel.columns
    return {**panel.keys, **({} if others else parse_column(column))}
