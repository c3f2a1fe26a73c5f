"""Tables as if their cells had given what the paper prints."""

from dataclasses import replace

from fedtables.benchmarks.running.events import record_of
from fedtables.benchmarks.running.table_run import TableRun
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.results import published
from fedtables.results.record import Measurement
from fedtables.results.store import TableFiles


def run_of(paper, table, folder):
    """A run of a whole table at smoke, whose files lie in a folder."""
    files = TableFiles(folder, "smoke", f"{paper.key}/{table.key}")
    return TableRun(paper, table, Selection(), expand(paper, table, Selection()), files)


def printed_of(cell):
    """The printed numbers of a cell: of its own column, or of columns with more keys."""
    return [
        found
        for found in published.published_table(cell.table)
        if found.row == cell.row
        and f"{found.column} ".startswith(f"{cell.column} ")
        and found.value is not None
    ]


def printed_records(paper, table):
    """Records of a table's cells as if they had given what the paper prints; where that is a sum of
    columns, each an equal part of it.
    """
    records = []
    for cell in expand(paper, table, Selection()):
        taken = [
            Measurement(found.metric, found.value, found.column.removeprefix(cell.column).strip())
            for found in printed_of(cell)
        ]
        for rule in (rule for rule in table.derived if not rule.weights):
            if cell.column in [published.format_column(dict(keys)) for keys in rule.of]:
                whole = replace(cell, column=published.format_column(dict(rule.column)))
                taken += [
                    Measurement(found.metric, found.value / len(rule.of))
                    for found in printed_of(whole)
                ]
        records.append(record_of(cell, measurements=tuple(taken)))
    return records
