"""A table's rows over several privacy budgets: the same table with a column for every epsilon."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.readers import several
from fedtables.benchmarks.tables.selection import Selection, table_rows
from fedtables.benchmarks.tables.spec import Paper, Row, SpecError, Table
from fedtables.results.names import near
from fedtables.results.numbers import finite_number, shortened

SUFFIX = ".sweep"
"""Of the swept table's key, and so of its files."""


def parse_epsilons(value: str | float | Iterable[str | float]) -> tuple[str, ...]:
    """`"1, 2,5"`, or numbers, as texts of increasing numbers. Raises SpecError for what is no list
    of different positive numbers.
    """
    parts = value.split(",") if isinstance(value, str) else several(value)
    try:
        values = sorted({finite_number(str(part).strip(), 0) for part in parts})
    except ValueError:
        values = []
    if not values or len(values) < len(parts) or not values[0] > 0:
        raise SpecError(
            "--epsilon takes different positive numbers, separated by commas, as in --epsilon"
            f" 1,3,10; got {shortened(value)}"
        )
    return tuple(f"{value:g}" for value in values)


def swept(
    paper: Paper, table: Table, selection: Selection, epsilons: Sequence[str]
) -> tuple[Table, list[Row]]:
    """`table` with its columns repeated for every epsilon and, as `inf`, without differential
    privacy.

    Also the rows that are left out, since their methods have no private form. Raises SpecError if
    no row is left.
    """
    if not registry.find_measure(table.measure).numbers:
        raise SpecError(
            f"sweep: {table.key} has no number per row and column to sweep;"
            f" {near(table.key, _sweepable(paper))}"
        )
    private = ("privacy.epsilon", "privacy.dp")
    axes = {key: entry for key, entry in table.axes.items() if entry not in private}
    columns = dict.fromkeys(
        tuple((key, value) for key, value in column.items() if key in axes)
        for column in table.columns
    )
    chosen = table_rows(table, selection)
    kept = [row for row in chosen if registry.find_method(row.method).load().protections()]
    if not kept:
        raise SpecError(f"sweep: no method of {table.key} has a private form here")
    return replace(
        table,
        key=table.key + SUFFIX,
        caption=f"{table.caption}, over the privacy budget",
        rows=tuple(kept),
        columns=tuple(
            {**dict(column), "epsilon": epsilon}
            for column in columns
            for epsilon in (*epsilons, "inf")
        ),
        axes={**axes, "epsilon": "privacy.epsilon"},
        x_axis="epsilon",
    ), [row for row in chosen if row not in kept]


def _sweepable(paper: Paper) -> list[str]:
    return [table.key for table in paper.tables if registry.find_measure(table.measure).numbers]
