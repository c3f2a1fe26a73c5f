"""The suite's own regression check: it is quiet about itself, and finds a fault that somebody
made.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from results.sourcecode import ROOT
from results.store import TableFiles, summarise, write_csv
from tests.forking import run_forked

FLOORS = (
    "baselines",
    "benchmarks",
    "datasets",
    "federation",
    "methods",
    "metrics",
    "models",
    "privacy",
    "reports",
    "results",
)
TABLE = (
    "dlad/table2",
    "--only",
    "dataset=mnist",
    "--only",
    "distribution=iid",
    "--only",
    "row=global-avg,global-dlad",
    "--jobs",
    "1",
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def run(cache):
    """Runs a command from a checkout, with variables of the environment."""

    def running(checkout, *words, **variables):
        environment = {
            **os.environ,
            "FEDTABLES_CACHE": str(cache),
            "OMP_NUM_THREADS": "1",
            **variables,
        }
        if checkout == ROOT:
            return run_forked(*map(str, words), timeout=900, env=environment)
        command = [sys.executable, "-m", *map(str, words)]
        return subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, text=True
        )

    return running


@pytest.fixture(scope="module")
def trusted(run, tmp_path_factory) -> Path:
    """The results of this checkout."""
    folder = tmp_path_factory.mktemp("trusted")
    done = run(ROOT, "benchmarks", "reproduce", *TABLE, "--seeds", "0,1", "--results", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "smoke"


def faulty_checkout(folder: Path) -> Path:
    """A copy of the code in which the distillation loss has the wrong sign."""
    for floor in FLOORS:
        ignored = shutil.ignore_patterns(
            "__pycache__", "cpu", "smoke", "attack", "reference", "partitions"
        )
        shutil.copytree(ROOT / floor, folder / floor, ignore=ignored)
    path = folder / "federation" / "tasks" / "classification.py"
    before, task, after = path.read_text().partition("class Classification")
    head, distils, tail = after.partition("def distillation_loss")
    assert task
    assert distils
    assert "return F.cross_entropy(" in tail.partition("def ")[0]
    path.write_text(
        before
        + task
        + head
        + distils
        + tail.replace("return F.cross_entropy(", "return -F.cross_entropy(", 1)
    )
    return folder


@pytest.mark.slow  # `tox run -e regression`, which .ci/run has, says the same of more tables
def test_the_same_code_passes_with_a_cache_of_its_own(run, trusted, tmp_path):
    again = run(
        ROOT, "benchmarks", "reproduce", *TABLE, "--seeds", "0,1", "--fresh", "--results", tmp_path
    )
    assert again.returncode == 0, again.stdout + again.stderr
    assert (tmp_path / "smoke/dlad/table2.csv").read_bytes() == (
        trusted / "dlad/table2.csv"
    ).read_bytes()
    assert (
        run(ROOT, "reports", "compare", trusted, tmp_path / "smoke", "--time-ratio", "0").returncode
        == 0
    )


@pytest.mark.slow  # a table over two seeds, and once more with the fault
def test_a_loss_of_the_wrong_sign_is_found_and_named_on_another_machine_too(run, trusted, tmp_path):
    """Other instructions are another machine: the noise that is expected there hides no fault."""
    checkout = faulty_checkout(tmp_path / "checkout")
    other = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    words = ("benchmarks", "reproduce", *TABLE, "--seeds", "0,1", "--results", tmp_path / "new")
    run(checkout, *words, **other)
    done = run(ROOT, "reports", "compare", trusted, tmp_path / "new" / "smoke", "--exact")
    assert done.returncode == 1, done.stdout + done.stderr
    (lost,) = (line for line in done.stdout.splitlines() if "| dlad/table2 global-dlad " in line)
    assert "dataset=mnist distribution=iid accuracy | worse |" in lost
    assert "another machine" in lost


def changed_by(trusted: Path, folder: Path, amount: float) -> tuple[Path, TableFiles]:
    """A copy of the reference with another value of one cell, in its records."""
    shutil.copytree(trusted, folder / "smoke")
    files = TableFiles(folder, "smoke", "dlad/table2")
    records = list(files.listed_cells().values())
    place = next(n for n, record in enumerate(records) if record.row == "global-avg")
    (measured,) = records[place].measurements
    records[place] = replace(
        records[place], measurements=(replace(measured, value=measured.value + amount),)
    )
    files.write_records(records)
    return folder / "smoke", files


def test_a_changed_reference_value_is_found_and_named(run, tmp_path):
    reference = tmp_path / "reference" / "smoke"
    shutil.copytree(ROOT / "results" / "reference" / "smoke" / "dlad", reference / "dlad")
    changed, files = changed_by(reference, tmp_path, 1e-6)
    edited = run(ROOT, "reports", "compare", changed, reference)
    assert edited.returncode == 2
    assert (
        "its records differ in global-avg dataset=mnist distribution=niid1 accuracy"
        in edited.stderr
    )
    write_csv(files.path("csv"), summarise(list(files.listed_cells().values())))
    moved = run(ROOT, "reports", "compare", changed, reference, "--exact")
    assert moved.returncode == 1, moved.stdout + moved.stderr
    assert "global-avg dataset=mnist distribution=niid1 accuracy" in moved.stdout
