"""A table as the paper prints it, measured beside published, one per metric."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from fedtables.reports.tables.units import FRACTION, Scale, scale_of
from fedtables.results.names import printable
from fedtables.results.published import parse_column, published_table, without
from fedtables.results.record import OK, TEXTS, Record
from fedtables.results.store import PLACE, Line, records_of


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
    notes: tuple[str, ...] = ()
    """What a reader must know of how some numbers came about; below the table."""
    unit: str = FRACTION
    """How the table prints shares such as accuracy and dice: `fraction`, `percent`, or empty if it
    has none."""
    methods: Mapping[str, str] = field(default_factory=dict)
    """The method's name by row slug: what a row looks like in every picture."""
    chance: Mapping[str, float] = field(default_factory=dict)
    """By column, the accuracy of a guess among its data's classes, as a fraction."""
    unlike: Mapping[str, str] = field(default_factory=dict)
    """Metrics that are not taken as the paper took them, each with how: they are not compared."""
    unequal: Mapping[str, str] = field(default_factory=dict)
    """Rows whose budget is not that of their family, each with by how much."""

    def __post_init__(self) -> None:
        """Titles are a method's author's: no control character of them reaches a reader."""
        object.__setattr__(self, "notes", tuple(map(printable, self.notes)))
        for name, value in self._texts(printable).items():
            object.__setattr__(self, name, value)

    def _texts(self, changed: Callable[[str], str]) -> dict[str, Any]:
        """What a picture may show, each text of it changed."""
        return {
            "title": changed(self.title),
            "caption": changed(self.caption),
            "rows": {key: changed(title) for key, title in self.rows.items()},
            "labels": tuple(map(changed, self.labels)),
        }

    @property
    def seeds(self) -> str:
        """The label that says of how many seeds cells are, such as `3 to 6 seeds`; empty without
        one.
        """
        found = (label for label in self.labels if re.match(r"\d+( to \d+)? seeds?\b", label))
        return next(found, "")

    def plain(self) -> Layout:
        """The layout of a picture without title and provenance, for a paper whose caption has
        both.
        """
        return replace(self, title="", caption="", labels=())

    def literal(self) -> Layout:
        """The layout of a picture: no text of it is a formula."""
        return replace(self, **self._texts(literal))


@dataclass(frozen=True)
class ShownTable:
    """A table as `reproduce` makes it, or as it lies in a folder of results."""

    layout: Layout
    lines: pd.DataFrame
    """Of its CSV."""
    records: Sequence[Record]
    metrics: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    """Rows that average over clients of one kind of network."""
    told: tuple[str, ...] = ()
    """What a reader is told beside the legend."""
    claims: Sequence[Mapping[str, str]] = ()
    """Verdicts on the paper's claims, as `claims.csv` has them."""

    @property
    def cells(self) -> list[Line]:
        """The lines one by one."""
        return records_of(self.lines)


def literal(text: str) -> str:
    """Text that Matplotlib draws as it is."""
    return text.replace("$", r"\$")


@dataclass(frozen=True)
class Panel:
    """The columns that share all keys but the horizontal one."""

    keys: Mapping[str, str]
    columns: Mapping[str, str]
    """Heading by column."""

    @property
    def title(self) -> str:
        return ", ".join(f"{key} {value}" for key, value in self.keys.items())


@dataclass(frozen=True)
class Block:
    """What is drawn of one metric."""

    scale: Scale
    cells: Mapping[tuple[str, str], Line]
    """By row and column."""
    panels: Sequence[Panel]
    """Those with at least one measured cell."""
    unlike: str = ""
    """Why its numbers are not compared with those in print; empty where they are."""
    in_print: bool = False
    """Whether any number of the table, whose blocks are drawn together, is printed."""


def last_epochs(lines: pd.DataFrame) -> pd.DataFrame:
    """The last point of every curve, as cells of the table's columns."""
    places = [without(column, "epoch") for column in lines["column"]]
    ends = lines.assign(
        column=[rest for rest, _ in places],
        epoch=[int(taken.get("epoch", "0")) for _, taken in places],
    )
    return ends.loc[ends.groupby(PLACE, sort=False)["epoch"].idxmax()].drop(columns="epoch")


