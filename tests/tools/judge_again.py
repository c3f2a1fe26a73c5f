"""Judges the claims on results that lie in a folder again from their records, by today's rules, and
writes the verdicts and the pages that show them. No number changes.

    python -m tests.tools.judge_again FOLDER
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fedtables.benchmarks.reporting.verdicts import judge_records
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.spec import Table
from fedtables.reports.pages.result_files import Result, find_results
from fedtables.results.files import write_atomic
from fedtables.results.frame import read_records
from fedtables.results.record import Record
from fedtables.results.store import write_sealed_csv


def judged(result: Result) -> list[dict[str, str]]:
    """The verdicts on a table's claims, from its records and those of the tables beside it."""
    name, _, variant = result.name.partition(".")
    paper = registry.papers()[result.paper]

    def beside(table: Table) -> Sequence[Record]:
        stem = ".".join(filter(None, (table.key, variant)))
        return read_records(result.base.with_name(f"{stem}.records.jsonl"))

    (table,) = (table for table in paper.tables if table.key == name)
    return judge_records(paper, table, result.profile, result.records, beside)


def main(folder: str) -> None:
    for result in find_results(Path(folder)):
        if result.claims:
            claims = judged(result)
            write_sealed_csv(result.file("claims.csv"), claims)
            if result.file("md").exists():
                page = result.sheet.markdown(replace(result.shown, claims=claims))
                write_atomic(result.file("md"), page)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
