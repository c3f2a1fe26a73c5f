"""`python -m reports`: the page of all tables and their pictures, the regression report, the
history of a cell, and computing results again.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from reports.comparing.compare import compare_results
from reports.comparing.rule import Rule
from results.files import ResultsError, write_atomic
from results.sourcecode import ROOT
from results.version import suite_version

app = typer.Typer(
    help="Reports on results.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
RULE = Rule()


@app.callback(invoke_without_command=True)
def reports(
    version_asked: Annotated[
        bool, typer.Option("--version", help="show the version of the suite")
    ] = False,
) -> None:
    """Reports on results."""
    if version_asked:
        typer.echo(suite_version())
        raise typer.Exit


@contextlib.contextmanager
def _unusable() -> Iterator[None]:
    """Exit code 2 and one message for input that cannot be used."""
    try:
        yield
    except ResultsError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error


@app.command("build")
def build_page(
    results: Annotated[
        Path, typer.Argument(help="folder of results, as given to --results of `reproduce`")
    ] = Path("results"),
    output: Annotated[
        Path, typer.Option(help="folder for index.html and the tables as LaTeX and Markdown")
    ] = Path("report"),
) -> None:
    """One self-contained HTML page of every table in a folder of results; also LaTeX and Markdown
    of each.
    """
    from reports.pages.build import build_pages

    with _unusable():
        written = build_pages(results, output)
    tables = sum(path.suffix == ".tex" for path in written)
    typer.echo(
        f"wrote {written[0]} with {tables} tables, and each as LaTeX and Markdown; open the page in"
        " any browser"
    )


@app.command("draw")
def draw_pictures(
    results: Annotated[
        Path, typer.Argument(help="folder of results, as given to --results of `reproduce`")
    ] = Path("results"),
    output: Annotated[
        Path | None, typer.Option(help="folder for the pictures; without it, beside the tables")
    ] = None,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain", help="without title and provenance, for a paper whose caption has both"
        ),
    ] = False,
) -> None:
    """Draw the pictures of a folder again, as PNG, SVG and PDF, and write its Markdown; nothing is
    computed.
    """
    from reports.pages.redraw import redraw_results

    with _unusable():
        drawn = redraw_results(results, output, plain)
    typer.echo(f"drew {len(drawn)} pictures" + (f" under {output}" if output else ""))


@app.command("gallery")
def write_gallery(
    results: Annotated[
        list[Path] | None, typer.Argument(help="folders of results; results and its three-seeds")
    ] = None,
    output: Annotated[
        Path, typer.Option(help="the Markdown page; pictures in images/ beside it are shown too")
    ] = Path("docs/gallery.md"),
) -> None:
    """One Markdown page with the pictures of all tables that are more than a smoke test."""
    from reports.pages.gallery import gallery_page, shown_results

    others = sorted((output.parent / "images").glob("*.png"))
    with _unusable():
        shown = shown_results(results or [Path("results"), Path("results/three-seeds")])
        write_atomic(output, gallery_page(shown, others, output))
    typer.echo(f"wrote {output} with {len(shown) + len(others)} pictures")


@app.command("compare")
def compare_sets(
    base: Annotated[Path, typer.Argument(help="a table's CSV, or a folder of results")],
    new: Annotated[Path, typer.Argument(help="the same, to be judged")],
    tolerance: Annotated[
        float,
        typer.Option(
            min=0, help="loss that one seed may show, of a fraction; 0.02 is 2 in percent"
        ),
    ] = RULE.tolerance,
    effect: Annotated[
        float,
        typer.Option(
            min=0, help="smallest significant loss that matters, with more seeds; scaled alike"
        ),
    ] = RULE.effect,
    alpha: Annotated[
        float,
        typer.Option(min=0, max=1, help="level of the tests over seeds, all of them together"),
    ] = RULE.alpha,
    time_ratio: Annotated[
        float,
        typer.Option(
            min=0, help="largest ratio of a table's times, and of a benchmark's; 0 leaves them out"
        ),
    ] = RULE.time_ratio,
    memory_ratio: Annotated[
        float, typer.Option(min=0, help="largest ratio of a table's peak memory; 0 leaves it out")
    ] = RULE.memory_ratio,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="values must be the same to the last digit where seeds, machine and packages are",
        ),
    ] = False,
    base_speed: Annotated[
        Path | None,
        typer.Option(
            metavar="JSON", help="what pytest wrote with --benchmark-json; goes with --new-speed"
        ),
    ] = None,
    new_speed: Annotated[
        Path | None, typer.Option(metavar="JSON", help="the same, to be judged")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write the Markdown to this file too")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write JUnit XML: a test case per cell")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write one page with all cells")
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="write all cells with verdict, values, p and why"),
    ] = None,
) -> None:
    """Compare two result sets; exit code 1 on a regression, 0 without, 2 for sets that cannot be
    compared.
    """
    from reports.comparing import summaries
    from reports.comparing.speed import compare_speed, read_speed
    from reports.tables.resultset import read_pair

    rule = Rule(tolerance, effect, alpha, time_ratio, memory_ratio, exact)
    with _unusable():
        if (base_speed is None) != (new_speed is None):
            raise ResultsError("--base-speed and --new-speed go together")
        differences = compare_results(*read_pair(base, new), rule)
        if base_speed is not None and new_speed is not None:
            differences += compare_speed(read_speed(base_speed), read_speed(new_speed), time_ratio)
        summary = summaries.markdown(differences, rule)
        typer.echo(summary)
        if output is not None:
            write_atomic(output, summary + "\n")
        if junit is not None:
            write_atomic(junit, summaries.junit(differences))
        if html is not None:
            write_atomic(html, summaries.html(differences, rule, str(base), str(new)))
        if csv is not None:
            write_atomic(csv, summaries.csv_text(differences))
    raise typer.Exit(1 if any(d.is_regression for d in differences) else 0)


@app.command("history")
def cell_history(
    tables: Annotated[
        list[Path],
        typer.Argument(
            help="a table's CSV in a git repository; or several of them, to be put in a row"
        ),
    ],
    row: Annotated[str, typer.Option(help="the cell's row, as the CSV has it")],
    column: Annotated[
        str,
        typer.Option(
            metavar='"KEY=VALUE ..."', help="the cell's column; empty for a table that has none"
        ),
    ] = "",
    metric: Annotated[str, typer.Option(help="needed where the cell has several")] = "",
    output: Annotated[
        Path, typer.Option(metavar="PNG", help="the picture; the numbers go beside it as CSV")
    ] = Path("history.png"),
) -> None:
    """Draw one cell over the committed versions of its table, or over several files; exit code 2 if
    there is no such cell.
    """
    from reports.comparing import history

    with _unusable():
        versions = history.committed(tables[0]) if len(tables) == 1 else history.files(tables)
        cell = history.cell_history(versions, row, column, metric)
        if output.suffix != ".png" or output.with_suffix(".csv").absolute() in [
            path.absolute() for path in tables
        ]:
            raise ResultsError(
                f"--output {output}: give a .png that does not stand beside one of the tables under"
                " its name"
            )
        history.write(cell, output)
    history.show(cell)
    for path in (output, output.with_suffix(".csv")):
        typer.echo(f"wrote {path}")


@app.command("verify")
def verify_results(
    results: Annotated[Path, typer.Argument(help="a table's CSV, or a folder of results")],
    cells: Annotated[
        int | None, typer.Option(min=1, help="how many cells to compute again")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="of the choice of cells")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="worker processes")] = None,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="a file with one of the rows; repeatable"),
    ] = None,
) -> None:
    """Compute a random sample of cells again; exit code 0 if all match, 1 if one does not, 2 if
    none could be checked.

    The same as `python -m benchmarks verify`.
    """
    chosen = {"--cells": cells, "--seed": seed, "--jobs": jobs}
    options = [
        text for name, value in chosen.items() if value is not None for text in (name, str(value))
    ]
    options += [text for path in plugin or [] for text in ("--plugin", str(path.resolve()))]
    # A process of its own, for what computes lies on a floor above this one.
    command = [sys.executable, "-m", "benchmarks", "verify", str(results.resolve()), *options]
    raise typer.Exit(subprocess.run(command, cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    sys.exit(app())
