"""One cell of a table over the committed versions of its CSV, or over several files: numbers, table
and picture.
"""

from __future__ import annotations

import csv
import math
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from reports.tables.table import literal
from reports.tables.units import Scale, scale_of, unit_of
from results.files import ResultsError
from results.names import near
from results.published import parse_column
from results.record import OK
from results.store import CSV_COLUMNS, parse_csv, read_csv, records_of, write_csv

COLUMNS = list(CSV_COLUMNS)
OUTPUT_COLUMNS = ("value", "std", "n", "seeds", "profile", "protocol", "data", "origin", "status")
NAMED, LONGEST = 14, 24
"""How many names of versions fit below a picture, and how long one may be."""


@dataclass(frozen=True)
class Version:
    """A table at one point."""

    name: str
    """Commit, or the path of a file."""
    date: str
    """When it was committed, ISO 8601; empty for a file."""
    lines: pd.DataFrame
    """Text, as its CSV has it."""
    status: str = OK
    """Why it has no lines, if it has none."""


@dataclass(frozen=True)
class History:
    """One cell over versions of its table."""

    table: str
    """`paper/table`, by its path."""
    row: str
    column: str
    metric: str
    of_commits: bool
    points: pd.DataFrame
    """For each version its `name` and `date`, and the cell's line; its `status` says why it has no
    value, if it has none."""

    @property
    def scale(self) -> Scale:
        paper, _, printed = self.table.partition("/")
        values = [float(text) for text in self.points["value"] if is_finite(text)]
        return scale_of(self.metric, unit_of(paper, printed, self.metric, values))

    @property
    def published(self) -> float | None:
        """What the paper prints, by the newest version that has it."""
        values = [float(text) for text in self.points["published"] if is_finite(text)]
        return values[-1] if values else None


def committed(path: Path) -> tuple[str, list[Version]]:
    """The table's name and its versions, oldest first, in the history of the branch that is checked
    out.

    Raises ResultsError outside a git repository and for a file that was never committed.
    """
    folder = next(parent for parent in path.absolute().parents if parent.is_dir())
    top = Path(_git(folder, "rev-parse", "--show-toplevel").strip())
    inside = (
        path.absolute().parent.resolve().joinpath(path.name).relative_to(top.resolve()).as_posix()
    )
    listed = _git(
        top, "--literal-pathspecs", "log", "--reverse", "--format=%H%x09%cI", "--", inside
    ).split()
    if not listed:
        raise ResultsError(
            f"no commit of {top} has {inside}; commit results first, or give several files"
        )
    versions = []
    for commit, date in zip(listed[::2], listed[1::2], strict=True):
        try:
            lines = parse_csv(_git(top, "show", f"{commit}:{inside}"))
            versions.append(Version(commit, date, lines))
        # Deleted by that commit, or no table then.
        except (ResultsError, ValueError, csv.Error) as error:
            versions.append(Version(commit, date, pd.DataFrame(columns=COLUMNS), str(error)))
    return _name(path), versions


def files(paths: Sequence[Path]) -> tuple[str, list[Version]]:
    """The name of the last table, and the files as versions in the order given. Raises ResultsError
    for one that is no table.
    """
    return _name(paths[-1]), [Version(str(path), "", read_csv(path)) for path in paths]


def _name(path: Path) -> str:
    return f"{path.absolute().parent.name}/{path.stem.split('.')[0]}"


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
    except (OSError, UnicodeDecodeError) as error:
        raise ResultsError(f"git: {error}") from error
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise ResultsError(f"git in {folder}: {' '.join(said) or 'failed'}")
    return done.stdout


def cell_history(
    named: tuple[str, Sequence[Version]], row: str, column: str, metric: str = ""
) -> History:
    """The cell in every version. Raises ResultsError, with names that are near, if no version has
    it.
    """
    table, versions = named
    keys = parse_column(column)
    everything = pd.concat(
        [version.lines.assign(version=number) for number, version in enumerate(versions)],
        ignore_index=True,
    ).reindex(columns=["version", *COLUMNS])
    everything = everything.fillna({"status": OK}).fillna("")  # older versions have fewer columns
    of_row = everything[everything["row"] == row]
    column_keys = of_row["column"].map(parse_column)
    of_cell = of_row[column_keys.map(lambda pairs: pairs == keys).astype(bool)]
    metrics = [name for name in of_cell["metric"].unique() if name]
    if everything.empty:
        raise ResultsError(f"{table}: no version can be read; the last: {versions[-1].status}")
    if of_row.empty:
        raise ResultsError(f"{table} has no row {row!r}; {near(row, set(everything['row']))}")
    if of_cell.empty:
        raise ResultsError(
            f"{table}, row {row}: no column {column!r}; {near(column, set(of_row['column']))}"
        )
    if not metrics:
        raise ResultsError(
            f"{table}: the cell failed in every version: {of_cell['status'].iloc[-1]}"
        )
    if metric not in metrics and (metric or len(metrics) > 1):
        raise ResultsError(
            f"{table}, row {row}: "
            + (
                f"no metric {metric!r}; {near(metric, metrics)}"
                if metric
                else f"the cell has several metrics; choose one with --metric: {', '.join(metrics)}"
            )
        )
    metric = metric or metrics[0]
    measured = of_cell[of_cell["metric"] == metric]
    if not measured["value"].map(is_finite).any():
        raise ResultsError(f"{table}, row {row}: {metric} is no number in any version")
    # A failed cell has one line for all of its measurements, whose columns may have keys of their
    # own.
    covers = column_keys.map(lambda pairs: pairs.items() <= keys.items()).astype(bool)
    failed = of_row[covers & (of_row["metric"] == "")]
    points = pd.concat([measured.drop_duplicates("version"), failed[::-1]])
    points = points.drop_duplicates("version").set_index("version").reindex(range(len(versions)))
    missing = [v.status if v.lines.empty else "no such cell" for v in versions]
    points = points.assign(
        name=[version.name for version in versions],
        date=[version.date for version in versions],
        status=points["status"].fillna(pd.Series(missing)),
    ).fillna("")
    return History(table, row, column, metric, bool(versions[0].date), points)