def blocks(layout: Layout, lines: pd.DataFrame) -> list[Block]:
    """The metrics of a table in the order of its lines, each with its cells and panels."""
    if lines.empty:
        return []
    measured = lines[lines["status"] == OK]
    columns = measured_columns(layout, lines)
    metric_blocks = []
    # A cell that failed has no metric; a table of nothing else is still drawn.
    for metric in measured["metric"].unique() if len(measured) else ("",):
        of_others = set(measured.loc[measured["metric"] != metric, "column"])
        of_it = set(measured.loc[measured["metric"] == metric, "column"])
        metric_columns = [
            column for column in columns if column in of_it or column not in of_others
        ]
        cells = cells_of(layout.key, lines, metric, metric_columns)
        printed = {c.column for c in published_table(layout.key) if c.metric == metric}
        drawn = [
            p
            for p in panels(metric_columns, layout.x_axis, len(printed))
            if any((row, c) in cells for row in layout.rows for c in p.columns)
        ]
        unlike = layout.unlike.get(metric, "")
        if unlike:
            cells = {place: {**line, "difference": None} for place, line in cells.items()}
        metric_blocks.append(Block(scale_of(metric, layout.unit), cells, drawn, unlike))
    lines_shown = (line for block in metric_blocks for line in block.cells.values())
    in_print = any(line["published"] is not None for line in lines_shown)
    return [replace(block, in_print=in_print) for block in metric_blocks]


def measured_columns(layout: Layout, lines: pd.DataFrame) -> list[str]:
    """The layout's columns, then those that only the lines have (`test=tcga` of a measurement) as
    they appear.

    A column that was measured only with such additions is replaced by them.
    """
    is_ok = lines["status"] == OK
    ok, failed = lines.loc[is_ok, "column"].unique(), lines.loc[~is_ok, "column"].unique()

    def is_replaced(column: str) -> bool:
        return any(other.startswith(f"{column} ") for other in ok)

    listed = [c for c in layout.columns if c in ok or not is_replaced(c)]
    lost = [c for c in failed if c not in layout.columns and not is_replaced(c)]
    return list(dict.fromkeys([*listed, *ok, *lost]))


def cells_of(
    table: str, lines: pd.DataFrame, metric: str, columns: Sequence[str]
) -> dict[tuple[str, str], Line]:
    """A metric's lines by row and column, with `published_std` added.

    A failure stands, beside the printed value, in every column that its cell would have filled.
    """
    printed = {(c.row, c.column): c for c in published_table(table) if c.metric == metric}
    cells: dict[tuple[str, str], Line] = {}
    for line in records_of(lines[(lines["status"] != OK) | (lines["metric"] == metric)]):
        row, column = line["row"], line["column"]
        failed = line["status"] != OK
        for place in (
            [c for c in columns if c.startswith(f"{column} ") or c == column]
            if failed
            else [column]
        ):
            cell = printed.get((row, place))
            known: dict[str, Any] = {"published_std": cell.std if cell else None}
            if failed and cell is not None:
                known["published"] = cell.value
            cells[row, place] = {**line, **known}
    return cells


def panels(columns: Sequence[str], x_axis: str, printed: int = 0) -> list[Panel]:
    """Split columns into panels that run along a key, by default the last; up to eight columns stay
    in one.

    Fewer columns are split too where the paper has more than eight, `printed`, and more than one
    key differs: part of a table keeps the table's panels. What all columns of a panel share stands
    in its title.
    """
    parsed = {column: parse_column(column) for column in columns}
    differing = differing_keys(columns)
    if not x_axis and len(parsed) <= 8 and (printed <= 8 or len(differing) <= 1):
        first = next(iter(parsed.values()), {}) if len(parsed) > 1 else {}
        shared = {key: value for key, value in first.items() if key not in differing}
        names = {
            c: heading({k: v for k, v in pairs.items() if k not in shared} or pairs)
            for c, pairs in parsed.items()
        }
        return [Panel(shared, names)]
    most = max(parsed.values(), key=len, default={"": ""})  # a column without numbers has fewer
    axis = x_axis if x_axis in most else list(most)[-1]
    by_rest: dict[str, dict[str, str]] = {}
    for column in columns:
        rest, taken = without(column, axis)
        name = taken.get(axis) if axis == x_axis else heading(taken)
        by_rest.setdefault(rest if taken else "", {})[column] = name or heading(parsed[column])
    return [Panel(parse_column(rest), headings) for rest, headings in by_rest.items()]


def differing_keys(columns: Iterable[str]) -> set[str]:
    """The keys in which some columns differ, or that some lack."""
    every = [parse_column(column) for column in columns]
    keys = {key for pairs in every for key in pairs}
    return {key for key in keys if len({pairs.get(key) for pairs in every}) > 1}


def heading(pairs: Mapping[str, str]) -> str:
    """`cifar10, alpha 0.1`: the values of a column, with the key where the value says nothing
    without it.
    """
    return ", ".join(
        f"{key} {value}" if value in ("yes", "no") or is_number(value) else value
        for key, value in pairs.items()
    )


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


