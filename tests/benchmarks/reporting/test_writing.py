"""What a command shows of a run: labels and titles from the records, claims from their values,
pictures of several metrics.
"""

import io
import re
from dataclasses import asdict, replace

import pytest
from rich.console import Console

from fedtables.benchmarks.reporting import writing
from fedtables.benchmarks.reporting.cards import reduced, table_settings
from fedtables.benchmarks.reporting.layout import layout_of
from fedtables.benchmarks.reporting.printing import print_table
from fedtables.benchmarks.reporting.writing import draw, write_table
from fedtables.benchmarks.running.events import record_of
from fedtables.benchmarks.running.table_run import TableRun
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.reports.drawing import plots
from fedtables.reports.tables.table import ShownTable
from fedtables.results.files import cache_home, write_atomic
from fedtables.results.record import Measurement
from fedtables.results.store import CellCache, TableFiles, summarise
from tests.benchmarks.reporting.scores import record, scored


@pytest.fixture
def printed(tmp_path, monkeypatch):
    """Prints FedIOD's Table 1 as if its selection's cells had all been run; returns what is
    shown.
    """

    def show(**selection):
        paper, table = registry.find_table("fediod/table1")
        chosen = Selection(**selection)
        run = TableRun(
            paper,
            table,
            chosen,
            expand(paper, table, chosen),
            TableFiles(tmp_path, "smoke", "fediod/table1"),
        )
        records = [
            record_of(
                cell,
                public=asdict(cell.public) if cell.public else {},
                measurements=(Measurement("accuracy", 50.0),),
                statistic="best of 3" if cell.protocol == "released" else "after the last of 3",
            )
            for cell in run.cells
        ]
        run.records = {record.cell: record for record in records}
        for computed in records:
            CellCache().put(computed)
        console = Console(file=io.StringIO(), width=200)
        print_table(console, run, write_table(run))
        return console.file.getvalue()

    return show


def test_an_added_row_without_a_cell_is_told(printed):
    only = {"dataset": "cifar10", "alpha": "1"}
    shown = printed(add=("public-only", "fediod-own"), only=only)
    assert "row public-only has no cell here: it needs public labels of the task's classes" in shown
    assert shown.count("has no cell here") == 1
    assert "FedIOD, D(x) as own" in shown
    assert "has no cell here" not in printed(only=only)


ONE_COLUMN = {"dataset": "cifar10", "alpha": "1"}


def test_only_the_columns_that_were_asked_for_are_printed(printed, tmp_path):
    shown = printed(only={**ONE_COLUMN, "row": "fedkd,fediod"})
    assert "cifar10, alpha 1" in shown
    assert "alpha 0.1" not in shown
    assert "cifar100" not in shown.partition("public data")[0]
    assert "–" not in shown
    page = (tmp_path / "smoke" / "fediod" / "table1.md").read_text()
    assert "| | cifar10, alpha 1 |" in page


def test_cells_of_earlier_commands_are_in_the_files_and_not_printed(printed, tmp_path):
    first = printed(only={**ONE_COLUMN, "row": "fedkd"})
    assert "from earlier commands" not in first
    second = printed(only={"dataset": "cifar100", "alpha": "1", "row": "fediod"})
    assert "the files have 1 more cells, from earlier commands into this folder" in second
    assert "FedKD" not in second
    page = (tmp_path / "smoke" / "fediod" / "table1.md").read_text()
    assert "| | cifar10 | cifar100 |" in page
    assert "| FedKD |" in page
    assert "| FedIOD |" in page


def test_claims_about_cells_that_are_not_there_are_counted_and_not_printed(printed, tmp_path):
    """All of Table 1's seven claims compare FedIOD with another row."""
    alone = printed(only={**ONE_COLUMN, "row": "fediod"})
    assert "claim:" not in alone
    assert "claims that need cells beyond these: 7" in alone
    assert "verdicts rest on one seed" not in alone
    both = printed(only={**ONE_COLUMN, "row": "fediod,fedavg"})
    claims = [line for line in both.splitlines() if line.startswith("claim:")]
    assert len(claims) + int(re.search(r"cells beyond these: (\d+)", both)[1]) == 7
    assert any("while being more private" in line for line in claims)
    assert "verdicts rest on one seed" in both
    page = (tmp_path / "smoke" / "fediod" / "table1.md").read_text()
    assert "| not measured |" not in page
    assert len((tmp_path / "smoke" / "fediod" / "table1.claims.csv").read_text().splitlines()) == 8


def test_a_card_has_no_settings_of_methods_and_measures_that_are_not_there(printed, tmp_path):
    printed(only={**ONE_COLUMN, "row": "fedprox,fediod"})
    page = (tmp_path / "smoke" / "fediod" / "table1.md").read_text()
    card = page.partition("## Protocol")[2]
    names = re.findall(r"^\| ([a-z-]+)\.\w+ \|", card, re.MULTILINE)
    assert {"fedprox", "fediod", "local", "server", "partition"} <= set(names)
    assert {"fedgen", "feddf", "fedmd", "fedkd-gong", "attack"}.isdisjoint(names)
    asked = (*registry.find_table("fediod/table1"), "smoke", {"fedprox"})
    assert "local.epochs" in reduced(*asked)
    assert "local.epochs" not in reduced(*asked, {"local.epochs"})
    text = reduced(*asked)
    assert "fedprox.rounds" in text
    assert "fedgen.rounds" not in text


def test_a_card_says_what_columns_set():
    _, table = registry.find_table("fedad/table2")
    assert "columns set partition.clients: 3, 5" in table_settings(table)
    assert "columns set data.name: nih-cxr14, chexpert" in table_settings(table)
    _, table = registry.find_table("dlad/table4")
    assert "all columns have data.name = cifar10" in table_settings(table)


def test_a_picture_is_drawn_again_only_if_it_would_differ_or_is_damaged(run, monkeypatch):
    drawn = []

    def table_plot(table, path):
        drawn.append(table.layout.title)
        write_atomic(path, f"picture {len(drawn)}")

    def draws(records, **layout):
        before = len(drawn)
        shown = replace(layout_of(run, records), **layout)
        draw(run, ShownTable(shown, summarise(records), records, run.table.metrics))
        return len(drawn) - before

    monkeypatch.setattr(plots, "table_plot", table_plot)
    records = [scored("gan", 2.0, 1.0)]
    path = run.files.path("png")
    assert draws(records) == 1
    assert draws(records) == 0
    assert draws([scored("gan", 2.5, 1.0)]) == 1
    assert draws(records) == 1
    assert draws(records, title="Another") == 1
    assert draws(records, title="Another", oracles=frozenset({"gan"})) == 1
    monkeypatch.setattr(writing, "source_digest", lambda *modules: "other code")
    assert draws(records) == 1
    assert draws(records) == 0
    path.write_text("damaged")
    assert draws(records) == 1
    path.unlink()
    assert draws(records) == 1
    (note,) = (cache_home() / "pictures").iterdir()
    note.write_text(note.read_text().replace("shows", "show"))
    assert draws(records) == 1
    assert draws(records) == 0


def test_an_earlier_released_table_in_the_folder_does_not_break_the_claims_of_another(tmp_path):
    paper, table6 = registry.find_table("fediod/table6")
    files = TableFiles(tmp_path, "smoke", "fediod/table6", "released")
    files.write_records([record("gan=avg", ())])
    assert TableRun(paper, table6, Selection(protocol="released"), [], files).finished() == []
