"""What a table's CSV does not say: how it is drawn, by which protocol it was made. `reproduce`
leaves it as `layout.json`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from reports.kinds.kind import find_kind
from reports.tables.table import Layout
from results.files import ResultsError, write_atomic


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

    def shown(self, lines: pd.DataFrame) -> pd.DataFrame:
        """The lines that are drawn as a table, as the measure's kind has them: of curves their
        ends.
        """
        return find_kind(self.measure).shown(lines)

    def write(self, path: Path) -> None:
        """Write it in one step. The order of rows is kept: it is that of print."""
        value: dict[str, Any] = asdict(self)
        value["layout"]["oracles"] = sorted(self.layout.oracles)
        write_atomic(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> Sheet:
        """Raises ResultsError if `path` is missing or was not written by `write`."""
        try:
            value = json.loads(path.read_text())
            layout = value.pop("layout")
            lists = {name: tuple(layout[name]) for name in ("columns", "labels", "notes")}
            sheet_layout = Layout(**{**layout, **lists, "oracles": frozenset(layout["oracles"])})
            return cls(
                **{
                    **value,
                    "layout": sheet_layout,
                    "told": tuple(value["told"]),
                    "card": tuple(value["card"]),
                }
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ResultsError(
                f"cannot read {path}: {error}. Regenerate the table with `python -m benchmarks"
                " reproduce`."
            ) from error
