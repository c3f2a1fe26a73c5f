"""Bytes of planned runs beside the bandwidth in print, and how long they take on a link."""

from collections.abc import Mapping

from fedtables.benchmarks.tables.spec import Table
from fedtables.metrics.names import BANDWIDTH
from fedtables.results import published
from fedtables.results.published import format_column

GB = 10**9


def beside_print(
    name: str, table: Table, sent: Mapping[tuple[str, str], int]
) -> list[tuple[str, str, float, float]]:
    """Row, column, GB of one run and GB in print, wherever print has a bandwidth; `sent` are the
    bytes of planned runs by row and column.
    """
    sizes = dict(sent)
    for rule in table.derived:
        parts = [format_column(dict(column)) for column in rule.of]
        for row in {row for row, _ in sent}:
            if BANDWIDTH in rule.metrics and all((row, part) in sent for part in parts):
                whole = sum(sent[row, part] for part in parts)
                sizes[row, format_column(dict(rule.column))] = whole
    return [
        (cell.row, cell.column, sizes[cell.row, cell.column] / GB, cell.value)
        for cell in published.published_table(name)
        if cell.metric == BANDWIDTH
        and isinstance(cell.value, float)
        and (cell.row, cell.column) in sizes
    ]


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
