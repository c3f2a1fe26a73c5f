"""A table in LaTeX, for a paper that uses booktabs."""

from typing import Any

import pandas as pd

from fedtables.reports.tables.notes import bold, count_notes
from fedtables.reports.tables.table import (
    MARK,
    Block,
    Layout,
    Panel,
    block_title,
    blocks,
    cut_short,
    measured_text,
    printed_rows,
    row_title,
)
from fedtables.results.record import OK
from fedtables.results.store import Line

SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "†": r"\textdagger{}",
        "§": r"\S{}",
        "–": "--",
        "…": r"\dots{}",
        "ε": r"$\varepsilon$",
        "α": r"$\alpha$",
        "≥": r"$\geq$",
        "≤": r"$\leq$",
        "×": r"$\times$",
        "<": r"$<$",
        ">": r"$>$",
    }
)
"""What LaTeX would read as a command, and what its fonts lack."""


def escape(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return text.translate(SPECIAL)


def latex_table(layout: Layout, lines: pd.DataFrame) -> str:
    """A `table` environment per metric and panel: measured, mean ± std over seeds, with the
    published value in brackets.

    The caption says what is bold, and profile, seeds and data, so that a reduced run cannot be
    taken for another.
    """
    parts = [r"% needs \usepackage{booktabs}"]
    for block in blocks(layout, lines):
        scale_name = block.scale.title.split(" ")[0].lower()
        for number, panel in enumerate(block.panels, 1):
            rows = printed_rows(layout, block, panel)
            frame = pd.DataFrame(
                [[_cell(block, line, best) for line, best in cells] for _, cells in rows],
                index=[escape(row_title(layout, row)) for row, _ in rows],
                columns=[escape(heading) for heading in panel.columns.values()],
            )
            caption = _caption(layout, block, panel)
            label = f"tab:{layout.key.replace('/', '-')}-{scale_name}-{number}"
            aligned = f"l{'r' * len(panel.columns)}"
            look: Any = {"position_float": "centering", "hrules": True, "column_format": aligned}
            parts.append(frame.style.to_latex(caption=caption, label=label, **look))
    return "\n".join(parts)


def _caption(layout: Layout, block: Block, panel: Panel) -> str:
    about = (layout.caption, panel.title, block_title(block), "; ".join(layout.labels))
    marks = f"In brackets: published; bold: {bold(layout)}"
    if layout.oracles & set(layout.rows):
        marks += "; †: upper bound"
    if any(map(cut_short, block.cells.values())):
        marks += f"; {MARK}: cut short, the metric had not settled"
    notes = [f"; {note}" for note in count_notes(block.cells.values())]
    return escape(". ".join(filter(None, about)) + f". {marks}{''.join(notes)}.")


def _cell(block: Block, line: Line | None, best: bool) -> str:
    if line is None or line["status"] != OK:
        return "--" if line is None else "failed"
    value, printed = escape(measured_text(line, block.scale)), block.scale.text(line["published"])
    value = rf"\textbf{{{value}}}" if best else value
    return value + (f" ({escape(printed)})" if printed else "")