MARK = "§"
OPTIMISTIC = "best of"
"""How the statistic of a run begins that was read off at its best test accuracy."""


def broken_rows(lines: Iterable[Line]) -> dict[str, str]:
    """The rows that break the contract, each with how: they are ranked and compared nowhere."""
    return {line["row"]: line["contract"] for line in lines if line.get("contract", "")}


def best_rows(layout: Layout, block: Block, column: str) -> set[str]:
    """The row with the best value of a column, if no other row's spread over seeds reaches it; none
    if the metric has no better or worse, or if rows have different seeds.

    Upper bounds are left out, rows that break the contract, rows whose mean is of fewer values than
    another's, and rows that report their best epoch beside others that do not.
    """
    not_ranked = {*layout.oracles, *broken_rows(block.cells.values())}
    of_rows = {row: block.cells.get((row, column)) for row in layout.rows if row not in not_ranked}
    lines = {
        row: line
        for row, line in of_rows.items()
        if line and line["status"] == OK and isinstance(line["value"], float)
    }
    most = fullest(lines.values())
    lines = {row: line for row, line in lines.items() if share_of(line) == most}
    fair = {
        row: line
        for row, line in lines.items()
        if not line.get("statistic", "").startswith(OPTIMISTIC)
    }
    compared = fair or lines
    values = {row: block.scale.sign * line["value"] for row, line in compared.items()}
    seeds = {line.get("seeds") for line in compared.values()}
    if block.scale.sign == 0 or len(values) < 2 or len(seeds) > 1:
        return set()
    best = max(values, key=lambda row: values[row])
    reached = (
        values[row] + (line["std"] or 0) >= values[best]
        for row, line in compared.items()
        if row != best
    )
    return set() if any(reached) else {best}


def measured_text(line: Line, scale: Scale) -> str:
    """`0.9812 ± 0.0013`, of how many values where some are undefined, marked where the run was cut
    short; or the failure.
    """
    if line["status"] != OK:
        return "failed"
    spread = "" if line["std"] is None else f" ± {scale.text(line['std'])}"
    of = f" ({short})" if (short := left_out(line)) else ""
    return scale.text(line["value"]) + spread + of + (f" {MARK}" if cut_short(line) else "")


def cut_short(line: Line) -> bool:
    """Whether the metric had not settled when a run ended; unknown, and so false, in older CSVs."""
    return line["status"] == OK and line.get("settled", "") == "no"


def published_text(line: Line, scale: Scale) -> str:
    """`(78.57 ± 0.22, -0.80)`: the printed value with its spread, and ours minus it."""
    if line["published"] is None:
        return "" if line["metric"] in ("", *TEXTS) else "(not printed)"
    printed, difference = printed_text(line, scale), line["difference"]
    if difference is None or line["value"] is None:
        return f"({printed})"
    apart = difference if isinstance(difference, str) else f"{difference:+.{scale.digits}f}"
    return f"({printed}, {apart})"


def printed_text(line: Line, scale: Scale) -> str:
    """`78.57 ± 0.22`: the printed value with its spread; empty without one."""
    spread = line["published_std"]
    return scale.text(line["published"]) + ("" if spread is None else f" ± {scale.text(spread)}")


def row_title(layout: Layout, row: str) -> str:
    return layout.rows[row] + (" †" if row in layout.oracles else "")


def marked_title(layout: Layout, row: str) -> str:
    """The same, marked where the budget is not that of the row's family."""
    return row_title(layout, row) + (" ‡" if row in layout.unequal else "")


def block_title(block: Block) -> str:
    """`HD95 (pixel), lower is better`."""
    return block.scale.title + {1: "", 0: "", -1: ", lower is better"}[block.scale.sign]


def share_of(line: Line) -> float:
    """The share of a line's values that are defined; 1 where they were not counted, as in older
    CSVs.
    """
    of: int | None = line.get("of")
    return float(line["defined"] / of) if of else 1.0


def left_out(line: Line) -> str:
    """`112 of 610` where a mean leaves out values; else empty."""
    short = line["status"] == OK and share_of(line) < 1
    return f"{line['defined']} of {line['of']}" if short else ""


def fullest(lines: Iterable[Line]) -> float:
    """The largest share of any of some lines: those that have it are compared."""
    return max((share_of(line) for line in lines), default=1.0)


def printed_rows(
    layout: Layout, block: Block, panel: Panel
) -> list[tuple[str, list[tuple[Line | None, bool]]]]:
    """The rows of a panel as they are printed: of each column its line, and whether it is best."""
    best = {column: best_rows(layout, block, column) for column in panel.columns}
    return [
        (row, [(block.cells.get((row, column)), row in best[column]) for column in panel.columns])
        for row in layout.rows
    ]
