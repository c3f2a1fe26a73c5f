"""A table as the paper prints it, measured beside published: for the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table as RichTable
from rich.text import Text

from results.published import parse_column

Line = Mapping[str, str]
"""A line of a table's CSV."""


@dataclass(frozen=True)
class Layout:
    """What a drawing needs to know beyond the numbers."""

    key: str
    title: str
    caption: str
    rows: Mapping[str, str]
    """Printed label by row slug, in print order."""
    oracles: frozenset[str]
    """Rows that use knowledge no real server has."""
    own: str
    """The row of the method under test, which stands out in plots."""
    x_axis: str
    """Column key along the horizontal axis; the last one if empty."""
    columns: tuple[str, ...]
    """All columns, in print order."""
    labels: tuple[str, ...]
    """Profile, seeds, networks and data sets used, for subtitles."""


@dataclass(frozen=True)
class Panel:
    """The columns that share all keys but the horizontal one."""

    keys: Mapping[str, str]
    columns: Mapping[str, str]
    """Column by its value of the horizontal key."""

    @property
    def title(self) -> str:
        return ", ".join(f"{key} {value}" for key, value in self.keys.items())


def panels(layout: Layout) -> list[Panel]:
    """Split the columns into panels; up to eight columns stay in one."""
    parsed = {column: parse_column(column) for column in layout.columns}
    keys = list(next(iter(parsed.values())))
    axis = layout.x_axis if layout.x_axis in keys else keys[-1]
    if len(parsed) <= 8:
        return [Panel({}, {" ".join(parsed[c].values()): c for c in parsed})]
    found: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    for column, pairs in parsed.items():
        rest = tuple((key, value) for key, value in pairs.items() if key != axis)
        found.setdefault(rest, {})[pairs[axis]] = column
    return [Panel(dict(rest), columns) for rest, columns in found.items()]


def measured_panels(layout: Layout, cells: Mapping[tuple[str, str], Line]) -> list[Panel]:
    """The panels that have at least one measured cell."""
    return [p for p in panels(layout) if any((row, column) in cells for row in layout.rows for column in p.columns.values())]


def number(text: str, digits: int = 4) -> str:
    """A CSV value with a readable number of digits; texts as they are."""
    try:
        return f"{float(text):.{digits}f}"
    except ValueError:
        return text


def by_cell(lines: Sequence[Line]) -> dict[tuple[str, str], Line]:
    """Lines by row and column."""
    return {(line["row"], line["column"]): line for line in lines}


def best_rows(layout: Layout, cells: Mapping[tuple[str, str], Line], column: str) -> set[str]:
    """Rows with the highest value of a column, upper bounds left out."""
    values: dict[str, float] = {}
    for row in layout.rows:
        line = cells.get((row, column))
        if line is not None and row not in layout.oracles and line["status"] == "ok":
            try:
                values[row] = float(line["value"])
            except ValueError:
                continue
    return {row for row, value in values.items() if len(values) > 1 and value == max(values.values())}


def measured_text(line: Line) -> str:
    """`0.9812 ± 0.0013`, or the failure."""
    if line["status"] != "ok":
        return "failed"
    return number(line["value"]) + (f" ± {number(line['std'])}" if line["std"] else "")


def published_text(line: Line) -> str:
    """`(0.9820, -0.0008)`: the printed value and ours minus it."""
    if not line["published"]:
        return "(not printed)"
    difference = line["difference"]
    if not difference or not line["value"]:
        return f"({number(line['published'])})"
    try:
        return f"({number(line['published'])}, {float(difference):+.4f})"
    except ValueError:
        return f"({line['published']}, {difference})"


def row_title(layout: Layout, row: str) -> str:
    return layout.rows[row] + (" †" if row in layout.oracles else "")


def legend(layout: Layout, lines: Sequence[Line]) -> list[str]:
    """What the marks in the table mean, and what failed or was not run."""
    notes = ["measured, in brackets published and measured - published; bold: best of its column"]
    if layout.oracles & set(layout.rows):
        notes.append("† upper bound: uses the labels of the public set")
    notes += [f"failed: {line['row']} {line['column']}: {line['status']}" for line in lines if line["status"] != "ok"]
    return notes


def terminal_tables(layout: Layout, lines: Sequence[Line]) -> list[RichTable]:
    """One rich table per panel that has at least one measured cell."""
    cells = by_cell(lines)
    drawn = []
    for panel in measured_panels(layout, cells):
        table = RichTable(title=panel.title or None, title_justify="left", title_style="bold", padding=(0, 1))
        table.add_column("")
        for heading in panel.columns:
            table.add_column(heading, justify="right")
        best = {column: best_rows(layout, cells, column) for column in panel.columns.values()}
        for row in layout.rows:
            texts: list[Text] = []
            for column in panel.columns.values():
                line = cells.get((row, column))
                if line is None:
                    texts.append(Text("–", style="dim"))
                    continue
                style = "red" if line["status"] != "ok" else "bold" if row in best[column] else ""
                texts.append(Text.assemble((measured_text(line), style), "\n", (published_text(line), "dim")))
            table.add_row(row_title(layout, row), *texts)
        drawn.append(table)
    return drawn


def escape_cell(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def markdown(layout: Layout, lines: Sequence[Line], claims: Sequence[tuple[str, str, str]], card: Sequence[str]) -> str:
    """The whole page of a table: title, numbers, claims (text, verdict, in print) and the protocol card."""
    cells = by_cell(lines)
    parts = [f"# {layout.key}: {layout.title}", "", layout.caption + ".", "", "; ".join(layout.labels) + ".", ""]
    for panel in measured_panels(layout, cells):
        if panel.title:
            parts += [f"**{panel.title}**", ""]
        parts.append("| | " + " | ".join(panel.columns) + " |")
        parts.append("|---" * (len(panel.columns) + 1) + "|")
        best = {column: best_rows(layout, cells, column) for column in panel.columns.values()}
        for row in layout.rows:
            texts = []
            for column in panel.columns.values():
                line = cells.get((row, column))
                if line is None:
                    texts.append("–")
                    continue
                bold = "**" if row in best[column] and line["status"] == "ok" else ""
                texts.append(f"{bold}{measured_text(line)}{bold} {published_text(line)}")
            parts.append(f"| {escape_cell(row_title(layout, row))} | " + " | ".join(map(escape_cell, texts)) + " |")
        parts.append("")
    parts += [f"- {note}" for note in legend(layout, lines)]
    if claims:
        parts += ["", "## Claims", "", "| the paper's claim | here | in print |", "|---|---|---|"]
        parts += ["| " + " | ".join(map(escape_cell, claim)) + " |" for claim in claims]
    parts += ["", "## Protocol", "", *card, ""]
    return "\n".join(parts)
