"""Numbers, and what kind of things each row exchanges to reach them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reports.kinds.kind import Kind
from reports.tables.table import ShownTable
from results.record import OK, Record

PROPERTIES: Mapping[str, str] = {
    "distillation": "the fit looks at the public images",
    "param-transfer": "parameters or gradients cross, in either direction",
    "privacy": (
        "nothing leaves a client but outputs, attention, votes and labels or their counts: no"
        " parameters, gradients, features or images; what these outputs tell of its samples is"
        " bounded by nothing, and labelled samples that a server holds for validation (FedDF) are"
        " counted as its own"
    ),
    "asynchronous": (
        "nothing comes down to a client, and none sends the same kind of thing in two rounds; so a"
        " one-shot method is, and one whose clients answer anew in every epoch is not"
    ),
}
"""What each property says of a run, as it is derived."""


class Exchange(Kind):
    """A table of numbers and properties, with what each property means."""

    def remarks(self, table: ShownTable) -> list[str]:
        return [
            *(f"{name}: {meaning}" for name, meaning in PROPERTIES.items()),
            *crossed(table.layout.rows, table.records),
        ]


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
    return ["crossed: " + "; ".join(rows)] if rows else []


def _named(kinds: set[str], way: str) -> str:
    return (
        ", ".join(sorted(kind.partition("/")[2] for kind in kinds if kind.startswith(f"{way}/")))
        or "nothing"
    )


KIND = Exchange()
