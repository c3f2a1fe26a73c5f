"""What the command line says of itself: version, completion, and how long smoke takes."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fedtables.results.sourcecode import ROOT
from tests.forking import run_forked


def test_version_is_that_of_the_project(command):
    done = command("--version")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (done.returncode, done.stdout) == (0, f"fedtables {project['version']}\n")


def test_the_former_name_works_in_a_checkout_and_says_the_new_one():
    done = run_forked("benchmarks", "--version", timeout=60, env=os.environ)
    assert (done.returncode, done.stdout.split()[0]) == (0, "fedtables")
    assert "is now `fedtables`" in done.stderr


@pytest.mark.parametrize("words", [(), ("reports",)])
def test_without_a_command_there_is_help(command, words):
    done = command(*words)
    assert done.returncode == 2
    assert "Usage:" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("typed", "completions"),
    [
        ("repr", "reproduce"),
        ("reproduce dlad/ta", "dlad/table1 dlad/table2 dlad/table3 dlad/table4"),
        ("plan dlad --profile pap", "paper"),
    ],
)
def test_a_shell_completes_what_is_typed(typed, completions):
    words = ["fedtables", *typed.split()]
    asked = {"_FEDTABLES_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words)}
    done = subprocess.run(
        [Path(sys.executable).with_name("fedtables")],
        env={**os.environ, **asked, "COMP_CWORD": str(len(words) - 1)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == completions.split()


def test_help_says_how_long_smoke_takes_as_the_records_have_it(command):
    said = " ".join(command("reproduce", "--help").stdout.split())
    assert "about four seconds of one core, the longest half a minute" in said
    seconds = [
        json.loads(line)["seconds"]
        for path in (ROOT / "results/reference/smoke").rglob("*.records.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert sum(seconds) / len(seconds) == pytest.approx(4, abs=1.5)
    assert max(seconds) == pytest.approx(30, abs=15)


@pytest.mark.parametrize(
    ("columns", "arguments", "width"),
    [("0", ("list",), 100), ("wide", ("list",), 100), ("9" * 30, ("reports", "--help"), 40)],
)
def test_columns_that_are_no_width_of_a_terminal_are_not_used(columns, arguments, width):
    done = subprocess.run(
        [sys.executable, "-m", "fedtables", *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": columns},
        capture_output=True,
        text=True,
        check=True,
    )
    longest = max(map(len, done.stdout.splitlines()))
    assert width < longest <= 200
