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

from reports.kinds.kind import find_kind
from reports.tables.budget import budget_rows, markdown_budget
from reports.tables.markdown import markdown_page
from reports.tables.markup import code, escaped
from reports.tables.table import Layout
from results.files import ResultsError, with_seal, without_seal, write_atomic
from results.record import OK, Record


@dataclass(frozen=True)
class Sheet:
    """All that a report needs beside a table's numbers."""

    layout: Layout
    paper: str
    """The paper's title."""
    citation: str
    measure: str
    """What was measured; `reports.kinds` says how it is shown."""
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

    def markdown(
        self, lines: pd.DataFrame, claims: Sequence[Mapping[str, str]], records: Sequence[Record]
    ) -> str:
        """The whole page of a table: title, numbers, notes, budgets, claims about what is there and
        protocol card, by which command it is made and at which commit it was.
        """
        verdicts = [(c["claim"], c["verdict"], c["in_print"]) for c in claims if is_measured(c)]
        budget = markdown_budget(budget_rows(self.layout, records))
        at = commits(records)
        made = code(self.command) if self.command else ""
        made = ". ".join(filter(None, (made, f"Computed at {escaped(at)}" if at else "")))
        return markdown_page(
            self.layout, self.shown(lines), verdicts, self.card, self.told, budget, made
        )

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
            lists = {name: tuple(layout[name]) for name in ("columns", "labels", "notes")}
            texts: dict[str, Any] = {
                name: tuple(value[name])
                for name in ("told", "card", "metrics", "clients")
                if name in value  # the last two came later
            }
            sheet_layout = Layout(**{**layout, **lists, "oracles": frozenset(layout["oracles"])})
            return cls(**{**value, **texts, "layout": sheet_layout})
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ResultsError(
                f"cannot read {path}: {error}. Regenerate the table with `python -m benchmarks"
                " reproduce`."
            ) from error


def is_measured(claim: Mapping[str, str]) -> bool:
    """Whether any cell that a claim is about is there."""
    return not claim["verdict"].startswith("not measured")


def commits(records: Sequence[Record]) -> str:
    """`commit 0123456789ab`, or several with the number of cells of each; empty of no record."""
    counts: Counter[str] = Counter()
    for machine in (record.machine for record in records if record.status == OK):
        if name := machine.get("commit", ""):
            counts[name[:12] + (" with changes" if changed(machine) else "")] += 1
    if len(counts) < 2:
        return "".join(f"commit {name}" for name in counts)
    texts = (f"{name} ({n} cell{'s' * (n > 1)})" for name, n in counts.most_common())
    return f"commits {', '.join(texts)}"


def changed(machine: Mapping[str, Any]) -> bool:
    """Whether tracked files differed from the commit; older records say it behind the commit."""
    return bool(machine.get("dirty")) or machine.get("commit", "").endswith("+changes")
