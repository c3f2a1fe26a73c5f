"""`fedtables reports`: the page of all tables and their pictures, and the regression report."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fedtables.reports.comparing.rule import Rule
from fedtables.results.command_line import NUMBER, Commands, number, path
from fedtables.results.files import (
    COMMITTED,
    RUNS,
    ResultsError,
    check_apart,
    check_output,
    write_atomic,
)

app = typer.Typer(cls=Commands, no_args_is_help=True)
RULE = Rule()


def _read(help_text: str) -> Any:
    """An argument that is a path."""
    return typer.Argument(parser=path, metavar="PATH", help=help_text)


def _write(help_text: str, metavar: str = "FILE") -> Any:
    """An option that is a path."""
    return typer.Option(parser=path, metavar=metavar, help=help_text)


def _number(help_text: str, parser: Any = number()) -> Any:  # noqa: B008
    """An option that is a number."""
    return typer.Option(parser=parser, metavar=NUMBER, help=help_text)


Folder = Annotated[Path, _read("folder of results, as given to --results of `reproduce`")]


@app.command("build")
def build_page(
    results: Folder = RUNS,
    output: Annotated[
        Path, _write("folder for index.html and for the tables as LaTeX and Markdown", "PATH")
    ] = Path("report"),
) -> None:
    """Write one HTML page with every table of a folder, and each table as LaTeX and Markdown."""
    from fedtables.reports.pages.build import build_pages

    written = build_pages(results, output)
    tables = sum(file.suffix == ".tex" for file in written)
    typer.echo(
        f"wrote {written[0]} with {tables} tables, and each as LaTeX and Markdown. Open the page in"
        " any browser."
    )


@app.command("draw")
def draw_pictures(
    results: Folder = RUNS,
    output: Annotated[
        Path | None, _write("folder for the pictures; default: beside the tables", "PATH")
    ] = None,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain", help="draw without title and footnote, for a paper whose caption has both"
        ),
    ] = False,
) -> None:
    """Draw a folder's pictures again as PNG, SVG and PDF, and write its Markdown.

    No cell is computed.
    """
    from fedtables.reports.pages.build import redraw_results

    drawn = redraw_results(results, output, plain)
    typer.echo(f"drew {len(drawn)} pictures" + (f" under {output}" if output else ""))


@app.command("gallery")
def write_gallery(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=path,
            metavar="PATH...",
            help="folders of results; default: results and results/three-seeds",
        ),
    ] = None,
    output: Annotated[
        Path, _write("the Markdown page; pictures in images/ beside it are shown too")
    ] = Path("docs/results/gallery.md"),
) -> None:
    """Write a Markdown page with the pictures of all tables, but for those at smoke."""
    from fedtables.reports.pages.build import gallery_page, shown_results

    folders = results or [COMMITTED, COMMITTED / "three-seeds"]
    others = sorted((output.parent / "images").glob("*.png"))
    check_output(output, folders)
    shown = shown_results(folders)
    write_atomic(output, gallery_page(shown, others, output))
    typer.echo(f"wrote {output} with {len(shown) + len(others)} pictures")


@app.command("compare")
def compare_sets(
    base: Annotated[Path, _read("the base: a table's CSV, or a folder of results")],
    new: Annotated[Path, _read("the new state: the same kind")],
    tolerance: Annotated[
        float, _number("largest loss with one seed, as a fraction: 0.02 is 2 percentage points")
    ] = RULE.tolerance,
    effect: Annotated[
        float, _number("smallest significant loss that counts with several seeds, as a fraction")
    ] = RULE.effect,
    alpha: Annotated[
        float, _number("significance level of all tests over seeds together", number(1e-9, 1))
    ] = RULE.alpha,
    time_ratio: Annotated[
        float,
        _number("largest ratio of the times of a table or benchmark; 0: ignore time"),
    ] = RULE.time_ratio,
    memory_ratio: Annotated[
        float, _number("largest ratio of a table's peak memory; 0: ignore memory")
    ] = RULE.memory_ratio,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="demand equal values to the last digit where seeds, machine and packages agree",
        ),
    ] = False,
    base_speed: Annotated[
        Path | None,
        _write("output of pytest --benchmark-json; goes with --new-speed", "JSON"),
    ] = None,
    new_speed: Annotated[Path | None, _write("the same for the new state", "JSON")] = None,
    output: Annotated[Path | None, _write("write the Markdown report to this file too")] = None,
    junit: Annotated[Path | None, _write("write JUnit XML with a test case per cell")] = None,
    html: Annotated[Path | None, _write("write an HTML page with all cells")] = None,
    csv: Annotated[
        Path | None, _write("write a CSV of all cells: verdict, values, p and reason")
    ] = None,
) -> None:
    """Compare two sets of results cell by cell.

    Exit code 0: no regression. 1: a regression. 2: the sets cannot be compared.
    """
    from fedtables.reports.comparing.compare import compare_results
    from fedtables.reports.comparing.costs import compare_speed
    from fedtables.reports.comparing.summaries import report, write_differences
    from fedtables.reports.tables.resultset import read_pair

    rule = Rule(tolerance, effect, alpha, time_ratio, memory_ratio, exact)
    read = [file for file in (base, new, base_speed, new_speed) if file is not None]
    if (base_speed is None) != (new_speed is None):
        raise ResultsError("--base-speed and --new-speed go together")
    outputs = [file for file in (output, junit, html, csv) if file is not None]
    for file in outputs:
        check_output(file, read)
    check_apart(outputs)
    differences = compare_results(*read_pair(base, new), rule)
    if base_speed is not None and new_speed is not None:
        differences += compare_speed(base_speed, new_speed, time_ratio)
    summary = report("md", differences, rule)
    texts = {output: "md", junit: "xml", html: "html"}
    for place, kind in texts.items():
        if place is not None:
            write_atomic(place, report(kind, differences, rule, str(base), str(new)))
    if csv is not None:
        write_differences(csv, differences)
    typer.echo(summary, nl=False)
    raise typer.Exit(1 if any(d.is_regression for d in differences) else 0)
