"""FedSA's Table 3 and Figure 4a from records to the page: what a command writes of them."""

import io

import pytest
from rich.console import Console

from fedtables.benchmarks.reporting.layout import layout_of
from fedtables.benchmarks.reporting.printing import print_table
from fedtables.benchmarks.reporting.writing import write_table
from fedtables.benchmarks.running.table_run import TableRun
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import Paper, Row, Table
from fedtables.reports.pages.page import render_page, section_of
from fedtables.reports.pages.result_files import find_results
from fedtables.results.store import TableFiles
from tests.reports.teacher_records import COLUMNS, METRICS, printed_records, selections


def reproduced(tmp_path, name, measure, metrics, rows, records, own=None):
    """What a command would write of records, as if their cells had all been run; and what it
    shows.
    """
    table = Table(
        key=name,
        title=name,
        caption="Teachers",
        rows=tuple(Row(key, "fedavg", key) for key in rows),
        columns=({"dataset": "cifar10"},),
        axes={"dataset": "data.name"},
        measure=measure,
        metrics=metrics,
        unit="percent",
        own=own,
    )
    paper = Paper(
        "fedsa",
        "FedSA: a title",
        "",
        settings=(),
        tables=(table,),
        released_code=True,
        seed_axes=(),
    )
    run = TableRun(paper, table, Selection(), [], TableFiles(tmp_path, "smoke", f"fedsa/{name}"))
    run.records = {r.cell: r for r in records}
    console = Console(file=io.StringIO(), width=200)
    print_table(console, run, write_table(run))
    return run, console.file.getvalue()


@pytest.fixture
def all_records(monkeypatch):
    monkeypatch.setattr(TableRun, "all_records", lambda run: list(run.records.values()))


def test_a_table_of_teachers_is_reported_from_its_records_to_the_page(tmp_path, all_records):
    records = printed_records(shift=-30.0, columns=COLUMNS[:1])
    own = registry.find_table("fedsa/table3")[1].own
    run, shown = reproduced(
        tmp_path, "table3", "transferability", METRICS, [r.row for r in records], records, own
    )
    sentence = (
        "Spearman rho = 0.49, Pearson r = 0.61 (n = 10 teachers); published rho = 0.49, r = 0.61 (n"
        " = 10)"
    )
    assert sentence in shown
    assert "positively correlated: holds" in shown
    text = run.files.path("md").read_text()
    assert text.index("| teacher-10 |") < text.index(sentence) < text.index("## Claims")
    assert run.files.path("png").exists()
    assert run.files.path("svg").exists()
    assert layout_of(run, records).own == ""  # no teacher is the method under test
    (result,) = find_results(tmp_path)
    assert sentence in result.sheet.told[0]
    html = render_page([result])
    assert html.index("teacher-10") < html.index(sentence) < html.index("<summary>Notes</summary>")


def test_a_figure_of_selections_is_reported_as_totals(tmp_path, all_records):
    run, shown = reproduced(
        tmp_path,
        "figure4a",
        "selection",
        ("transferability", "selected"),
        ["fedsa"],
        [selections()],
    )
    assert "times drawn: in all of them" in shown
    text = run.files.path("md").read_text()
    assert "| | teacher 1 | teacher 2 | teacher 3 |" in text
    assert "selection=" not in text.split("## Claims")[0]
    (result,) = find_results(tmp_path)
    assert len(result.lines) == 12  # the CSV has every selection
    assert [len(table["rows"][0]["cells"]) for table in section_of(result)["tables"]] == [3, 3]
    (claim,) = result.claims
    assert (claim["id"], claim["verdict"]) == (
        "fedsa-f4a",
        "not measured",
    )  # two selections do not tell
