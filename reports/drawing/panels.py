"""What of a table is drawn, and what its panels are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from metrics.names import TEXTS
from reports.tables.table import Block, Layout, Panel, blocks, heading, is_number
from results.published import parse_column
from results.record import OK


def drawn_blocks(layout: Layout, lines: pd.DataFrame) -> list[Block]:
    """The metrics of a table that are drawn, with the panels and columns in which any row has a
    number; counts only where there is nothing else.
    """
    measured = []
    for block in blocks(layout, lines[~lines["metric"].isin(TEXTS)]):
        kept = [
            replace(
                panel,
                columns={
                    column: name
                    for column, name in panel.columns.items()
                    if any(value_of(block, row, column) for row in layout.rows)
                },
            )
            for panel in block.panels
        ]
        if any(panel.columns for panel in kept):
            measured.append(replace(block, panels=[panel for panel in kept if panel.columns]))
    return [block for block in measured if not block.scale.counted] or measured


def value_of(block: Block, row: str, column: str) -> str:
    """A measured number as the CSV has it; empty without one."""
    line = block.cells.get((row, column))
    return line["value"] if line is not None and line["status"] == OK else ""


def measured_in(block: Block, row: str) -> bool:
    return any(value_of(block, row, column) for panel in block.panels for column in panel.columns)


def runs_along(panel: Panel) -> bool:
    """Whether a panel's columns are numbers, but for one at most that has none."""
    numbers = sum(map(is_number, panel.columns.values()))
    return numbers > 1 and len(panel.columns) - numbers <= 1


def panel_names(panels: Sequence[Panel], common: Mapping[str, str]) -> list[str]:
    """What tells the panels of a metric apart, without what is `common` to all of the picture; all
    values with their keys where two keys have one value.
    """
    pairs = [{k: v for k, v in _keys(panel).items() if k not in common} for panel in panels]
    items = {item for p in pairs for item in p.items()}
    same = len({value for _, value in items}) < len(items)
    return [", ".join(f"{k} {v}" if same else heading({k: v}) for k, v in p.items()) for p in pairs]


def _keys(panel: Panel) -> dict[str, str]:
    """The keys of a panel, those of its column too if it has but one."""
    (column, *others) = panel.columns
    return {**panel.keys, **({} if others else parse_column(column))}


def shared_keys(panels: Sequence[Panel]) -> dict[str, str]:
    """What all panels have in common."""
    first, *others = map(_keys, panels)
    return {k: v for k, v in first.items() if all((k, v) in other.items() for other in others)}
