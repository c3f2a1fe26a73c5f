"""`python -m reports compare BASE NEW`: the regression report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from reports.compare import compare, markdown_summary, read_set
from results.files import ResultsError, write_atomic

app = typer.Typer(help="Reports on results.", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def reports() -> None:
    """Reports on results."""


@app.command("build")
def build_page(
    results: Annotated[Path, typer.Argument(help="folder of results, as given to --results of `reproduce`")] = Path("results"),
    output: Annotated[Path, typer.Option(help="folder for index.html and the tables as LaTeX and Markdown")] = Path("report"),
) -> None:
    """One self-contained HTML page of every table in a folder of results; also LaTeX and Markdown of each."""
    from reports.build import build

    try:
        written = build(results, output)
    except ResultsError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    typer.echo(
        f"wrote {written[0]} and {len(written) - 1} tables as LaTeX or Markdown under {output}; open the page in any browser"
    )


@app.command("compare")
def compare_sets(
    base: Annotated[Path, typer.Argument(help="a table's CSV, or a folder of results")],
    new: Annotated[Path, typer.Argument(help="the same, to be judged")],
    tolerance: Annotated[float, typer.Option(help="loss that one seed may show, of a fraction; 0.02 is 2 in percent")] = 0.02,
    effect: Annotated[float, typer.Option(help="smallest significant loss that matters, with more seeds; scaled alike")] = 0.005,
    output: Annotated[Path | None, typer.Option(help="write the Markdown to this file too")] = None,
) -> None:
    """Compare two result sets; exit code 1 on a regression, 0 without, 2 for sets that cannot be compared."""
    try:
        differences = compare(read_set(base), read_set(new), tolerance, effect)
        summary = markdown_summary(differences)
        if output is not None:
            write_atomic(output, summary + "\n")
    except ResultsError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    typer.echo(summary)
    raise typer.Exit(1 if any(d.is_regression for d in differences) else 0)


if __name__ == "__main__":
    sys.exit(app())
