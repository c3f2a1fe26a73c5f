"""What Ray is told, and what a node refuses; no Ray is needed for that."""

import re
import socket
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fedtables.benchmarks.running.events import Context, Event
from fedtables.benchmarks.running.machine import Deadline
from fedtables.benchmarks.running.ray_executor import (
    Cluster,
    _reason,
    _run_tasks,
    cluster_of,
    reach,
    refusal,
    run_ray,
)
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.request import Request
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import SpecError

# -- options --


def test_a_cell_has_as_many_processors_as_threads_and_on_cuda_a_gpu():
    three = Request(ray="auto", threads=3)
    assert cluster_of(three) == Cluster("auto", 3, 0)
    two = Request(ray="auto", num_cpus=2, device="cuda")
    assert cluster_of(two) == Cluster("auto", 2, 1)
    quarter = Request(ray="local", num_gpus=0.25, device="cuda")
    assert cluster_of(quarter) == Cluster("local", 1, 0.25)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ray": "ray://head:10001"}, "a cluster that this machine is a node of"),
        ({"device": "cuda:1"}, "use --device cuda"),
        ({"num_gpus": 0.5}, "--num-gpus 0.5: .* and none elsewhere"),
        ({"num_gpus": 0.0, "device": "cuda"}, "--num-gpus 0: a cell takes a part of one"),
        (
            {"num_gpus": 1.5, "device": "cuda"},
            "--num-gpus 1.5: a cell takes a part of one, or a whole number",
        ),
        ({"ray": "[/red]"}, "it is local, auto, or host:port"),
        ({"ray": "head:x"}, "it is local, auto, or host:port"),
    ],
)
def test_options_that_fit_no_cluster_are_refused(options, message):
    with pytest.raises(SpecError, match=message):
        cluster_of(Request(**{"ray": "auto", **options}))


@pytest.mark.parametrize("port", ["closed", 99999])
def test_an_address_where_nobody_listens_is_refused(port):
    if port == "closed":
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
    with pytest.raises(SpecError, match="no Ray cluster can be used there"):
        reach(Cluster(f"127.0.0.1:{port}", 1, 0))


@pytest.mark.parametrize(
    ("says", "message"), [(b"", "timed out"), (b"HTTP/1.1 400 Bad Request", "not speak gRPC")]
)
def test_an_address_where_something_else_listens_is_refused(monkeypatch, says, message):
    monkeypatch.setattr("fedtables.benchmarks.running.ray_executor.PATIENCE", 0.2)
    connections = []

    def answer():
        connections.append(listener.accept()[0])
        connections[0].send(says)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer).start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(SpecError, match=message):
            reach(Cluster(address, 1, 0))
    connections[0].close()


class TaskError(Exception):
    """As Ray's: the text is a traceback."""


def test_the_reason_of_a_failed_task_is_what_it_raised():
    error = TaskError("ray::_work() (pid=1)\n  File 'x.py', line 1. In f\nValueError: no such row")
    assert _reason(error, lost=False) == "TaskError: ValueError: no such row"
    assert _reason(TaskError("The node died. See logs.\nMore"), lost=True) == (
        "TaskError: The node died"
    )


def test_options_of_ray_need_ray(command):
    done = command("reproduce", "dlad/table1", "--num-cpus", "2")
    assert done.returncode == 2
    assert "add --ray local" in done.stderr


def test_without_ray_the_message_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        SpecError, match="--ray needs Ray, which is not installed: python -m pip install"
    ):
        next(run_ray([], Context(str(tmp_path)), Cluster("local", 1, 0)))


class OneTask:
    """Ray, as far as a cell is given to it: what was asked for, and by which function."""

    def __init__(self):
        names = (
            *("RayError", "WorkerCrashedError", "NodeDiedError", "LocalRayletDiedError"),
            *("OutOfMemoryError", "ObjectLostError"),
        )
        self.exceptions = SimpleNamespace(**{name: type(name, (Exception,), {}) for name in names})
        self.asked = []

    def remote(self, **options):
        def task(function):
            def begin(*arguments):
                self.asked.append((function.__name__, options))
                return len(self.asked)

            return SimpleNamespace(remote=begin)

        return task

    def wait(self, running, timeout):
        return running[:1], running[1:]

    def get(self, reference):
        return [Event("done", 0)]


@pytest.mark.parametrize(("gpus", "own"), [(0, False), (1, True), (0.25, True)])
def test_a_cell_on_a_gpu_has_a_process_that_no_other_cell_gets(gpus, own, tmp_path):
    paper, table = registry.find_table("dlad/table2")
    cells, ray = expand(paper, table, Selection())[:1], OneTask()
    context, cluster = Context(str(tmp_path)), Cluster("local", 1, gpus)
    assert [*_run_tasks(ray, cells, context, cluster, Deadline(), [0], 1)] == [Event("done", 0)]
    [(function, options)] = ray.asked
    assert (function == "_in_own_process") == (options.get("max_calls") == 1) == own
    assert options["num_gpus"] == gpus


# -- refusals --

PLUGIN = """
from dataclasses import dataclass
from fedtables.federation.method import Method

@dataclass(frozen=True)
class Own(Method):
    rounds: int = ROUNDS
    def fit(self, federation):
        return federation.networks.initial()
"""


@pytest.fixture
def cell(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(PLUGIN.replace("ROUNDS", "1"))
    only = {"row": "own", "dataset": "cifar10", "alpha": "1"}
    with registry.used([path]):
        [found] = expand(*registry.find_table("fediod/table1"), Selection(add=("own",), only=only))
    return found


def test_a_node_like_the_commands_refuses_nothing(cell):
    assert refusal(cell, cell.code, cell.libraries) == ""


@pytest.mark.parametrize(
    ("changes", "code", "packages", "message"),
    [
        ({}, "", {"torch": "1.0"}, "has torch .* instead of 1.0"),
        ({}, "0" * 64, {}, "a plug-in file must be the same"),
        ({"plugins": ("nowhere.py",)}, "0" * 64, {}, "cannot run it: --plugin"),
        ({"public": {"digest": "0" * 64}}, "", {}, "is not the one that the command was given for"),
        ({"data": {"used": "mnist"}}, "", {}, "has other data: mnist|cannot run it: MNIST"),
    ],
    ids=["packages", "code", "no plug-in", "other data", "no data"],
)
def test_a_node_that_would_compute_another_cell_refuses(cell, changes, code, packages, message):
    """With other packages, another plug-in or none, other data or none."""
    other = {
        name: replace(cell.data, **value) if isinstance(value, dict) else value
        for name, value in changes.items()
    }
    changed = replace(cell, **other)
    assert re.search(message, refusal(changed, code or changed.code, packages))
