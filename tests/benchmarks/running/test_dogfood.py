"""The suite's own regression check finds a fault that somebody made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedtables.results.sourcecode import ROOT
from tests.checkouts import copy_checkout

TABLE = (
    "reproduce dlad/table2 --only dataset=mnist --only distribution=iid --only"
    " row=global-avg,global-dlad --jobs 1 --seeds 0,1"
)


def run(checkout, *words, **variables):
    """A command from a checkout, with variables of the environment."""
    command = [sys.executable, "-m", "fedtables", *map(str, words)]
    folder = str(checkout / "typings")
    environment = {**os.environ, "PYTHONPATH": folder, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)


def faulty_checkout(folder: Path) -> Path:
    """A copy of the code in which the distillation loss has the wrong sign."""
    copy_checkout(folder)
    path = folder / "federation" / "tasks" / "images.py"
    head, distils, tail = path.read_text().partition("def distillation_loss")
    right = "return F.cross_entropy("
    assert right in tail.partition("def ")[0]
    path.write_text(head + distils + tail.replace(right, right.replace("F.", "-F."), 1))
    return folder


@pytest.mark.slow  # a table over two seeds, and once more with the fault
def test_a_loss_of_the_wrong_sign_is_found_and_named_on_another_machine_too(tmp_path):
    """Other instructions are another machine: the noise that is expected there hides no fault."""
    trusted = run(ROOT, *TABLE.split(), "--results", tmp_path / "old")
    assert trusted.returncode == 0, trusted.stdout + trusted.stderr
    checkout = faulty_checkout(tmp_path / "checkout")
    other = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    run(checkout, *TABLE.split(), "--results", tmp_path / "new", **other)
    results = [tmp_path / name / "smoke" for name in ("old", "new")]
    done = run(ROOT, "reports", "compare", *results, "--exact")
    assert done.returncode == 1, done.stdout + done.stderr
    (lost,) = (line for line in done.stdout.splitlines() if "| dlad/table2 global-dlad " in line)
    assert "dataset=mnist distribution=iid accuracy | worse |" in lost
    assert "another machine" in lost
