"""Every test has its own cache, and no data home but the one it makes."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import pytest

from tests.forking import run_forked

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing a test does is seen by another, or by the user's own runs."""
    monkeypatch.setenv("FEDTABLES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path / "data"))


def run_command(
    *arguments: str, timeout: int = 900, **environment: str
) -> subprocess.CompletedProcess[str]:
    """`python -m MODULE ARGUMENTS` in the checkout."""
    env = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", **environment}
    return run_forked(*arguments, timeout=timeout, env=env)


@pytest.fixture
def command():
    """Runs `python -m MODULE ARGUMENTS` with the test's cache and data home."""
    return run_command


@pytest.fixture(scope="module")
def module_command(tmp_path_factory):
    """The same with one cache for a whole file of tests, and no data home."""
    folder = tmp_path_factory.mktemp("home")
    return functools.partial(
        run_command, FEDTABLES_CACHE=str(folder / "cache"), FEDTABLES_DATA=str(folder / "data")
    )
