"""A run whose records tests make by hand."""

import pytest

from fedtables.benchmarks.running.table_run import TableRun
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import Paper, Row, Table
from fedtables.results.published import parse_column, published_table
from fedtables.results.store import TableFiles
from tests.benchmarks.reporting.scores import COLUMN, SCORES


@pytest.fixture
def run(tmp_path):
    """A run of FedIOD's Table 7 with the paper's rows."""
    rows = tuple(
        Row(key, "fediod", key)
        for key in dict.fromkeys(c.row for c in published_table("fediod/table7"))
    )
    table = Table(
        key="table7",
        title="Table 7",
        caption="Scores",
        rows=rows,
        columns=(parse_column(COLUMN),),
        axes={},
        metrics=SCORES,
        unit="percent",
    )
    paper = Paper(
        "fediod",
        "FedIOD",
        "",
        settings=(),
        tables=(table,),
        released_code=True,
        seed_axes=("partition",),
    )
    return TableRun(paper, table, Selection(), [], TableFiles(tmp_path, "smoke", "fediod/table7"))
