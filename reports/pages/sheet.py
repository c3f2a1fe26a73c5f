"""What a table's CSV does not say: how it is drawn, by which protocol it was made. `reproduce`
leaves it as `layout.json`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedtables.reports.measures.kind import find_kind
from fedtables.reports.tables.budget import budget_rows, markdown_budget
from fedtables.reports.tables.markup import code, escaped, markdown_table
from fedtables.reports.tables.notes import legend
from fedtables.reports.tables.table import (
    Block,
    Layout,
    ShownTable,
    block_title,
    blocks,
    marked_title,
    measured_text,
    printed_rows,
    published_text,
)
from fedtables.results.files import ResultsError, with_seal, without_seal, write_atomic
from fedtables.results.record import OK, Record
from fedtables.results.store import Line


@dataclass(frozen=True)
class Sheet:
    """All that a report needs beside a table's numbers."""

    layout: Layout
    paper: str
    """The paper's title."""
    citation: str
    measure: str
    """What was measured; `fedtables.reports.measures` says how it is shown."""
    told: tuple[str, ...] = ()
    """What a reader is told beside the legend."""
    card: tuple[str, ...] = ()
    """The protocol card, lines of Markdown."""
    command: str = ""
    """What makes the table."""
    metrics: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    """Rows that average over clients of one kind of network."""

    def shown(self, lines: pd.DataFrame) -> pd.DataFrame:
        """The lines that are drawn as a table, as the measure's kind has them: of curves their
        ends.
        """
        return find_kind(self.measure).shown(lines)

    def markdown(self, table: ShownTable) -> str:
        """The whole page of a table: title, how it was made, numbers, notes, budgets, claims about
        what is there and protocol card.
        """
        layout, claims, at = self.layout, table.claims, commits(table.records)
        shown = self.shown(table.lines)
        made = (
            code(self.command) if self.command else "",
            f"Computed at {escaped(at)}" if at else "",
        )
        about = (
            escaped(layout.caption),
            escaped("; ".join(layout.labels)),
            ". ".join(filter(None, made)),
        )
        parts = [f"# {layout.key}: {escaped(layout.title)}", ""]
        parts += [text for told in filter(None, about) for text in (f"{told}.", "")]
        parts += markdown_numbers(layout, shown)
        parts += [f"- {escaped(note)}" for note in (*self.told, *legend(layout, shown))]
        if budget := markdown_budget(budget_rows(layout, table.records)):
            parts += ["", "## Budget of a run", "", *budget]
        if judged := [(c["claim"], c["verdict"], c["in_print"]) for c in claims if is_measured(c)]:
            headings = ("the paper's claim", "here", "in print")
            parts += ["", "## Claims", "", *markdown_table(headings, judged)]
        return "\n".join([*parts, "", "## Protocol", "", *self.card, ""])

    def write(self, path: Path) -> None:
        """Write it in one step. The order of rows is kept: it is that of print."""
        value: dict[str, Any] = asdict(self)
        value["layout"]["oracles"] = sorted(self.layout.oracles)
        sealed = with_seal(value)
        write_atomic(path, json.dumps(sealed, indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> Sheet:
        """Raises ResultsError if `path` is missing or was not written by `write`."""
        try:
            fields = cls.__dataclass_fields__
            value, _ = without_seal(json.loads(path.read_text(encoding="utf-8")), fields)
            layout = value.pop("layout")
            layout |= {name: tuple(layout[name]) for name in ("columns", "labels", "notes")}
            layout["oracles"] = frozenset(layout["oracles"])
            lists = ("told", "card", "metrics", "clients")
            value |= {name: tuple(value[name]) for name in lists if name in value}
            return cls(**value, layout=Layout(**layout))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ResultsError(
                f"cannot read {path}: {error}. Regenerate the table with `fedtables reproduce`."
            ) from error


def markdown_numbers(layout: Layout, lines: pd.DataFrame) -> list[str]:
    """The numbers of a table in Markdown, a table for each metric and panel."""
    parts, shown = [], blocks(layout, lines)
    for block in shown:
        if len(shown) > 1:
            parts += [f"## {escaped(block_title(block))}", ""]
        for panel in block.panels:
            if panel.title:
                parts += [f"**{escaped(panel.title)}**", ""]
            rows = [
                [
                    escaped(marked_title(layout, row)),
                    *(_markdown_cell(block, line, best) for line, best in cells),
                ]
                for row, cells in printed_rows(layout, block, panel)
            ]
            parts += markdown_table(("", *map(escaped, panel.columns.values())), rows, str)
            parts.append("")
    return parts


def _markdown_cell(block: Block, line: Line | None, best: bool) -> str:
    if line is None:
        return "–"
    printed = f" {published_text(line, block.scale)}" if block.in_print else ""
    bold = "**" if best else ""
    return f"{bold}{escaped(measured_text(line, block.scale))}{bold}{escaped(printed)}"


def is_measured(claim: Mapping[str, str]) -> bool:
    """Whether any cell that a claim is about is there."""
    return not claim["verdict"].startswith("not measured")


def commits(records: Sequence[Record]) -> str:
    """`commit 0123456789ab`, or several with the number of cells of each; empty of no record."""
    machines = [record.machine for record in records if record.status == OK]
    counts = Counter(commit_of(machine) for machine in machines if machine.get("commit"))
    if len(counts) < 2:
        return "".join(f"commit {name}" for name in counts)
    texts = (f"{name} ({n} cell{'s' * (n > 1)})" for name, n in counts.most_common())
    return f"commits {', '.join(texts)}"


def commit_of(machine: Mapping[str, Any]) -> str:
    """A commit, and whether tracked files differed from it; older records say it behind the
    commit.
    """
    commit = machine.get("commit", "")
    changed = machine.get("dirty") or commit.endswith("+changes")
    return commit[:12] + (" with changes" if changed else "")
