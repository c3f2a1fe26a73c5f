"""Every test has its own cache, and no data home but the one it makes."""

import functools
import gc
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from tests.forking import run_forked

torch.set_num_threads(int(os.environ.setdefault("OMP_NUM_THREADS", "1")))

MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 * 2**30:
    # Thousands of small files: some disks take milliseconds to remove one.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing a test does is seen by another, or by the user's own runs."""
    monkeypatch.setenv("FEDTABLES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path / "data"))


@pytest.fixture
def every_content_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any content counts as one whose digest is known, where a test asks which set is taken."""

    class Everything(dict[str, str]):
        def __contains__(self, key: object) -> bool:
            return True

    monkeypatch.setattr("fedtables.datasets.catalogue.verified", lambda name: Everything())


def run_command(
    *arguments: str, timeout: int = 900, **environment: str
) -> subprocess.CompletedProcess[str]:
    """`fedtables ARGUMENTS` in the checkout."""
    env = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", **environment}
    return run_forked("fedtables", *arguments, timeout=timeout, env=env)


@pytest.fixture
def command():
    """Runs `fedtables ARGUMENTS` with the test's cache and data home."""
    return run_command


@pytest.fixture(scope="module")
def module_command(tmp_path_factory):
    """The same with one cache for a whole file of tests, and no data home."""
    folder = tmp_path_factory.mktemp("home")
    return functools.partial(
        run_command, FEDTABLES_CACHE=str(folder / "cache"), FEDTABLES_DATA=str(folder / "data")
    )


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory) -> dict[str, str]:
    """The environment's cache and data home of all tests, of all workers, that do not count what
    is computed.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return {
        "FEDTABLES_CACHE": str(folder / "shared-cache"),
        "FEDTABLES_DATA": str(folder / "shared-data"),
    }


@pytest.fixture(scope="session")
def shared_command(shared_home):
    """`fedtables ARGUMENTS` with the cache of all tests: what one of them has computed, none
    computes again.
    """
    return functools.partial(run_command, **shared_home)


def pytest_collection_finish() -> None:
    """Thousands of tests and a framework live to the end: no collection need look at them again."""
    gc.freeze()
