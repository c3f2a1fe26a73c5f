"""Tables of what a method exchanges: numbers and properties, and ranks of methods on equal
terms.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from fedtables.reports.measures.kind import Kind
from fedtables.reports.tables.standings import ACCURACY, Standings, ranking, standings_of
from fedtables.reports.tables.table import ShownTable
from fedtables.results.record import OK, Record

EXCHANGED: Mapping[str, str] = {
    "distillation": "the method uses the public images",
    "param-transfer": "parameters or gradients are sent, up or down",
    "privacy": (
        "a client sends only outputs, attention, votes, labels or their counts: no parameters,"
        " gradients, features or images. This is no privacy guarantee: nothing bounds what the"
        " outputs reveal. Labelled validation samples of a server (FedDF) count as the server's"
    ),
    "asynchronous": (
        "clients receive nothing, and no client sends the same kind of message in two rounds. A"
        " one-shot method is asynchronous; one whose clients answer in every epoch is not"
    ),
}
"""What each property says of a run, as it is derived."""
SCORED: Mapping[str, str] = {
    **EXCHANGED,
    "networks-differ": "the method runs with clients of two kinds of network",
}
"""The same of a scorecard's."""


class Exchange(Kind):
    """A table of numbers and properties, with what each property means."""

    properties = EXCHANGED

    def remarks(self, table: ShownTable) -> list[str]:
        return [
            *(f"{name}: {meaning}" for name, meaning in self.properties.items()),
            *crossed(table.layout.rows, table.records),
        ]


class Scorecard(Exchange):
    """The same with ranks; its picture has a panel for each condition, of accuracy against
    bytes.
    """

    ranks_first = True
    drawn_by = "fedtables.reports.drawing.plots_ranking.scorecard_plot"
    properties = SCORED

    def brief(self, lines: pd.DataFrame) -> pd.DataFrame:
        """Accuracy, and what failed."""
        return lines[(lines["metric"] == ACCURACY) | (lines["status"] != OK)]

    def remarks(self, table: ShownTable) -> list[str]:
        return [ranked(standings_of([table])), *super().remarks(table)]


def crossed(titles: Mapping[str, str], records: Sequence[Record]) -> list[str]:
    """Which kinds of payload crossed in each row (title by key), in one text; none of no record."""
    kinds: dict[str, set[str]] = {}
    for record in records:
        if record.status == OK:
            kinds.setdefault(record.row, set()).update(record.bytes_by_kind)
    rows = [
        f"{title}: {' and '.join(f'{_named(kinds[row], way)} {way}' for way in ('up', 'down'))}"
        for row, title in titles.items()
        if row in kinds
    ]
    return ["sent: " + "; ".join(rows)] if rows else []


def _named(kinds: set[str], way: str) -> str:
    return (
        ", ".join(sorted(kind.partition("/")[2] for kind in kinds if kind.startswith(f"{way}/")))
        or "nothing"
    )


def ranked(found: Standings) -> str:
    """Mean ranks in one text, and which differences they decide."""
    ranks = ranking(found)
    titles = {method.row: method.title for method in found.methods}
    if len(ranks["mean_rank"]) < 2:
        return "no ranks, because no two methods were run in the same conditions"
    order = _listed([f"{titles[row]} {rank:.2f}" for row, rank in ranks["mean_rank"].items()])
    apart = ranks["critical_difference"]
    left_out = {"lack a condition": ranks["not_ranked"], "break the contract": ranks["broken"]}
    return (
        f"mean ranks of accuracy over {ranks['conditions']} conditions: {order}. A difference below"
        f" {apart:.2f} does not separate two methods (Nemenyi, 5 %)"
        + "".join(
            f". Not ranked, because they {why}: {_listed([titles[row] for row in rows])}"
            for why, rows in left_out.items()
            if rows
        )
    )


def _listed(names: Sequence[str], most: int = 6) -> str:
    """A list in sentences of at most so many names, for there may be dozens."""
    parts = [", ".join(names[first : first + most]) for first in range(0, len(names), most)]
    return ". Then ".join(parts)


MEASURES = {"exchange": Exchange(), "scorecard": Scorecard()}
