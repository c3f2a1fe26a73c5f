"""The tables in a folder of results: the files of each, read when they are asked for."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from fedtables.reports.pages.sheet import Sheet
from fedtables.reports.tables.resultset import check_agree, read_table
from fedtables.reports.tables.table import ShownTable
from fedtables.results.files import COMMITTED, ResultsError
from fedtables.results.frame import read_records
from fedtables.results.record import Record
from fedtables.results.store import read_sealed_csv

PROFILES = ("paper", "gpu", "cpu", "smoke")
CLAIMED = ("id", "claim", "verdict", "in_print")
"""What every line on a claim has."""
COUNTED = (
    *("held", "failed", "same", "undecided", "cut_short", "settled", "failed_settled"),
    *("seeds", "profile", "data", "fails_at", "core_hours", "beyond"),
)
"""What it has beside that, or not, by its version."""
WAYS_OF_RUNNING = re.compile(
    r"|(bf16|tf32|compiled|graphs|stacked\d+)(-(compiled|graphs|stacked\d+))*"
)
"""How a table's file is called by precision, compilation and stacking: the same numbers up to
rounding."""


@dataclass(frozen=True)
class Result:
    """One table's files."""

    profile: str
    paper: str
    name: str
    """`table2`, or `table1.released` for one of another protocol."""
    base: Path
    """Their path without suffix."""

    @property
    def as_published(self) -> bool:
        """Whether it is the paper's own table, in whatever way it ran: by the paper's protocol, and
        without settings of a user's own.
        """
        return WAYS_OF_RUNNING.fullmatch(self.name.partition(".")[2]) is not None

    def file(self, suffix: str) -> Path:
        return self.base.with_name(f"{self.base.name}.{suffix}")

    @property
    def anchor(self) -> str:
        """The table's place in the page."""
        return f"{self.profile}-{self.paper}-{self.name}".replace(".", "-")

    @cached_property
    def lines(self) -> pd.DataFrame:
        return read_table(self.file("csv"))

    @cached_property
    def sheet(self) -> Sheet:
        """As `reproduce` left it."""
        return Sheet.read(self.file("layout.json"))

    @cached_property
    def claims(self) -> list[dict[str, str]]:
        path = self.file("claims.csv")
        if not path.exists():
            return []
        claims = [dict(line) for line in read_sealed_csv(path, CLAIMED, COUNTED)]
        if not claims or not all(claim[name] for claim in claims for name in CLAIMED):
            raise ResultsError(
                f"{path} is damaged; regenerate the table with `fedtables reproduce`"
            )
        return claims

    @cached_property
    def records(self) -> list[Record]:
        records = read_records(self.file("records.jsonl"))
        check_agree(self.file("csv"), self.lines, records)
        return records

    @property
    def shown(self) -> ShownTable:
        sheet = self.sheet
        metrics = sheet.metrics or tuple(self.lines["metric"].unique())
        told, claims = sheet.told, self.claims
        return ShownTable(
            sheet.layout, self.lines, self.records, metrics, sheet.clients, told, claims
        )


def find_results(folder: Path) -> list[Result]:
    """The tables under `folder`/PROFILE/PAPER, papers and tables in order. Raises ResultsError if
    there is none, or one whose `layout.json` is missing.
    """
    results = [
        Result(profile, path.parent.name, path.stem, path.with_suffix(""))
        for profile in PROFILES
        for path in sorted((folder / profile).glob("*/*.csv"))
        if not path.name.endswith(".claims.csv")
    ]
    for result in results:
        if not result.file("layout.json").exists():
            raise ResultsError(
                f"{result.file('layout.json')} is missing, which says how {result.file('csv')} is"
                " drawn; regenerate the table with `fedtables reproduce`"
            )
    if not results:
        raise ResultsError(
            f"{folder} holds no table; write one with `fedtables reproduce`, or name"
            f" another folder: `{COMMITTED}` has the committed ones, as in"
            f" `fedtables reports build {COMMITTED}`"
        )
    return results
