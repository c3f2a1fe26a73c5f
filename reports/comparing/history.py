"""One cell of a table over the committed versions of its CSV, or over several files: numbers, table
and picture.
"""

from __future__ import annotations

import csv
import io
import math
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.tables.units import Scale, scale_of, unit_of
from results.files import ResultsError
from results.names import near
from results.published import parse_column
from results.store import CSV_COLUMNS, read_csv, write_csv

OUTPUT_COLUMNS = ("value", "std", "n", "seeds", "profile", "protocol", "data", "origin", "status")
NAMED, LONGEST = 14, 24
"""How many names of versions fit below a picture, and how long one may be."""

Lines = Sequence[dict[str, str]]


@dataclass(frozen=True)
class Version:
    """A table at one point."""

    name: str
    """Commit, or the path of a file."""
    date: str
    """When it was committed, ISO 8601; empty for a file."""
    lines: Lines
    status: str = "ok"
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
    points: Sequence[tuple[Version, dict[str, str]]]
    """Each version with the cell's line, whose `status` says why it has no value, if it has
    none."""

    @property
    def scale(self) -> Scale:
        paper, _, printed = self.table.partition("/")
        values = [float(line["value"]) for _, line in self.points if _is_finite(line["value"])]
        return scale_of(self.metric, unit_of(paper, printed, self.metric, values))

    @property
    def published(self) -> float | None:
        """What the paper prints, by the newest version that has it."""
        found = [
            float(line["published"])
            for _, line in self.points
            if _is_finite(line.get("published", ""))
        ]
        return found[-1] if found else None


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
            versions.append(Version(commit, date, _parsed(_git(top, "show", f"{commit}:{inside}"))))
        except ResultsError as error:  # deleted by that commit, or no table then
            versions.append(Version(commit, date, (), str(error)))
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
        raise ResultsError(f"git in {folder}: {said[-1] if said else 'failed'}")
    return done.stdout


def _parsed(text: str) -> Lines:
    """The lines of a version, which may have fewer columns than today's."""
    reader = csv.DictReader(io.StringIO(text))
    missing = [column for column in CSV_COLUMNS[:6] if column not in (reader.fieldnames or ())]
    if missing:
        raise ResultsError(f"no table: no column {', '.join(missing)}")
    lines = list(reader)
    if any(None in line or None in line.values() for line in lines):
        raise ResultsError("damaged: a line has not as many fields as there are headings")
    return lines


