"""The notes below a table: marks, counts behind means, how a run became its number, epsilon spent,
and failures.
"""

from collections.abc import Iterable

import pandas as pd

from fedtables.metrics.names import BY_GROUP
from fedtables.reports.tables.table import (
    MARK,
    Layout,
    block_title,
    blocks,
    cut_short,
    heading,
    left_out,
)
from fedtables.results.published import parse_column
from fedtables.results.record import OK
from fedtables.results.store import Line, records_of

NOT_SETTLED = (
    "cut short: the metric was still changing when the run ended (last tenth of its epochs against"
    " the tenth before)"
)
LEFT_OUT = (
    "(n of m): the mean of n values over all seeds; m - n are not defined. It is not compared with"
    " a mean over a larger share."
)
"""The note below such numbers."""
UNCOUNTED = (
    "HD95: images with one empty mask were left out; how many images were left is not recorded"
)
"""The note below results from before the counts were kept."""


def is_uncounted(line: Line) -> bool:
    """Whether a line is of HD95 as it was before means said of how many values they are."""
    distance = line["metric"].removesuffix(BY_GROUP) == "hd95"
    return distance and line["status"] == OK and line.get("of") is None


def count_notes(lines: Iterable[Line]) -> list[str]:
    """What a reader must know of how many values the means of some lines are."""
    found = list(lines)
    notes = [LEFT_OUT] if any(map(left_out, found)) else []
    return [*notes, UNCOUNTED] if any(map(is_uncounted, found)) else notes


def statistics_of(layout: Layout, lines: pd.DataFrame) -> list[str]:
    """How a run became its number: one line for the table, or one for each kind with its rows; with
    its columns, where each kind has all rows.
    """
    found = _lines_with(lines, "statistic")
    kinds = [(str(name), of_it) for name, of_it in found.groupby("statistic", sort=False)]
    if len(kinds) == 1:
        return [f"each number: {kinds[0][0]}"]
    by_column = all(of_it["row"].nunique() == found["row"].nunique() for _, of_it in kinds)
    notes = []
    for statistic, of_it in kinds:
        columns = (heading(parse_column(column)) for column in of_it["column"])
        rows = (layout.rows.get(row, row) for row in of_it["row"])
        titles = dict.fromkeys(columns if by_column else rows)
        notes.append(f"{', '.join(titles)}: {statistic}")
    return notes


def privacy_of(layout: Layout, lines: pd.DataFrame) -> list[str]:
    """What the private rows have spent, by the accountant: a line per row, with a value per
    column.
    """
    spent: dict[str, dict[str, str]] = {}
    for line in records_of(_lines_with(lines, "epsilon")):
        column = heading(parse_column(line["column"]))
        row = layout.rows.get(line["row"], line["row"])
        spent.setdefault(row, {})[column] = f"{line['epsilon']:.3f}"
    return [
        f"epsilon spent, {row}: " + "; ".join(f"{c}: {v}" for c, v in by_column.items())
        for row, by_column in spent.items()
    ]


def _lines_with(lines: pd.DataFrame, name: str) -> pd.DataFrame:
    """The measured lines that have an entry `name`; none where the CSV is older than that."""
    if name not in lines:
        return pd.DataFrame(columns=[*lines.columns, name])
    return lines[(lines["status"] == OK) & lines[name].notna() & (lines[name] != "")]


def bold(layout: Layout) -> str:
    """What is bold in a table, in words."""
    bounds = " (upper bounds † left out)" if layout.oracles & set(layout.rows) else ""
    return f"the best of its column{bounds}, unless another row's mean ± std over seeds reaches it"


def legend(layout: Layout, lines: pd.DataFrame) -> list[str]:
    """What the marks in the table mean, and what failed or was not run."""
    shown = blocks(layout, lines)
    in_print = any(block.in_print for block in shown)
    brackets = " (published, measured - published)" if in_print else ""
    notes = [f"cells: measured{brackets}; bold: {bold(layout)}"]
    if layout.oracles & set(layout.rows):
        notes.append(
            "† upper bound: uses what no real server has: labels of the public set, or the clients'"
            " samples or teachers"
        )
    if any(map(cut_short, records_of(lines))):
        notes.append(f"{MARK} {NOT_SETTLED}")
    notes += count_notes(records_of(lines))
    notes += unequal_notes(layout)
    notes += [block_title(block) for block in shown if block.scale.sign < 0]
    notes += [
        f"{block.scale.title}: not compared with print, because it is {block.unlike}"
        for block in shown
        if block.unlike
    ]
    notes += statistics_of(layout, lines)
    notes += [*privacy_of(layout, lines), *layout.notes]
    failed = lines[lines["status"] != OK]
    notes += [f"failed: {x['row']} {x['column']}: {x['status']}" for x in records_of(failed)]
    return notes


def unequal_notes(layout: Layout) -> list[str]:
    """A sentence for each row that is marked for its budget."""
    return [
        f"‡ {layout.rows[row]}: {text}"
        for row, text in layout.unequal.items()
        if row in layout.rows
    ]