def is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def write(history: History, picture: Path) -> None:
    """Write the picture, and the numbers beside it as CSV."""
    first = ("commit", "date") if history.of_commits else ("path",)
    named = history.points.rename(columns={"name": first[0]})
    write_csv(picture.with_suffix(".csv"), named, (*first, *OUTPUT_COLUMNS))
    _draw(history, picture)


def _label(history: History, name: str, date: str) -> str:
    """A version's name below the picture: commit and date, or what tells its path from the
    others'.
    """
    if history.of_commits:
        return f"{name[:7]}\n{date[:10]}"
    paths = [Path(path).parts for path in history.points["name"]]
    distinct = [part for part in Path(name).parts if not all(part in other for other in paths)]
    name = "/".join(distinct) or name
    return name if len(name) <= LONGEST else f"...{name[-LONGEST:]}"


def _kind(line: Mapping[str, str]) -> str:
    """What must be alike for two values to be of one line: profile, protocol and data."""
    data = line["data"] + (f" ({line['origin']})" if line["origin"] else "")
    return ", ".join(text for text in (line["profile"], line["protocol"], data) if text)


def _draw(history: History, path: Path) -> None:
    """Value ± std by version; versions of another profile, protocol or data are another line."""
    from reports.drawing.figures import PUBLISHED, Texts, finish, limits, page, styled
    from reports.drawing.palette import SERIES

    has_value = history.points["value"].map(is_finite)
    drawn = history.points[has_value]
    kinds = pd.Series([_kind(line) for line in records_of(drawn)], index=drawn.index)

    @styled
    def plot() -> None:
        figure, [[axis]] = page([[0.6 + 0.35 * len(history.points)]], 2.1)
        span = []
        for number, (kind, points) in enumerate(drawn.groupby(kinds, sort=False)):
            y = points["value"].astype(float).tolist()
            s = points["std"].replace("", "0").astype(float).tolist()
            look: dict[str, Any] = {"color": SERIES[number % len(SERIES)], "marker": "o"}
            x = points.index.tolist()
            axis.errorbar(x, y, yerr=s if any(s) else None, label=literal(kind), **look)
            span += [value + sign * a for value, a in zip(y, s, strict=True) for sign in (-1, 1)]
        if history.published is not None:
            axis.axhline(history.published, color="black", ls="--", lw=0.8, label=PUBLISHED)
            span.append(history.published)
        lost = history.points.index[~has_value].tolist()
        low, high = limits(span, history.scale.bounds)
        if lost:
            mark: dict[str, Any] = {"color": "black", "clip_on": False, "ls": "none"}
            axis.plot(lost, [low] * len(lost), "x", ms=4, label="no value", **mark)
        axis.set_ylim(low, high)
        axis.set_xlim(-0.5, len(history.points) - 0.5)
        shown = range(0, len(history.points), -(-len(history.points) // NAMED))
        upright = len(history.points) <= 8 and history.of_commits
        names = [literal(_label(history, *history.points.loc[x, ["name", "date"]])) for x in shown]
        side = "center" if upright else "right"
        axis.set_xticks(shown, names, rotation=0 if upright else 40, ha=side)
        axis.set_ylabel(history.scale.title)
        axis.grid(axis="y")
        title = f"{history.table}, {history.row}"
        finish(figure, [axis], Texts(literal(title), literal(history.column)), path)

    plot()


def show(history: History) -> None:
    """Print the numbers."""
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"{history.table} {history.row} {history.column} {history.metric}".replace("  ", " "),
        title_justify="left",
    )
    for heading in (
        *(("commit", "date") if history.of_commits else ("path",)),
        history.scale.title,
        "n",
        "seeds",
        "profile",
        "status",
    ):
        table.add_column(heading)
    for line in records_of(history.points):
        value = history.scale.text(line["value"]) + (
            f" ± {history.scale.text(line['std'])}" if line["std"] else ""
        )
        name = (line["name"][:7], line["date"][:10]) if history.of_commits else (line["name"],)
        table.add_row(*name, value, *(line[key] for key in ("n", "seeds", "profile", "status")))
    Console(highlight=False, markup=False, emoji=False).print(table)
    if history.published is not None:
        Console(highlight=False).print(f"published: {history.scale.text(str(history.published))}")
