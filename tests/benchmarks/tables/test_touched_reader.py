"""What a change in the code that reads a data set alters: the code of the cells that use the set,
but neither the digest of the data nor anything that is drawn.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import json
from benchmarks.tables import registry
from benchmarks.tables.expansion import expand
from benchmarks.tables.selection import Selection
from benchmarks.scenarios.assembly import Run, build_federation
from benchmarks.scenarios.configuration import Configuration
from benchmarks.scenarios.scenario import DataSets
from federation.seeds import Seeds
from federation.cache import StageCache
from methods.fedsa import FedSA

only = {"row": "fedsa", "dataset": "cifar10", "setting": "homogeneous", "fraction": "0.10"}
[cell] = expand(*registry.find_table("fedsa/table1"), Selection(only=only))
federation = build_federation(
    Configuration.parse(dict(cell.config)),
    DataSets(cell.data, cell.public, cell.private),
    FedSA,
    Run(Seeds(), StageCache(None)),
)
probe = federation.probe().digest
[other] = expand(
    *registry.find_table("dlad/table2"),
    Selection(only={"row": "global-dlad", "dataset": "mnist", "distribution": "niid1"}),
)
print(json.dumps({
    "key": cell.key,
    "data": [[data.used, data.digest] for data in cell.sources],
    "clients": [client.digest for client in federation.clients],
    "draws": federation.streams.draw(99, 9, "selection", probe),
    "other code": other.code,
    "code": cell.code,
}))
"""


def outcome(checkout, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=checkout,
        env={**os.environ, "FEDTABLES_CACHE": str(tmp_path / "cache"), "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def checkout(tmp_path):
    """A copy of the code, in which the reader of generated sets has a constant more."""
    copy = tmp_path / "checkout"
    for package in ROOT.glob("*/__init__.py"):
        shutil.copytree(
            package.parent,
            copy / package.parent.name,
            ignore=shutil.ignore_patterns("__pycache__", "cpu", "reference", "three-seeds"),
        )
    with (copy / "datasets" / "sources" / "generated.py").open("a") as reader:
        reader.write("UNUSED = 1\n")
    return copy


@pytest.mark.slow
def test_a_touched_reader_changes_no_draw_and_no_data_but_the_code_of_its_cells(checkout, tmp_path):
    before, after = outcome(ROOT, tmp_path), outcome(checkout, tmp_path)
    assert {used for used, _ in before["data"]} == {"shapes", "shapes-100-shifted"}
    assert before.pop("code") != after.pop("code")
    assert before == after
