"""`data`: what is present, and how to get the rest."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from benchmarks.commands.app import app, console
from benchmarks.commands.list import data_table
from results.files import DataError


@app.command("data")
def show_data(
    download: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="fetch a data set whose licence allows it; repeatable"),
    ] = None,
) -> None:
    """What data are present, verified, and how to get the rest."""
    from datasets import catalogue
    from datasets.digests import verified

    wanted = [catalogue.source(name) for name in dict.fromkeys(download or [])]
    for source in wanted:
        if source.download is None:
            raise DataError(f"{source.title} cannot be fetched by a program. {source.how_to_get}")
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
                f"{source.title} could not be downloaded ({error}). Check the network, or fetch it"
                f" by hand. {source.how_to_get}"
            ) from error
    data_table()
    unusable = 0
    for name, source in catalogue.sources().items():
        if source.embedded:
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
                    word = "[yellow]unverified[/]: its content is none that is known"
                else:
                    word = "unverified: no digest of its content is known"
                if resolved.digest not in known:
                    word += f" (SHA-256 {resolved.digest})"
                console.print(f"{name}: {sizes}; {word}", soft_wrap=True)
            except DataError as error:
                unusable += 1
                console.print(f"[red]unusable[/] {name}: {escape(str(error))}", soft_wrap=True)
    if unusable:
        raise typer.Exit(1)
