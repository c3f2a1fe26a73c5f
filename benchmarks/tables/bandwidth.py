"""Bytes of tables at the paper's scale, from first principles.

An account says what a row of a table would send: products of factors, each with its source. Where
the paper leaves open what it counted, an account has several readings, and print decides which
comes closest; none is fitted to it.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from benchmarks.tables.selection import Texts, listed
from benchmarks.tables.spec import SpecError
from metrics.names import BANDWIDTH
from results import published
from results.names import near
from results.published import parse_column
from results.sourcecode import ROOT

GB, GIB = 10**9, 2**30
SOURCES = ("paper", "code", "data", "network", "assumed")


@dataclass(frozen=True)
class Factor:
    """One factor of a number of bytes."""

    name: str
    value: float | Callable[[], int]
    """A number, or a function that counts one on a network, which is built only when somebody
    asks."""
    unit: str
    source: str
    """`paper`, `code` (the authors' or a comparator's release), `data` (the data set itself),
    `network` (counted on it) or `assumed`."""
    where: str
    """Section, or the reason of an assumption."""

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise ValueError(
                f"{self.name}: source must be one of {', '.join(SOURCES)}, not {self.source!r}"
            )

    @property
    def amount(self) -> float:
        return self.value() if callable(self.value) else self.value


@dataclass(frozen=True)
class Flow:
    """Messages of one kind in one direction, from all their senders and over the whole run."""

    what: str
    direction: str
    """`up` (client to server) or `down`."""
    factors: tuple[Factor, ...]

    @property
    def size(self) -> float:
        """Bytes: the product of the factors."""
        return math.prod(factor.amount for factor in self.factors)

    @property
    def formula(self) -> str:
        """`125 volumes x 3 maps x 4 bytes`."""
        return " x ".join(f"{factor.amount:,.10g} {factor.unit}" for factor in self.factors)


@dataclass(frozen=True)
class Reading:
    """One way to read what was counted: the sum of its flows."""

    title: str
    flows: tuple[Flow, ...]
    free: str = ""
    """Name of a factor that the paper does not give; `needed` says what it would have to be."""

    def size(self, *directions: str) -> float:
        """Bytes in these directions; in both if none is given."""
        return sum(
            flow.size for flow in self.flows if not directions or flow.direction in directions
        )

    def difference(self, printed: float) -> float:
        """How far this is from a printed number of GB, as a share of it."""
        return self.size() / GB / printed - 1

    def needed(self, printed: float) -> float:
        """The value of the free factor that meets a printed number of GB. Raises ValueError if no
        flow has the factor.
        """
        with_it = [
            (flow.size, factor)
            for flow in self.flows
            for factor in flow.factors
            if factor.name == self.free
        ]
        if not with_it:
            raise ValueError(f"{self.title}: no flow has the factor {self.free!r}")
        moving = sum(size for size, _ in with_it)
        return with_it[0][1].amount * (printed * GB - (self.size() - moving)) / moving


@dataclass(frozen=True)
class Account:
    """What one row of a table sends, in every reading; the first is what this suite's ledger would
    count.
    """

    row: str
    """The slug in `results/published/`."""
    title: str
    column: str
    readings: tuple[Reading, ...]

    def printed(self, table: str) -> float | None:
        """The printed number of GB, or None where the paper prints none."""
        for cell in published.published_table(table):
            if (cell.row, cell.metric) == (self.row, BANDWIDTH) and parse_column(
                cell.column
            ) == parse_column(self.column):
                return cell.value if isinstance(cell.value, float) else None
        return None

    def closest(self, printed: float) -> Reading:
        """The reading that is nearest to a printed number of GB."""
        return min(self.readings, key=lambda reading: abs(reading.difference(printed)))

    def factors(self) -> Iterator[Factor]:
        """The factors of all readings, each once, in order."""
        yield from dict.fromkeys(
            factor for reading in self.readings for flow in reading.flows for factor in flow.factors
        )


def accounts(table: str) -> tuple[Account, ...]:
    """The accounts of `paper/table`; none where its paper has none of it."""
    paper, _, key = table.partition("/")
    return _accounts_of(paper).get(key, ())


def _accounts_of(paper: str) -> dict[str, tuple[Account, ...]]:
    """The accounts of a paper by table: `ACCOUNTS` in `benchmarks/papers/bytes/PAPER.py`, where
    there is that file.
    """
    if not (ROOT / "benchmarks" / "papers" / "bytes" / f"{paper}.py").exists():
        return {}
    of_tables: dict[str, tuple[Account, ...]] = importlib.import_module(
        f"benchmarks.papers.bytes.{paper}"
    ).ACCOUNTS
    return of_tables


def chosen(table_accounts: Sequence[Account], only: Mapping[str, Texts]) -> tuple[Account, ...]:
    """The accounts of the rows that `--only row=...` names. Raises SpecError for another key or an
    unknown row.
    """
    rows = [account.row for account in table_accounts]
    for key in only.keys() - {"row"}:
        raise SpecError(
            f"--only {key}=...: a table without a runner can be planned row by row only:"
            f" {', '.join(rows)}"
        )
    wanted = listed(only["row"], rows) if "row" in only else rows
    for row in wanted:
        if row not in rows:
            raise SpecError(f"--only row={row}: nothing is known of its bytes; {near(row, rows)}")
    return tuple(account for account in table_accounts if account.row in wanted)


def tables(paper: str) -> list[str]:
    """The tables `paper/table` of a paper that have accounts."""
    return [f"{paper}/{key}" for key in _accounts_of(paper)]


# -- transfer times --


def seconds(size: float, link: float) -> float:
    """Seconds that `size` bytes take on a link of `link` Mbit/s, one after the other and without
    latency.
    """
    return size * 8 / (link * 1e6)


def duration(time: float) -> str:
    """Seconds in the largest unit of which there are two: `90 s`, `5.0 min`, `3.2 h`, `12.5
    days`.
    """
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if time >= 2 * length:
            return f"{time / length:,.1f} {unit}"
    return f"{time:.3g} s"


def link_columns(link: float | None) -> list[str]:
    """Headings of the transfer times that `--link` asks for."""
    return [] if link is None else [f"up at {link:g} Mbit/s", f"down at {link:g} Mbit/s"]


def link_times(up: float, down: float, link: float | None) -> list[str]:
    """The cells below them, for bytes up and down."""
    return [] if link is None else [duration(seconds(size, link)) for size in (up, down)]


# -- what `plan` prints --


def show(
    console: Console, table: str, table_accounts: Sequence[Account], link: float | None = None
) -> None:
    """Every account of a table: its readings beside print, their formulas, and where each factor
    comes from.
    """
    console.print(
        f"[bold]{table}[/] bytes at the paper's scale, from first principles (GB is 10^9 bytes)",
        soft_wrap=True,
    )
    for account in table_accounts:
        printed = account.printed(table)
        closest = account.closest(printed) if printed is not None else None
        head = f"{account.title} ({account.column}): " + (
            "no number in print" if printed is None else f"{printed:g} GB in print"
        )
        drawn = RichTable(
            "", "reading", title=escape(head), title_justify="left", title_style="bold"
        )
        for name in (
            "up GB",
            "down GB",
            "GB",
            "GiB",
            *([] if printed is None else ["difference"]),
            *link_columns(link),
        ):
            drawn.add_column(name, justify="right")
        for number, reading in enumerate(account.readings, 1):
            up, down = reading.size("up"), reading.size("down")
            against = [] if printed is None else [f"{reading.difference(printed):+.2%}"]
            drawn.add_row(
                str(number),
                escape(reading.title) + (" [bold](closest)[/]" if reading is closest else ""),
                f"{up / GB:,.2f}",
                f"{down / GB:,.2f}",
                f"{(up + down) / GB:,.2f}",
                f"{(up + down) / GIB:,.2f}",
                *against,
                *link_times(up, down, link),
            )
        console.print(drawn)
        for number, reading in enumerate(account.readings, 1):
            for flow in reading.flows:
                console.print(
                    f"  {number} {flow.direction}: {escape(flow.what)}: {flow.formula}",
                    soft_wrap=True,
                )
            if reading.free and printed is not None:
                console.print(
                    f"    print needs {reading.needed(printed):,.1f} {escape(reading.free)}",
                    soft_wrap=True,
                )
    drawn = RichTable(
        "factor",
        "value",
        "source",
        "where",
        title="Factors",
        title_justify="left",
        title_style="bold",
    )
    for factor in dict.fromkeys(
        factor for account in table_accounts for factor in account.factors()
    ):
        drawn.add_row(
            factor.name, f"{factor.amount:,.10g} {factor.unit}", factor.source, escape(factor.where)
        )
    console.print(drawn)
    remark = "Reading 1 is what this suite's ledger would count."
    if any(account.printed(table) is not None for account in table_accounts):
        remark += " The closest of several readings is no proof that it is the paper's."
    console.print(remark, soft_wrap=True)
