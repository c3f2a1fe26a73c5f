"""Cells on a real Ray cluster: two nodes, each a `ray start` of its own with its own stage folder,
one killed on the way.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
QUICK = ("--set", "local.epochs=3", "--set", "server.epochs=3")


class Nodes:
    """A head and a second node on this machine, with one processor each."""

    def __init__(self, folder: Path):
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.environment = {
            **os.environ,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": uuid.uuid4().hex,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_health_check_initial_delay_ms": "1000",
            "RAY_health_check_period_ms": "500",
            "RAY_health_check_timeout_ms": "2000",
            "RAY_health_check_failure_threshold": "3",
            "FEDTABLES_DATA": str(folder / "data"),
            "OMP_NUM_THREADS": "1",
            "NO_COLOR": "1",
            "COLUMNS": "200",
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *arguments: str) -> None:
        """`ray start` in a process group of its own, with the stage cache `name`."""
        environment = {**self.environment, "FEDTABLES_CACHE": str(self.folder / name)}
        ray = Path(sys.executable).with_name("ray")
        fixed = ("start", "--block", "--num-cpus=1", "--object-store-memory=100000000")
        command = [str(ray), *fixed, *arguments]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, name: str) -> None:
        """End a node as a power cut would: `ray start` and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.processes[name].pid, signal.SIGKILL)
        self.processes[name].wait(30)

    def wait_for(self, count: int) -> None:
        """Until the cluster has `count` nodes."""
        script = (
            f"import ray; ray.init('{self.address}', log_to_driver=False); print('alive',"
            " sum(n['Alive'] for n in ray.nodes()))"
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            words = [sys.executable, "-c", script]
            told = subprocess.run(words, env=self.environment, capture_output=True, text=True)
            if f"alive {count}" in told.stdout:
                return
            time.sleep(0.5)
        logs = "".join(path.read_text()[-2000:] for path in self.folder.glob("*.log"))
        raise AssertionError(f"no cluster of {count} nodes: {told.stderr[-2000:]}{logs}")

    def command(self, run: str, *arguments: str) -> subprocess.Popen[str]:
        """`reproduce` of columns of DLAD's Table II, with cache and results of its own under the
        name `run`.
        """
        results = str(self.folder / f"{run}-results")
        fixed = ("reproduce", "dlad/table2", "--only", "dataset=mnist", "--results", results)
        environment = {**self.environment, "FEDTABLES_CACHE": str(self.folder / run)}
        return subprocess.Popen(
            [sys.executable, "-m", "fedtables", *fixed, *arguments],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda: signal.signal(
                signal.SIGINT, signal.SIG_DFL
            ),  # a job in the background begins with it ignored
        )

    def file(self, run: str, suffix: str) -> Path:
        """`suffix` is csv, log or records.jsonl."""
        folder = self.folder / f"{run}-results" / "smoke" / "dlad"
        [found] = [path for path in folder.glob(f"table2*.{suffix}") if "claims" not in path.name]
        return found

    def stages(self, name: str) -> set[str]:
        """Stages in a cache: kind and key."""
        home = self.folder / name / "stages"
        return {str(path.relative_to(home).with_suffix("")) for path in home.rglob("*.json")}


def finished(process: subprocess.Popen[str]) -> str:
    """What a command printed, when it has succeeded."""
    told, _ = process.communicate(timeout=180)
    assert process.returncode == 0, told
    return told


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    # The paths of Ray's sockets have to be short.
    with tempfile.TemporaryDirectory(
        prefix="r", dir="/tmp", ignore_cleanup_errors=True
    ) as temporary:
        both = Nodes(tmp_path_factory.mktemp("ray"))
        port = both.address.partition(":")[2]
        try:
            words = (f"--port={port}", "--include-dashboard=false", f"--temp-dir={temporary}")
            both.start("head", "--head", *words)
            both.wait_for(1)
            both.start("second", f"--address={both.address}")
            both.wait_for(2)
            yield both
        finally:
            for name in both.processes:
                both.kill(name)


def test_nodes_with_caches_of_their_own_give_the_local_numbers(nodes):
    columns = ("--only", "distribution=niid1", *QUICK)
    finished(nodes.command("local", *columns, "--jobs", "2"))
    finished(nodes.command("spread", *columns, "--ray", nodes.address))
    assert nodes.file("spread", "csv").read_bytes() == nodes.file("local", "csv").read_bytes()
    by_node = [nodes.stages(name) for name in ("head", "second")]
    assert all(by_node)
    assert by_node[0] | by_node[1] >= nodes.stages("local")


@pytest.mark.parametrize(
    ("address", "arguments", "message"),
    [
        ("", ("--num-cpus", "64"), "a cell takes 64 processors and 0 GPUs, and no node has them"),
        ("127.0.0.1:1", (), "no Ray cluster can be used there"),
    ],
    ids=["too much", "nobody there"],
)
def test_a_cluster_that_cannot_run_the_cells_is_refused_at_once(nodes, address, arguments, message):
    refused = nodes.command("refused", "--ray", address or nodes.address, *arguments)
    told, _ = refused.communicate(timeout=60)
    assert refused.returncode == 2
    assert message in told


def test_an_interrupted_command_keeps_what_is_finished_and_leaves_the_cluster_alone(nodes):
    running = nodes.command(
        "interrupted", "--only", "distribution=niid1", "--ray", nodes.address, "--fresh"
    )
    assert running.stdout is not None
    while "done" not in (line := running.stdout.readline()):
        assert line
    running.send_signal(signal.SIGINT)
    told, _ = running.communicate(timeout=60)
    assert running.returncode == 130, told
    assert "interrupted. Finished cells and stages are kept" in told
    assert 0 < len(list((nodes.folder / "interrupted" / "cells").rglob("*.json"))) < 4
    nodes.wait_for(2)


def test_a_table_is_completed_when_a_node_is_killed_in_the_middle_and_equals_the_local_one(nodes):
    columns = ("--only", "distribution=niid2,niid3", *QUICK)
    finished(nodes.command("whole", *columns, "--jobs", "2"))
    before = nodes.stages("second")
    running = nodes.command("killed", *columns, "--ray", nodes.address)
    deadline = time.monotonic() + 60
    while nodes.stages("second") == before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert running.poll() is None
    nodes.kill("second")
    told = finished(running)
    assert f"8 cells, 0 finished before, 8 to run, by Ray ({nodes.address}) on cpu" in told
    assert nodes.file("killed", "log").read_text().count("worker lost, run again") >= 1
    assert nodes.file("killed", "csv").read_bytes() == nodes.file("whole", "csv").read_bytes()
