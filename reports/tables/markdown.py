"""A table's page in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from reports.tables.markup import escaped, markdown_table
from reports.tables.table import (
    Layout,
    best_rows,
    block_title,
    blocks,
    legend,
    marked_title,
    measured_text,
    published_text,
)


def markdown_page(
    layout: Layout,
    lines: pd.DataFrame,
    claims: Sequence[tuple[str, str, str]],
    card: Sequence[str],
    notes: Sequence[str] = (),
    budget: Sequence[str] = (),
    made: str = "",
) -> str:
    """The whole page of a table: title, how it was `made`, numbers, notes, `budget` (lines of
    Markdown), claims (text, verdict, in print) and the protocol card.
    """
    parts = [
        f"# {layout.key}: {escaped(layout.title)}",
        "",
        escaped(layout.caption) + ".",
        "",
        escaped("; ".join(layout.labels)) + ".",
        "",
        *([made + ".", ""] if made else []),
    ]
    metric_blocks = blocks(layout, lines)
    for block in metric_blocks:
        if len(metric_blocks) > 1:
            parts += [f"## {escaped(block_title(block))}", ""]
        for panel in block.panels:
            if panel.title:
                parts += [f"**{escaped(panel.title)}**", ""]
            best = {column: best_rows(layout, block, column) for column in panel.columns}
            rows = []
            for row in layout.rows:
                texts = [escaped(marked_title(layout, row))]
                for column in panel.columns:
                    line = block.cells.get((row, column))
                    if line is None:
                        texts.append("–")
                        continue
                    bold = "**" if row in best[column] else ""
                    printed = f" {published_text(line, block.scale)}" if block.in_print else ""
                    measured = escaped(measured_text(line, block.scale))
                    texts.append(f"{bold}{measured}{bold}{escaped(printed)}")
                rows.append(texts)
            parts += markdown_table(("", *map(escaped, panel.columns.values())), rows, str)
            parts.append("")
    parts += [f"- {escaped(note)}" for note in (*notes, *legend(layout, lines))]
    parts += ["", "## Budget of a run", "", *budget] if budget else []
    if claims:
        headings = ("the paper's claim", "here", "in print")
        parts += ["", "## Claims", "", *markdown_table(headings, claims)]
    parts += ["", "## Protocol", "", *card, ""]
    return "\n".join(parts)
