"""`list`: papers and tables, methods, data sets."""

from __future__ import annotations

from pathlib import Path

from rich.markup import escape
from rich.table import Table as RichTable

from benchmarks.commands.app import app, console
from benchmarks.tables import registry
from benchmarks.tables.told import Told, told_of
from results import published


@app.command("list")
def list_everything() -> None:
    """Papers and tables, methods, and data sets with what is present."""
    tables = RichTable(
        "table", "what it shows", "reproducible", title="Tables", title_justify="left"
    )
    for name, table in registry.all_tables().items():
        paper = name.split("/")[0]
        if table is not None:
            tables.add_row(name, f"{table.title}: {table.caption}", "yes")
        else:
            count = sum(cell.value is not None for cell in published.published_table(name))
            tables.add_row(name, f"{count} published numbers of {paper}", "not yet")
    console.print(tables)
    methods = RichTable(
        *("method", "what it is", "derived from", "leaves a client", "where"),
        title="Methods and baselines",
        title_justify="left",
    )
    entries = registry.methods().values()
    told = told_of(entries)
    for method in entries:
        says = told.get(method.name, Told("", "", ()))
        methods.add_row(
            method.name,
            escape(says.summary),
            says.base,
            ", ".join(says.sends) or "nothing",
            f"{method.folder}/{Path(method.path).name}",
        )
    console.print(methods)
    data_table()


def data_table() -> None:
    from datasets import catalogue

    home = catalogue.data_home()
    table = RichTable(
        "data set",
        "what",
        "state",
        "else uses",
        title=escape(f"Data sets (data home: {home})"),
        title_justify="left",
    )
    for name, source in catalogue.sources().items():
        table.add_row(name, source.title, catalogue.state(name), ", ".join(source.stand_ins))
    console.print(table)
    if not home.is_dir():
        console.print(f"{escape(str(home))} does not exist; FEDTABLES_DATA names another data home")
