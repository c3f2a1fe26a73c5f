"""`pack` and `unpack`: finished cells and stages, for another machine to go on with."""

from pathlib import Path
from typing import Annotated

import typer

from fedtables.benchmarks.commands.app import console
from fedtables.benchmarks.tables.request import Request, takes
from fedtables.results.cached import in_use
from fedtables.results.command_line import NUMBER, number, path
from fedtables.results.files import cache_home, check_output
from fedtables.results.zips import MEGABYTES


@in_use()
def pack_cache(
    file: Annotated[
        Path, typer.Argument(parser=path, metavar="FILE", help="the file to write, a zip")
    ],
    megabytes: Annotated[
        float,
        typer.Option(
            parser=number(), metavar=NUMBER, help="largest size; the newest stages come first"
        ),
    ] = MEGABYTES,
) -> None:
    """Write the cache ($FEDTABLES_CACHE) to one file: finished cells, then stages as they fit.

    Run `unpack` on another machine with the same code and packages. The same command then goes on
    from there.
    """
    from fedtables.results.pack import write_pack

    check_output(file)
    packed = write_pack(cache_home(), file, megabytes)
    left = f"; {packed.left} stages did not fit into {megabytes:g} MB" if packed.left else ""
    console.print(
        f"wrote {file} with {packed.cells} finished cells and {packed.stages} stages{left}",
        soft_wrap=True,
        markup=False,
    )


@takes("plugins")
@in_use()
def unpack_cache(
    request: Request,
    file: Annotated[
        Path,
        typer.Argument(parser=path, metavar="FILE", help="a pack, or a table's .records.jsonl"),
    ],
    megabytes: Annotated[
        float,
        typer.Option(
            parser=number(), metavar=NUMBER, help="largest size that a pack may unpack to"
        ),
    ] = MEGABYTES,
) -> None:
    """Add the cells and stages of a pack, or the finished cells of a table, to the cache.

    `reproduce` then goes on from the other machine's numbers. Cells that the present code does not
    accept are counted, with the reason, and computed again.
    """
    from fedtables.benchmarks.running.standing import not_accepted
    from fedtables.results.pack import packed_records, read_pack, take_records

    home = cache_home()
    table = file.suffix == ".jsonl"
    found = take_records(file, home) if table else read_pack(file, home, megabytes)
    there = f"; {found.left} were already there" if found.left else ""
    console.print(
        f"{found.cells} finished cells and {found.stages} stages are in {cache_home()}{there}",
        soft_wrap=True,
        markup=False,
    )
    for reason, count in not_accepted(packed_records(file, cache_home())).items():
        console.print(f"not usable here: {count} cells: {reason}", soft_wrap=True, markup=False)
