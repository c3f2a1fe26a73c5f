"""FedAD's cells, and the printed numbers that each has to yield."""

from __future__ import annotations

from benchmarks.tables import registry
from benchmarks.tables.expansion import expand
from benchmarks.tables.selection import Selection
from results.published import parse_column, published_table

PAPER = registry.papers()["fedad"]
PRINTED = ("table1", "table2", "table3", "table4")


def table_of(key):
    return next(table for table in PAPER.tables if table.key == key)


def cells(table, **changes):
    return expand(PAPER, table_of(table), Selection(**changes))


def of_cell(cell):
    """The printed numbers that a cell has to yield."""
    return [
        printed
        for printed in published_table(cell.table)
        if printed.row == cell.row
        and f"{printed.column} ".startswith(f"{cell.column} ")
        and printed.value is not None
        and (parse_column(printed.column).keys() - parse_column(cell.column).keys() <= {"class"})
    ]