def history(
    named: tuple[str, Sequence[Version]], row: str, column: str, metric: str = ""
) -> History:
    """The cell in every version. Raises ResultsError, with names that are near, if no version has
    it.
    """
    table, versions = named
    keys = parse_column(column)
    everything = [line for version in versions for line in version.lines]
    of_row = [line for line in everything if line["row"] == row]
    of_cell = [line for line in of_row if parse_column(line["column"]) == keys]
    metrics = list(dict.fromkeys(line["metric"] for line in of_cell if line["metric"]))
    if not everything:
        raise ResultsError(f"{table}: no version can be read; the last: {versions[-1].status}")
    if not of_row:
        raise ResultsError(
            f"{table} has no row {row!r}; {near(row, {line['row'] for line in everything})}"
        )
    if not of_cell:
        raise ResultsError(
            f"{table}, row {row}: no column {column!r};"
            f" {near(column, {line['column'] for line in of_row})}"
        )
    if not metrics:
        raise ResultsError(
            f"{table}: the cell failed in every version: {of_cell[-1].get('status', '')}"
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
    if not any(_is_finite(line["value"]) for line in of_cell if line["metric"] == metric):
        raise ResultsError(f"{table}, row {row}: {metric} is no number in any version")
    points = [(version, _line(version, row, keys, metric)) for version in versions]
    return History(table, row, column, metric, bool(versions[0].date), points)


def _line(version: Version, row: str, keys: dict[str, str], metric: str) -> dict[str, str]:
    """The cell's line in a version; where there is none, one with a status only."""
    missing = {"value": "", "status": "no such cell" if version.lines else version.status}
    for line in version.lines:
        own = parse_column(line["column"])
        if line["row"] == row and line["metric"] == metric and own == keys:
            return {"status": "ok", **line}
        # A failed cell has one line for all of its measurements, whose columns may have keys of
        # their own.
        if line["row"] == row and not line["metric"] and own.items() <= keys.items():
            missing = line
    return missing


def _is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def write(found: History, picture: Path) -> None:
    """Write the picture, and the numbers beside it as CSV."""
    first = ("commit", "date") if found.of_commits else ("path",)
    columns = (*first, *OUTPUT_COLUMNS)
    lines = [
        {
            "commit": version.name,
            "path": version.name,
            "date": version.date,
            **{name: line.get(name, "") for name in OUTPUT_COLUMNS},
        }
        for version, line in found.points
    ]
    write_csv(
        picture.with_suffix(".csv"),
        [{name: line[name] for name in columns} for line in lines],
        columns,
    )
    _draw(found, picture)


def _label(found: History, version: Version) -> str:
    """A version's name below the picture: commit and date, or what tells its path from the
    others'.
    """
    if found.of_commits:
        return f"{version.name[:7]}\n{version.date[:10]}"
    paths = [Path(v.name).parts for v, _ in found.points]
    own = [part for part in Path(version.name).parts if not all(part in other for other in paths)]
    name = "/".join(own) or version.name
    return name if len(name) <= LONGEST else f"...{name[-LONGEST:]}"


def _kind(line: dict[str, str]) -> str:
    """What must be alike for two values to be of one line: profile, protocol and data."""
    origin = line.get("origin", "")
    data = line.get("data", "") + (f" ({origin})" if origin else "")
    return ", ".join(
        text for text in (line.get("profile", ""), line.get("protocol", ""), data) if text
    )


def _draw(found: History, path: Path) -> None:
    """Value ± std by version; versions of another profile, protocol or data are another line."""
    from reports.drawing.plots import COLOURS, OWN, limits, plt, save

    drawn = [(x, line) for x, (_, line) in enumerate(found.points) if _is_finite(line["value"])]
    figure, axis = plt.subplots(figsize=(min(12, 3.6 + 0.6 * len(found.points)), 3.3))
    span = []
    kinds = list(dict.fromkeys(_kind(line) for _, line in drawn))
    for number, kind in enumerate(kinds):
        points = [
            (x, float(line["value"]), float(line.get("std") or 0))
            for x, line in drawn
            if _kind(line) == kind
        ]
        x, y, s = zip(*points, strict=True)
        look: dict[str, Any] = {
            "color": OWN if number == 0 else COLOURS[number % len(COLOURS)],
            "label": kind,
        }
        axis.errorbar(x, y, yerr=s if any(s) else None, marker="o", ms=4, lw=1.2, capsize=3, **look)
        span += [value + sign * around for _, value, around in points for sign in (-1, 1)]
    if found.published is not None:
        axis.axhline(found.published, color="black", ls="--", lw=0.9, label="published")
        span.append(found.published)
    lost = [x for x, (_, line) in enumerate(found.points) if not _is_finite(line["value"])]
    low, high = limits(span, found.scale.bounds)
    if lost:
        axis.plot(
            lost,
            [low] * len(lost),
            "x",
            color="black",
            ms=5,
            clip_on=False,
            ls="none",
            label="no value",
        )
    axis.set_ylim(low, high)
    axis.set_xlim(-0.5, len(found.points) - 0.5)
    shown = range(0, len(found.points), -(-len(found.points) // NAMED))
    upright = len(found.points) <= 8 and found.of_commits
    names = [_label(found, found.points[x][0]) for x in shown]
    axis.set_xticks(
        shown, names, fontsize=7, rotation=0 if upright else 40, ha="center" if upright else "right"
    )
    axis.tick_params(axis="y", labelsize=8)
    axis.set_ylabel(found.scale.title, fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_axisbelow(True)
    axis.grid(axis="y", alpha=0.3)
    axis.set_title(
        f"{found.table}, {found.row}" + (f"\n{found.column}" if found.column else ""), fontsize=9
    )
    figure.tight_layout()
    figure.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), frameon=False, fontsize=8, ncol=3)
    save(figure, path)


def show(found: History) -> None:
    """Print the numbers."""
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"{found.table} {found.row} {found.column} {found.metric}".replace("  ", " "),
        title_justify="left",
    )
    for heading in (
        *(("commit", "date") if found.of_commits else ("path",)),
        found.scale.title,
        "n",
        "seeds",
        "profile",
        "status",
    ):
        table.add_column(heading)
    for version, line in found.points:
        value = found.scale.text(line["value"]) + (
            f" ± {found.scale.text(line['std'])}" if line.get("std") else ""
        )
        name = (version.name[:7], version.date[:10]) if found.of_commits else (version.name,)
        table.add_row(
            *name, value, *(line.get(key, "") for key in ("n", "seeds", "profile", "status"))
        )
    Console(highlight=False, markup=False).print(table)
    if found.published is not None:
        Console(highlight=False).print(f"published: {found.scale.text(str(found.published))}")
