"""What tables beside those of a scorecard say of the same methods: accuracy under differential
privacy, and what an attack recovers from what a method sends.

It stands where the data, the rest of the column and the public images are those of a condition;
budgets may be others.
"""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fedtables.metrics.names import FLOOR, LEAKED
from fedtables.reports.tables.standings import (
    ACCURACY,
    AT_EPSILON,
    EPSILON,
    NO_PUBLIC,
    PUBLIC,
    Number,
    Standing,
    Standings,
    numbers_of,
)
from fedtables.reports.tables.table import ShownTable
from fedtables.results.published import without
from fedtables.results.record import OK
from fedtables.results.store import Line

IMAGES_BY, SHARES = "attack.images_by", "attack.shares"
"""Settings: where the images that are set beside private ones come from, and what is attacked."""
INVERTED = frozenset({"dlg", "idlg", "inverting"})
"""Sources of images that are recovered from `SHARES`."""
GENERATED, NEAREST_PUBLIC = "nearest-generated", "nearest-public"
"""Sources of images that a method makes of its own, and of the floor."""
UPDATE, GRADIENT = "update", "gradient"
"""What is attacked."""
PARAMETERS, GRADIENTS, IMAGES = "parameters", "gradients", "images"
"""Kinds of payload."""
CLIENT, AVERAGE = "client", "average"
"""The column's pair of a mean over clients."""


def with_private(
    found: Standings, scored: Iterable[ShownTable], private: Iterable[ShownTable]
) -> Standings:
    """The standings with accuracy under differential privacy, as `accuracy-at-epsilon-4`, from
    tables that have a column for each epsilon, of the methods that they have.
    """
    data, rows = _data(scored), {method.row for method in found.methods}
    numbers: list[Number] = []
    for line in (line for table in private for line in table.cells):
        epsilon = without(line["column"], EPSILON)[1].get(EPSILON, "inf")
        wanted = line["status"] == OK and line["metric"] == ACCURACY and epsilon != "inf"
        if wanted and line["row"] in rows:
            keys = _keys(found, data, line, EPSILON)
            numbers += numbers_of(line["row"], f"{AT_EPSILON}{epsilon}", keys, line)
    return found.and_also(numbers)


@dataclass(frozen=True)
class Attack:
    """What a row of a table of leakage sets beside private images."""

    images_by: str
    shares: str
    method: str


def with_leakage(
    found: Standings, scored: Iterable[ShownTable], leakage: Iterable[ShownTable]
) -> Standings:
    """The standings with how near the strongest attack at hand comes to private images (`LEAKED`),
    and how near the nearest public image is anyway (`FLOOR`), from tables of leakage, of every
    method whose payloads are attacked there (`attack_on`), where it has accuracy.
    """
    data = _data(scored)
    there = {m.row: set(found.of(m.row, ACCURACY).index) for m in found.methods if not m.bound}
    numbers: list[Number] = []
    for table in leakage:
        attacks = _attacks(table)
        taken = {method.row: attack_on(method, attacks) for method in found.methods}
        floor = next((row for row, a in attacks.items() if a.images_by == NEAREST_PUBLIC), None)
        wanted = [(metric, LEAKED, taken) for metric in LEAKED]
        wanted += [(metric, FLOOR, dict.fromkeys(taken, floor)) for metric in FLOOR]
        for (metric, names, row_of), line in itertools.product(wanted, table.cells):
            mean = without(line["column"], CLIENT)[1].get(CLIENT) == AVERAGE
            if line["status"] != OK or not mean or line["metric"] != metric:
                continue
            keys = _keys(found, data, line, CLIENT)
            for row, has in there.items():
                if row_of[row] == line["row"]:
                    measured = [key for key in keys if key in has]
                    numbers += numbers_of(row, names[metric], measured, line)
    return found.and_also(numbers)


def attack_on(method: Standing, attacks: Mapping[str, Attack]) -> str | None:
    """The row, of `attacks` by row, that says what leaks from a method; None where none does.

    Of a method that generates images it is the row of the nearest of its own. Else what a client
    sends decides: parameters that the server knows the beginning of, since parameters came down to
    be trained; gradients, but for those of images that came down; or, where nothing but outputs
    leaves a client, which no attack at hand inverts, the floor. Parameters that were trained from a
    beginning of the client's own are attacked by nothing.
    """
    for row, attack in attacks.items():
        if attack.images_by == GENERATED and attack.method == method.method:
            return row
    if PARAMETERS in method.sends:
        wanted = UPDATE if PARAMETERS in method.receives else ""
    elif GRADIENTS in method.sends:
        wanted = "" if IMAGES in method.receives else GRADIENT
    else:
        outputs = bool(method.sends) and method.properties.get("privacy", False)
        wanted = NEAREST_PUBLIC if outputs else ""
    for row, attack in attacks.items():
        if wanted == (attack.shares if attack.images_by in INVERTED else attack.images_by):
            return row
    return None


def _attacks(table: ShownTable) -> dict[str, Attack]:
    """By row, from its records' settings."""
    return {
        record.row: Attack(
            str(record.config.get(IMAGES_BY, "")),
            str(record.config.get(SHARES, "")),
            table.layout.methods.get(record.row, record.row),
        )
        for record in table.records
        if record.status == OK
    }


def _data(scored: Iterable[ShownTable]) -> dict[str, str]:
    """By table, the name of its data."""
    return {table.layout.key: line["data"] for table in scored for line in table.cells[:1]}


def _keys(found: Standings, data: Mapping[str, str], line: Line, own: str) -> list[str]:
    """Keys of those of `found.ranked` that a line of another table stands in, by its data and its
    column without the key of its `own`.
    """
    column, taken = without(line["column"], own, PUBLIC)
    public = taken.get(PUBLIC, NO_PUBLIC)
    return [
        condition.key
        for condition in found.ranked
        if condition.column == column
        and data[condition.table] == line["data"]
        and public in (NO_PUBLIC, condition.public)
    ]
