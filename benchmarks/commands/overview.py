"""What there is: `list`, `show` and `data`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table as RichTable

from fedtables.benchmarks.commands.app import console
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.defaults import Told, told_of
from fedtables.benchmarks.tables.request import Request, takes
from fedtables.models.weight_files import FILES, WeightFile
from fedtables.results import published
from fedtables.results.files import DataError


def list_everything() -> None:
    """List papers and tables, methods, and data sets with what is present."""
    tables = RichTable("table", "what it shows", title="Tables", title_justify="left")
    for name, table in registry.all_tables().items():
        tables.add_row(name, f"{table.title}: {table.caption}")
    console.print(tables)
    methods = RichTable(
        *("method", "what it is", "derived from", "leaves a client", "where"),
        title="Methods and baselines",
        title_justify="left",
    )
    entries = registry.methods().values()
    told = told_of(entries)
    for method in entries:
        says = told.get(method.name, Told())
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
    from fedtables.datasets import catalogue

    home = catalogue.data_home()
    table = RichTable(
        "data set",
        "what",
        "state",
        "stand-in if absent",
        title=escape(f"Data sets (data home: {home})"),
        title_justify="left",
    )
    for name, source in catalogue.sources().items():
        table.add_row(name, source.title, catalogue.state(name), ", ".join(source.stand_ins))
    console.print(table)
    if not home.is_dir():
        console.print(
            f"{escape(str(home))} does not exist. FEDTABLES_DATA can name another data home."
        )


@takes("profile", "protocol")
def show_table(
    request: Request, table: Annotated[str, typer.Argument(help="paper/table as `list` names it")]
) -> None:
    """Show a table's published numbers, its claims, and every setting with its source."""
    from fedtables.benchmarks.reporting import cards

    found, spec = registry.find_table(table)
    cells = published.published_table(table)
    columns = list(dict.fromkeys(cell.column for cell in cells))
    rows = list(dict.fromkeys(cell.row for cell in cells))
    metrics = list(dict.fromkeys(cell.metric for cell in cells))
    for metric in metrics:
        values = {(cell.row, cell.column): cell for cell in cells if cell.metric == metric}
        texts = {row: {c: _text(values.get((row, c))) for c in columns} for row in rows}
        heading = "row"
        if len(rows) <= len(columns):  # the longer side runs down the page
            texts = {c: {row: texts[row][c] for row in rows} for c in columns}
            heading = "column"
        for part in published_tables(f"{table}: published {metric}", heading, texts):
            console.print(part)
    for claim in published.claims(found.key):
        if claim.table == spec.key:
            console.print(
                f"claim {claim.id}: {escape(claim.claim)} (in print: {claim.holds_in_print},"
                f" {claim.cells or 'no numbers'})"
            )
    card = cards.terminal(found, spec, request.profile, request.protocol)
    console.print(card if fits(card) else cards.listed(card))
    for line in cards.table_settings(spec):
        console.print(escape(line))
    for note in found.notes_on(spec):
        console.print(f"note: {note}")


def _text(cell: published.PublishedCell | None) -> str:
    """A printed cell: `0.98 ± 0.01`, a dash for a printed dash, nothing for none."""
    if cell is None:
        return ""
    return "–" if cell.value is None else f"{cell.value}" + (f" ± {cell.std}" if cell.std else "")


def fits(table: RichTable) -> bool:
    """Whether the terminal shows a table without a break within a word."""
    endless = console.options.update(width=10**6)
    return console.measure(table, options=endless).minimum <= console.width


def published_tables(
    title: str, heading: str, texts: Mapping[str, Mapping[str, str]]
) -> list[RichTable]:
    """Texts by line and column as one table, or as several with a part of the columns each, where
    the terminal is too narrow.
    """
    lines = {name: line for name, line in texts.items() if any(line.values())}
    across = list(next(iter(lines.values()), {}))
    drawn = RichTable(title=title, title_justify="left")
    drawn.add_column(heading, overflow="fold")
    for name in across:
        widest = max(len(line[name]) for line in lines.values())
        drawn.add_column(name, overflow="fold", min_width=widest)
    for name, line in lines.items():
        drawn.add_row(name, *line.values())
    if len(across) < 2 or fits(drawn):
        return [drawn]
    half = len(across) // 2
    return [
        table
        for part in (across[:half], across[half:])
        for table in published_tables(
            title, heading, {name: {c: line[c] for c in part} for name, line in lines.items()}
        )
    ]


def _fetch_weights(file: WeightFile) -> None:
    console.print(f"downloading {file.url} to {escape(str(file.path))}", soft_wrap=True)
    try:
        file.fetch()
    except OSError as error:
        raise DataError(
            f"{file.name} could not be downloaded ({error}). Check the network, or get it by hand:"
            f" {file.url}"
        ) from error


@takes("plugins")
def show_data(
    request: Request,
    download: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="download a data set whose licence allows it, or weights; repeatable",
        ),
    ] = None,
) -> None:
    """Show which data sets and weights are present, and how to get the others."""
    from fedtables.datasets import catalogue
    from fedtables.datasets.digests import verified
    from fedtables.datasets.source import SYNTHETIC

    names = dict.fromkeys(download or [])
    for name in (name for name in names if name in FILES):
        _fetch_weights(FILES[name])
    wanted = [catalogue.source(name) for name in names if name not in FILES]
    for source in wanted:
        if source.download is None:
            raise DataError(f"{source.title} has no automatic download. {source.how_to_get}")
    for source in wanted:
        assert source.download is not None
        console.print(
            f"downloading {source.title} into {escape(str(catalogue.data_home()))};"
            f" licence: {escape(source.licence)}"
        )
        try:
            source.download(catalogue.data_home())
        except (OSError, RuntimeError) as error:
            raise DataError(
                f"{source.title} could not be downloaded ({error}). Check the network, or get it"
                f" by hand. {source.how_to_get}"
            ) from error
    data_table()
    unusable = 0
    for name, source in catalogue.sources().items():
        if source.kind != SYNTHETIC:
            try:
                if not catalogue.is_present(name):
                    console.print(
                        f"[yellow]absent[/] {name}: {escape(source.how_to_get)}", soft_wrap=True
                    )
                    continue
                resolved = catalogue.resolve(name)
                splits = catalogue.load(resolved.used)
                sizes = ", ".join(f"{split} {len(part):,}" for split, part in splits.items())
                known = verified(name)
                if resolved.digest in known:
                    word = f"[green]verified by SHA-256[/]: {escape(known[resolved.digest])}"
                elif known:
                    word = "[yellow]unverified[/]: its content has no known digest"
                else:
                    word = "unverified: no digest is known for it"
                if resolved.digest not in known:
                    word += f" (SHA-256 {resolved.digest})"
                console.print(f"{name}: {sizes}; {word}", soft_wrap=True)
            except DataError as error:
                unusable += 1
                console.print(f"[red]unusable[/] {name}: {escape(str(error))}", soft_wrap=True)
    for name, file in FILES.items():
        if file.path.exists():
            console.print(f"weights {name}: present")
        else:
            console.print(
                f"[yellow]absent[/] weights {name}: {escape(file.how_to_get)}", soft_wrap=True
            )
    if unusable:
        raise typer.Exit(1)
