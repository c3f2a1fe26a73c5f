"""A table in LaTeX, for a paper that uses booktabs."""

from __future__ import annotations

import pandas as pd

from reports.tables.counts import count_notes
from reports.tables.table import (
    MARK,
    Layout,
    best_rows,
    block_title,
    blocks,
    bold,
    cut_short,
    measured_text,
    row_title,
)

SPECIAL = {
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
"""What LaTeX would read as a command, and what its fonts lack."""


def escape(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(SPECIAL.get(character, character) for character in text)


def latex_table(layout: Layout, lines: pd.DataFrame) -> str:
    """A `table` environment per metric and panel: measured, mean ± std over seeds, with the
    published value in brackets.

    The caption says what is bold, and profile, seeds and data, so that a reduced run cannot be
    taken for another.
    """
    parts = [r"% needs \usepackage{booktabs}"]
    bound = r"; \textdagger{}: upper bound" if layout.oracles & set(layout.rows) else ""
    for block in blocks(layout, lines):
        for number, panel in enumerate(block.panels, 1):
            caption = ". ".join(
                filter(
                    None,
                    (layout.caption, panel.title, block_title(block), "; ".join(layout.labels)),
                )
            )
            best = {column: best_rows(layout, block, column) for column in panel.columns}
            marks = f"In brackets: published; bold: {escape(bold(layout))}{bound}"
            if any(map(cut_short, block.cells.values())):
                marks += rf"; {escape(MARK)}: cut short, the metric had not settled"
            counts = count_notes(block.cells.values())
            marks += "".join(f"; {escape(note)}" for note in counts)
            scale_name = block.scale.title.split(" ")[0].lower()
            parts += [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{escape(caption)}. {marks}.}}",
                rf"\label{{tab:{layout.key.replace('/', '-')}-{scale_name}-{number}}}",
                rf"\begin{{tabular}}{{l{'r' * len(panel.columns)}}}",
                r"\toprule",
                " & ".join(["", *map(escape, panel.columns.values())]) + r" \\",
                r"\midrule",
            ]
            for row in layout.rows:
                texts = [escape(row_title(layout, row))]
                for column in panel.columns:
                    line = block.cells.get((row, column))
                    if line is None or line["status"] != "ok":
                        texts.append("--" if line is None else "failed")
                        continue
                    value = escape(measured_text(line, block.scale))
                    value = rf"\textbf{{{value}}}" if row in best[column] else value
                    printed = block.scale.text(line["published"])
                    texts.append(value + (f" ({escape(printed)})" if printed else ""))
                parts.append(" & ".join(texts) + r" \\")
            parts += [r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
    return "\n".join(parts)
