"""What a method looks like, in every picture of every table.

`palette.csv` gives the known ones a colour of Paul Tol's schemes, which are told apart with any
colour vision (personal.sron.nl/~pault, 2021), a marker and a hatch. A method that it does not list
has a look of its own by its name, so that adding one changes no other.
"""

import csv
import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib.colors import to_hex, to_rgb

from fedtables.reports.tables.table import Layout
from fedtables.results.files import digest

FILE = Path(__file__).with_name("palette.csv")
SPARE = ("#661100", "#4477aa", "#ee3377", "#6b8e3f", "#000000", "#bb9955")
"""Colours of methods that the file does not list."""
MARKERS = ("*", "<", ">", "8", "H", "d")
BOUND = "///"
"""The hatch of an upper bound."""
VARIANTS = (
    (0.35, "^", ""),
    (0.6, ">", "xx"),
    (0.5, "<", ".."),
    (0.75, "*", r"\\"),
    (0.2, "P", "--"),
    (0.8, "X", "oo"),
    (0.45, "d", "++"),
)
"""Share of white, marker and hatch of further rows of one method."""
NEUTRAL = "#33567f"
"""The colour of what belongs to no method."""


@dataclass(frozen=True)
class Look:
    """How a row is drawn."""

    colour: str
    marker: str
    hatch: str


@functools.cache
def listed() -> Mapping[str, Look]:
    """The looks of the file, by method."""
    with FILE.open(newline="", encoding="utf-8") as stream:
        return {
            line["method"]: Look(line["colour"], line["marker"], line["hatch"])
            for line in csv.DictReader(stream)
        }


def looks(
    rows: Collection[str],
    methods: Mapping[str, str],
    oracles: Collection[str] = (),
    *,
    own: str = "",
    named: bool = False,
) -> dict[str, Look]:
    """The look of every row: its method's (`methods` by row, else of its own name); of several rows
    of one method the paper's `own` row, or the first, has it as it is, the others are lighter.
    `oracles` are the rows that are upper bounds.

    Rows that are `named` on an axis need no hatch to be told apart: only upper bounds have one.
    """
    of_row = {row: methods.get(row, row) for row in rows}
    of_methods: dict[str, Look] = {}
    for method in of_row.values():
        if method not in of_methods:
            of_methods[method] = listed().get(method) or _spare(method, of_methods)
    shown = {}
    for method, look in of_methods.items():
        same = sorted((row for row in rows if of_row[row] == method), key=lambda row: row != own)
        for number, row in enumerate(same):
            lighter = look
            if number:
                white, marker, hatch = VARIANTS[0 if named else (number - 1) % len(VARIANTS)]
                lighter = Look(_lighter(look.colour, white), marker, hatch)
            hatch = BOUND if row in oracles else "" if named else lighter.hatch
            shown[row] = replace(lighter, hatch=hatch)
    return shown


def looks_of(layout: Layout, named: bool = False) -> dict[str, Look]:
    """The look of every row of a table."""
    return looks(layout.rows, layout.methods, layout.oracles, own=layout.own, named=named)


def _spare(method: str, taken: Mapping[str, Look]) -> Look:
    """A look by the method's name; the next one where another method of the table has it."""
    number = int(digest(method), 16)
    colours = {look.colour for look in taken.values()}
    order = [SPARE[(number + k) % len(SPARE)] for k in range(len(SPARE))]
    colour = next((colour for colour in order if colour not in colours), order[0])
    return Look(colour, MARKERS[number % len(MARKERS)], "")


def _lighter(colour: str, white: float) -> str:
    red, green, blue = (white + (1 - white) * part for part in to_rgb(colour))
    return to_hex((red, green, blue))
