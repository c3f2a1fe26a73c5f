"""The wheel: it holds what a run needs, hides nobody's module, and has the checkout's keys."""

import json
import os
import subprocess
import sys
import zipfile

import pytest

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.results.frame import read_records
from fedtables.results.sourcecode import ROOT
from tests.checkouts import copy_checkout
from tests.docs.adding import DATA
from tests.test_floors import FLOOR

TABLES = ("dlad/table2", "fedsa/table4", "fedad/table5", "fediod/table2")
"""Tables of four scenarios."""

TOLD = f"""
import json
import fedtables
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
cells = {{name: expand(*registry.find_table(name), Selection())[0] for name in {TABLES}}}
print(json.dumps({{
    "file": fedtables.__file__,
    "cells": {{name: [cell.key, cell.code] for name, cell in cells.items()}},
    "methods": sorted(registry.methods()),
}}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with what the wheel brings, as it is installed."""
    checkout = copy_checkout(tmp_path_factory.mktemp("checkout"))
    folder = tmp_path_factory.mktemp("site-packages")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "."]
    subprocess.run(build, cwd=checkout, check=True, capture_output=True)
    [wheel] = checkout.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture
def run(installed, tmp_path):
    """Runs Python with the installed package in an empty folder."""

    def python(*words):
        environment = {**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "200"}
        command = [sys.executable, *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return python


def test_a_checkout_and_an_installed_package_have_the_same_keys(installed, run):
    told = json.loads(run("-c", TOLD))
    assert told["file"].startswith(str(installed))
    cells = {name: expand(*registry.find_table(name), Selection())[0] for name in TABLES}
    assert told["cells"] == {name: [cell.key, cell.code] for name, cell in cells.items()}
    assert told["methods"] == sorted(registry.methods())


def test_nothing_but_the_package_is_on_the_import_path(installed):
    assert {path.name for path in installed.iterdir() if path.suffix != ".dist-info"} == {
        "fedtables"
    }


def test_all_that_lies_in_the_packages_folders_is_installed(installed):
    listed = subprocess.run(
        ["git", "ls-files", *FLOOR], cwd=ROOT, capture_output=True, text=True, check=False
    )
    files = [name for name in listed.stdout.splitlines() if not name.startswith("results/")]
    data = [ROOT / "results" / "published", ROOT / "results" / "embedded"]
    files += [str(path.relative_to(ROOT)) for folder in data for path in folder.rglob("*.*")]
    files += ["__init__.pyi", "py.typed"]
    assert len(files) > 300
    assert not [name for name in files if not (installed / "fedtables" / name).exists()]


@pytest.mark.slow
def test_a_plug_in_beside_an_installed_package_has_the_checkouts_keys(run, tmp_path):
    plugin = tmp_path / "my_data.py"
    plugin.write_text(DATA)
    words = "reproduce dlad/table1 --plugin my_data.py --set data.name=squares --only row=iid"
    run("-m", "fedtables", *words.split())
    [file] = tmp_path.rglob("*.records.jsonl")
    paper, table = registry.find_table("dlad/table1")
    with registry.used([plugin]):
        selection = Selection(only={"row": "iid"}, overrides=(("data.name", "squares"),))
        cells = expand(paper, table, selection)
    told = {(record.cell, record.code) for record in read_records(file)}
    assert told == {(cell.key, cell.code) for cell in cells}


def test_results_of_an_installed_package_go_to_the_working_folder(run, tmp_path):
    run("-m", "fedtables", "reproduce", "dlad/table1", "--jobs", "1")
    assert (tmp_path / "runs" / "smoke" / "dlad" / "table1.csv").exists()
