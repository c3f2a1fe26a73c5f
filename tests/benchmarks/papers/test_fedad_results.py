"""FedAD's tables as they are printed and written, from the numbers in print."""

import dataclasses
import io

import pytest
from rich.console import Console

from fedtables.benchmarks.reporting.layout import _scaled
from fedtables.benchmarks.reporting.printing import print_table
from fedtables.benchmarks.reporting.writing import write_table
from fedtables.benchmarks.running.table_run import TableRun
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.results.published import parse_column
from tests.benchmarks.papers.printed_cells import printed_records, run_of


def records_and_run(table, folder):
    found = registry.find_table(f"fedad/{table}")
    return printed_records(*found), run_of(*found, folder)


@pytest.fixture
def printed(tmp_path, monkeypatch):
    """Prints a table from records; returns what is shown and the folder."""
    monkeypatch.setattr(TableRun, "all_records", lambda run: list(run.records.values()))

    def show(table):
        records, run = records_and_run(table, tmp_path)
        run.records = {record.cell: record for record in records}
        console = Console(file=io.StringIO(), width=250)
        print_table(console, run, write_table(run))
        return run, console.file.getvalue()

    return show


def test_table_3_says_how_many_films_its_columns_have(printed):
    _, text = printed("table3")
    sizes = [
        dict(cell.config)["partition.public_limit"]
        for cell in expand(*registry.find_table("fedad/table3"), Selection(only={"row": "fedad"}))
    ]
    told = (
        f"public-size 1000, 5000, 10000, 15000, 20000, 26684 are {', '.join(map(str, sizes))} here"
        " (partition.public_limit)"
    )
    assert told in text


def test_at_the_papers_scale_nothing_is_scaled(tmp_path):
    records, run = records_and_run("table3", tmp_path)
    paper = [
        dataclasses.replace(
            record, config={**record.config, "partition.public_limit": int(size)}, public={}
        )
        for record in records
        if (size := parse_column(record.column)["public-size"]) != "none"
    ]
    assert len(paper) == 6
    assert _scaled(run, paper) == []
    official = [dataclasses.replace(record, public={"used": "rsna-pneumonia"}) for record in paper]
    assert _scaled(run, official) == []
    # A set of 4,708 films that stands in has no more, whatever is asked for.
    small = [dataclasses.replace(record, public={"used": "pneumoniamnist"}) for record in paper]
    assert _scaled(run, small) == [
        "public-size 5000, 10000, 15000, 20000, 26684 are 4708, 4708, 4708, 4708, 4708 here"
        " (partition.public_limit)"
    ]
