"""What is written of folders of results: the page, each table as LaTeX and Markdown, pictures again
from records, and all of them in one Markdown page.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from fedtables.reports.measures.kind import draw_table
from fedtables.reports.pages.latex import latex_table
from fedtables.reports.pages.leaderboard import render_leaderboard
from fedtables.reports.pages.measured import covered
from fedtables.reports.pages.page import COPIED, render_page
from fedtables.reports.pages.result_files import PROFILES, Result, find_results
from fedtables.reports.tables.beside import with_leakage, with_private
from fedtables.reports.tables.markup import render
from fedtables.reports.tables.standings import EPSILON, Standings, standings_of
from fedtables.reports.tables.standings_files import as_csv, dumped, methods_csv
from fedtables.results.files import check_output, write_atomic

SKIPPED = "smoke"
"""The profile whose tables prove that they run, and show nothing."""
SCORECARD = "scorecard"
"""The measure of tables whose methods are ranked."""
LEAKAGE = "leakage"
"""The measure of tables of what is recovered of private images."""


def build_pages(results: Path, output: Path) -> list[Path]:
    """Write `output`/index.html and `output`/PROFILE/PAPER/TABLE.tex, with the table's other files
    beside it, and, where methods were run on equal terms, leaderboard.html, .json and .csv, and
    leaderboard-methods.csv; returns what was written.

    Raises ResultsError if `results` holds no table or a damaged one.
    """
    tables = find_results(results)
    found = standings_in(tables)
    texts: dict[Path, str | bytes] = {
        output / "index.html": render_page(tables, leaderboard=bool(found))
    }
    if found:
        texts[output / "leaderboard.html"] = render_leaderboard(found)
        texts[output / "leaderboard.json"] = dumped(found)
        texts[output / "leaderboard.csv"] = as_csv(found)
        texts[output / "leaderboard-methods.csv"] = methods_csv(found)
    for result in tables:
        place = output / result.profile / result.paper / result.name
        texts[place.with_name(f"{result.name}.tex")] = latex_table(
            result.sheet.layout, result.sheet.shown(result.lines)
        )
        for suffix in COPIED:
            if result.file(suffix).exists():
                copy = place.with_name(f"{result.name}.{suffix}")
                texts[copy] = result.file(suffix).read_bytes()
    read = [result.file(suffix) for result in tables for suffix in COPIED]
    for path in texts:
        check_output(path, read)
    for path, text in texts.items():
        write_atomic(path, text)
    return list(texts)


def standings_in(tables: Sequence[Result]) -> dict[str, Standings]:
    """By profile, the largest first, the standings of all tables of a scorecard, with what tables
    over epsilon and of leakage beside them say of the same methods. Numbers of two profiles are
    never ranked together.
    """
    published = [r for r in tables if r.as_published]
    scored = [r for r in published if r.sheet.measure == SCORECARD]
    standings = {}
    for profile in sorted({r.profile for r in scored}, key=PROFILES.index):
        cards = [r for r in scored if r.profile == profile]
        places = {(r.profile, r.paper) for r in cards}
        beside = [r for r in published if (r.profile, r.paper) in places]
        of_scored = [r.shown for r in cards]
        private = [r.shown for r in beside if r.sheet.layout.x_axis == EPSILON]
        leakage = [r.shown for r in beside if r.sheet.measure == LEAKAGE]
        found = with_private(standings_of(of_scored), of_scored, private)
        standings[profile] = with_leakage(found, of_scored, leakage)
    return standings


def league_of(results: Path) -> Standings | None:
    """The standings in a folder of results under the largest profile that has any, of runs that
    show more than that they run; None where there are none.
    """
    found = standings_in([r for r in find_results(results) if r.profile != SKIPPED])
    return next(iter(found.values()), None)


def shown_results(folders: Iterable[Path]) -> list[Result]:
    """The tables of some folders that have a picture. Raises ResultsError for one that has no
    table.
    """
    return [
        result
        for folder in folders
        for result in find_results(folder)
        if result.profile != SKIPPED and result.file("png").exists()
    ]


def gallery_page(results: Sequence[Result], others: Sequence[Path], page: Path) -> str:
    """The text of `page`: what is measured, the pictures of tables by paper, then `others`. Links
    are relative.
    """

    def link(path: Path) -> str:
        return Path(os.path.relpath(path.resolve(), page.resolve().parent)).as_posix()

    told = "\n".join(covered(results))
    return render("gallery.md.jinja", {"link": link}, covered=told, results=results, others=others)


def redraw_results(results: Path, output: Path | None = None, plain: bool = False) -> list[Path]:
    """Draw every table under `results`, into the same place or under `output`; returns the PNGs.

    In its place the Markdown is written again too. `plain` leaves out title and provenance. Raises
    ResultsError if there is no table, or a damaged one, and before a picture in `output` would take
    the place of a table's file.
    """
    tables = find_results(results)
    places = {}
    for result in tables:
        path = result.file("png")
        if output is not None:
            path = output / result.profile / result.paper / path.name
            for suffix in ("png", "svg", "pdf"):
                check_output(path.with_suffix(f".{suffix}"))
        places[path] = result
    drawn = []
    for path, result in places.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.stat().st_mtime_ns if path.exists() else 0
        table = result.shown
        table = replace(table, layout=table.layout.plain()) if plain else table
        draw_table(result.sheet.measure, table, path)
        # A table without numbers has no picture.
        drawn += [path] if path.exists() and path.stat().st_mtime_ns != before else []
        if output is None and result.sheet.command:
            write_atomic(result.file("md"), result.sheet.markdown(table))
    return drawn
