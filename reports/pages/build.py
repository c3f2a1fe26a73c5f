"""Writes the page of a results folder, and each table as LaTeX and Markdown beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.pages.latex import latex_table
from reports.pages.leaderboard import render_leaderboard
from reports.pages.page import COPIED, render_page
from reports.pages.pictures import SKIPPED
from reports.pages.result_files import PROFILES, Result, find_results
from reports.tables.beside import with_leakage, with_private
from reports.tables.standings import EPSILON, Standings, standings_of
from reports.tables.standings_files import as_csv, dumped, methods_csv
from results.files import check_output, write_atomic

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
