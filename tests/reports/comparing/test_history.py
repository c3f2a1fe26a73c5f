"""A cell's history: over the commits of a small repository, and over files."""

from __future__ import annotations

import csv
import os
import subprocess
from pathlib import Path

import matplotlib.image
import pytest
from typer.testing import CliRunner

from reports.__main__ import app
from results.store import CSV_COLUMNS, write_csv

LINE = {
    "row": "fedavg",
    "column": "dataset=mnist alpha=1",
    "metric": "accuracy",
    "n": "1",
    "status": "ok",
    "bytes_up": "10",
    "bytes_down": "0",
    "profile": "cpu",
    "protocol": "paper",
    "data": "mnist",
    "origin": "real",
    "seeds": "0",
    "published": "0.95",
}


def line(**changes):
    return {**dict.fromkeys(CSV_COLUMNS, ""), **LINE, **changes}


VERSIONS = (
    [line(value="0.5", origin="surrogate")],
    [line(value="0.9")],
    [line(metric="", value="", status="failed: DivergedError: loss is nan")],
    [line(value="0.91", std="0.01", n="3", seeds="0 1 2"), line(row="feddf", value="0.8")],
    [line(row="feddf", value="0.8")],
)


def git(folder: Path, *arguments: str, day: int = 1) -> str:
    when = f"2026-01-{day:02}T00:00:00+00:00"
    names = {
        f"GIT_{who}_{what}": "tester"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    environment = {
        **os.environ,
        **names,
        "GIT_AUTHOR_DATE": when,
        "GIT_COMMITTER_DATE": when,
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    return subprocess.run(
        ["git", "-C", folder, *arguments],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.fixture
def table(tmp_path):
    """A table with the versions above, in a repository whose last commit does not touch it."""
    path = tmp_path / "repository" / "results" / "cpu" / "paper" / "table1.csv"
    path.parent.mkdir(parents=True)
    git(tmp_path, "init", "-q", "repository")
    for day, lines in enumerate(VERSIONS, 1):
        write_csv(path, lines)
        git(path.parent, "add", "-A")
        git(path.parent, "commit", "-q", "-m", f"version {day}", day=day)
    (path.parent / "other").write_text("x")
    git(path.parent, "add", "-A")
    git(path.parent, "commit", "-q", "-m", "no version", day=9)
    return path


def history(*arguments):
    return CliRunner().invoke(app, ["history", *map(str, arguments)], env={"COLUMNS": "200"})


def numbers(picture: Path) -> list[dict[str, str]]:
    with picture.with_suffix(".csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_cell_over_the_commits_of_its_table(table, tmp_path):
    picture = tmp_path / "out" / "fedavg.png"
    done = history(
        table, "--row", "fedavg", "--column", "alpha=1 dataset=mnist", "--output", picture
    )
    assert done.exit_code == 0, done.stderr
    rows = numbers(picture)
    assert list(rows[0]) == [
        "commit",
        "date",
        "value",
        "std",
        "n",
        "seeds",
        "profile",
        "protocol",
        "data",
        "origin",
        "status",
    ]
    assert [row["commit"] for row in rows] == git(
        table.parent, "log", "--reverse", "--format=%H", "--", table.name
    ).split()
    assert [row["date"][:10] for row in rows] == [f"2026-01-0{day}" for day in range(1, 6)]
    assert [row["value"] for row in rows] == ["0.5", "0.9", "", "0.91", ""]
    assert [row["origin"] for row in rows] == ["surrogate", "real", "real", "real", ""]
    assert [row["status"] for row in rows] == [
        "ok",
        "ok",
        "failed: DivergedError: loss is nan",
        "ok",
        "no such cell",
    ]
    assert (rows[3]["std"], rows[3]["n"], rows[3]["seeds"]) == ("0.01", "3", "0 1 2")
    assert matplotlib.image.imread(picture).std() > 0.05
    assert rows[3]["commit"][:7] in done.stdout
    assert "0.9100 ± 0.0100" in done.stdout
    assert "published: 0.9500" in done.stdout


def test_the_numbers_of_the_last_point_are_those_of_the_file_at_that_commit(table, tmp_path):
    history(
        table, "--row", "feddf", "--column", "dataset=mnist alpha=1", "--output", tmp_path / "h.png"
    )
    assert [row["value"] for row in numbers(tmp_path / "h.png")] == ["", "", "", "0.8", "0.8"]


def test_a_version_that_was_deleted_or_damaged_has_no_value_and_says_so(table, tmp_path):
    table.unlink()
    git(table.parent, "commit", "-q", "-am", "deleted", day=10)
    table.write_text("row,column\n1,2\n")
    git(table.parent, "add", "-A")
    git(table.parent, "commit", "-q", "-m", "damaged", day=11)
    table.unlink()  # the file need not be there
    assert (
        history(
            table,
            "--row",
            "feddf",
            "--column",
            "dataset=mnist alpha=1",
            "--output",
            tmp_path / "h.png",
        ).exit_code
        == 0
    )
    deleted, damaged = numbers(tmp_path / "h.png")[-2:]
    assert "does not exist" in deleted["status"]
    assert damaged["status"] == "is not a table of this suite: no column metric, value, std, n"


def test_several_files_are_put_in_a_row(tmp_path):
    paths = [tmp_path / name / "cpu" / "paper" / "table1.csv" for name in ("a", "b")]
    for path, lines in zip(paths, VERSIONS, strict=False):
        write_csv(path, lines)
    done = history(
        *paths, "--row", "fedavg", "--column", LINE["column"], "--output", tmp_path / "h.png"
    )
    assert done.exit_code == 0, done.stderr
    rows = numbers(tmp_path / "h.png")
    assert "date" not in rows[0]
    assert [(row["path"], row["value"]) for row in rows] == [
        (str(paths[0]), "0.5"),
        (str(paths[1]), "0.9"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--row", "fedavgs", "--column", LINE["column"]), "no row 'fedavgs'; did you mean fedavg"),
        (
            ("--row", "fedavg", "--column", "dataset=mnist alpha=2"),
            "did you mean dataset=mnist alpha=1",
        ),
        (
            ("--row", "fedavg", "--column", LINE["column"], "--metric", "acuracy"),
            "no metric 'acuracy'; did you mean accuracy",
        ),
    ],
)
def test_a_cell_that_no_version_has_is_named_with_what_is_near(table, tmp_path, arguments, message):
    done = history(table, *arguments, "--output", tmp_path / "h.png")
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "h.png").exists()


def test_a_cell_of_several_metrics_needs_a_choice(tmp_path):
    path = tmp_path / "paper" / "table1.csv"
    write_csv(path, [line(value="0.9"), line(metric="dice", value="0.7")])
    arguments = (
        path,
        path,
        "--row",
        "fedavg",
        "--column",
        LINE["column"],
        "--output",
        tmp_path / "h.png",
    )
    refused = history(*arguments)
    assert refused.exit_code == 2
    assert "choose one with --metric: accuracy, dice" in refused.stderr
    assert history(*arguments, "--metric", "dice").exit_code == 0
    assert [row["value"] for row in numbers(tmp_path / "h.png")] == ["0.7", "0.7"]


def test_a_cell_without_numbers_is_refused(tmp_path):
    path = tmp_path / "paper" / "table1.csv"
    for content, message in (
        (VERSIONS[2], "failed in every version: failed: Diverged"),
        ([line(value="0-4")], "no number in any"),
    ):
        write_csv(path, content)
        done = history(
            path,
            path,
            "--row",
            "fedavg",
            "--column",
            LINE["column"],
            "--output",
            tmp_path / "h.png",
        )
        assert done.exit_code == 2
        assert message in done.stderr


def test_files_outside_a_repository_or_never_committed_are_refused(table, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    lone = tmp_path / "lone.csv"
    write_csv(lone, VERSIONS[0])
    cell = ("--row", "fedavg", "--column", LINE["column"], "--output", tmp_path / "h.png")
    outside = history(lone, *cell)
    assert outside.exit_code == 2
    assert "not a git repository" in outside.stderr
    new = table.with_name("table2.csv")
    write_csv(new, VERSIONS[0])
    uncommitted = history(new, *cell)
    assert uncommitted.exit_code == 2
    assert (
        "has results/cpu/paper/table2.csv; commit results first, or give several files"
        in uncommitted.stderr
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    write_csv(empty / "t.csv", VERSIONS[0])
    assert history(empty / "t.csv", *cell).exit_code == 2
    assert history(lone, tmp_path / "nowhere.csv", *cell).exit_code == 2
