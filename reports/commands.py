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
        Path, _write("folder for index.html and the tables as LaTeX and Markdown", "PATH")
    ] = Path("report"),
) -> None:
    """One self-contained HTML page of every table in a folder of results; also LaTeX and Markdown
    of each.
    """
    from fedtables.reports.pages.build import build_pages

    written = build_pages(results, output)
    tables = sum(file.suffix == ".tex" for file in written)
    typer.echo(
        f"wrote {written[0]} with {tables} tables, and each as LaTeX and Markdown; open the page in"
        " any browser"
    )


@app.command("draw")
def draw_pictures(
    results: Folder = RUNS,
    output: Annotated[
        Path | None, _write("folder for the pictures; without it, beside the tables", "PATH")
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
    from fedtables.reports.pages.build import redraw_results

    drawn = redraw_results(results, output, plain)
    typer.echo(f"drew {len(drawn)} pictures" + (f" under {output}" if output else ""))


@app.command("gallery")
def write_gallery(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=path, metavar="PATH...", help="folders of results; results and its three-seeds"
        ),
    ] = None,
    output: Annotated[
        Path, _write("the Markdown page; pictures in images/ beside it are shown too")
    ] = Path("docs/results/gallery.md"),
) -> None:
    """One Markdown page with the pictures of all tables that are more than a smoke test."""
    from fedtables.reports.pages.build import gallery_page, shown_results

    folders = results or [COMMITTED, COMMITTED / "three-seeds"]
    others = sorted((output.parent / "images").glob("*.png"))
    check_output(output, folders)
    shown = shown_results(folders)
    write_atomic(output, gallery_page(shown, others, output))
    typer.echo(f"wrote {output} with {len(shown) + len(others)} pictures")


@app.command("compare")
def compare_sets(
    base: Annotated[Path, _read("a table's CSV, or a folder of results")],
    new: Annotated[Path, _read("the same, to be judged")],
    tolerance: Annotated[
        float, _number("loss that one seed may show, of a fraction; 0.02 is 2 in percent")
    ] = RULE.tolerance,
    effect: Annotated[
        float, _number("smallest significant loss that matters, with more seeds; scaled alike")
    ] = RULE.effect,
    alpha: Annotated[
        float, _number("level of the tests over seeds, all of them together", number(1e-9, 1))
    ] = RULE.alpha,
    time_ratio: Annotated[
        float,
        _number("largest ratio of a table's times, and of a benchmark's; 0 leaves them out"),
    ] = RULE.time_ratio,
    memory_ratio: Annotated[
        float, _number("largest ratio of a table's peak memory; 0 leaves it out")
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
        _write("what pytest wrote with --benchmark-json; goes with --new-speed", "JSON"),
    ] = None,
    new_speed: Annotated[Path | None, _write("the same, to be judged", "JSON")] = None,
    output: Annotated[Path | None, _write("write the Markdown to this file too")] = None,
    junit: Annotated[Path | None, _write("write JUnit XML: a test case per cell")] = None,
    html: Annotated[Path | None, _write("write one page with all cells")] = None,
    csv: Annotated[Path | None, _write("write all cells with verdict, values, p and why")] = None,
) -> None:
    """Compare two result sets; exit code 1 on a regression, 0 without, 2 for sets that cannot be
    compared.
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
