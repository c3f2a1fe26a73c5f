"""A table for a terminal."""

import pandas as pd
from rich.table import Table as RichTable
from rich.text import Text

from fedtables.reports.tables.table import (
    Block,
    Layout,
    block_title,
    blocks,
    marked_title,
    measured_text,
    printed_rows,
    published_text,
)
from fedtables.results.record import OK
from fedtables.results.store import Line


def terminal_tables(layout: Layout, lines: pd.DataFrame) -> list[RichTable]:
    """One rich table per metric and panel that has at least one measured cell."""
    drawn = []
    metric_blocks = blocks(layout, lines)
    for block in metric_blocks:
        for panel in block.panels:
            title = "; ".join(
                filter(None, (block_title(block) if len(metric_blocks) > 1 else "", panel.title))
            )
            # Titles are Text, because rich reads `[released]` in a plain string as a style.
            table = RichTable(
                title=Text(title) if title else None,
                title_justify="left",
                title_style="bold",
                padding=(0, 1),
            )
            table.add_column("")
            for name in panel.columns.values():
                table.add_column(Text(name), justify="right")
            for row, cells in printed_rows(layout, block, panel):
                texts = [_cell(block, line, best) for line, best in cells]
                table.add_row(Text(marked_title(layout, row)), *texts)
            drawn.append(table)
    return drawn


def _cell(block: Block, line: Line | None, best: bool) -> Text:
    if line is None:
        return Text("–", style="dim")
    style = "red" if line["status"] != OK else "bold" if best else ""
    text = Text.assemble((measured_text(line, block.scale), style))
    if block.in_print:
        text.append(f"\n{published_text(line, block.scale)}", "dim")
    return text
