"""The executor of a Ray cluster: every cell is a task there, and its events are those of the pool
of processes.

Ray is imported when a cluster is asked for, never before. Nodes get this checkout from the command
and refuse a cell that their packages, plug-in files or data would compute otherwise, so a cell's
numbers do not depend on where it ran.
"""

import functools
import logging
import os
import platform
import re
import socket
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

from fedtables.benchmarks.running.events import Context, Event, failed, with_second_tries
from fedtables.benchmarks.running.machine import NEVER, Deadline, default_jobs
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.cells import Cell
from fedtables.benchmarks.tables.request import Request
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.datasets import catalogue
from fedtables.results.files import DataError, ResultsError, cache_home
from fedtables.results.sourcecode import PACKAGE, ROOT

LOCAL, AUTO = "local", "auto"
RETRIES = 3
"""How often a cell is run again whose worker or node was lost."""
EXCLUDED = ("__pycache__", "/results/*", "!/results/*.py", "!/results/published")
"""What nodes do not need of the package."""
LINKS = ROOT / "typings" / PACKAGE
"""The package as one folder, in a checkout."""
PASSED_ON = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "CUBLAS_WORKSPACE_CONFIG",
)
"""Variables that may change a number or a time; workers of the local pool inherit them."""

PATIENCE = 10
"""Seconds in which a cluster's address must answer; Ray would try for minutes."""
SETTINGS = b"\x04"
"""The fourth byte of what either side of gRPC says first (RFC 9113, 3.4 and 4.1)."""
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + SETTINGS + bytes(5)


@dataclass(frozen=True)
class Cluster:
    """Where cells run, and what each of them gets there."""

    address: str
    """`local` for a Ray of this machine alone, `auto` or `host:port` for a running cluster that
    this machine is a node of."""
    cpus: float
    """Processors of one cell."""
    gpus: float
    """GPUs of one cell; 0.25 lets four share one."""


def cluster_of(request: Request) -> Cluster:
    """The cluster that a request names; 0 processors mean as many as threads, None GPUs one on
    CUDA. Raises SpecError for what fits no cluster.
    """
    address, device = request.ray, request.run_device
    cpus, gpus = request.num_cpus, request.num_gpus
    if address not in (LOCAL, AUTO) and not re.fullmatch(r"[^:]+:[0-9]{1,5}", address, re.ASCII):
        raise SpecError(
            f"--ray {address}: it is {LOCAL}, {AUTO}, or host:port of a cluster that this machine"
            " is a node of"
        )
    if device.startswith("cuda:"):
        raise SpecError(f"--device {device}: Ray chooses the GPU of each cell; use --device cuda")
    on_cuda = device == "cuda"
    gpus = float(on_cuda) if gpus is None else gpus
    if (gpus > 1 and gpus != int(gpus)) or (gpus > 0) != on_cuda:
        raise SpecError(
            f"--num-gpus {gpus:g}: a cell takes a part of one, or a whole number of them, on"
            " --device cuda, and none elsewhere"
        )
    return Cluster(address, cpus or request.threads, gpus)


def run_ray(
    cells: Sequence[Cell],
    context: Context,
    cluster: Cluster,
    jobs: int = 0,
    deadline: Deadline = NEVER,
) -> Generator[Event]:
    """Cells as Ray tasks, at most `jobs` at a time (0: as many as fit). A cell whose worker or node
    is lost is run again. One without enough memory, or whose GPU failed, gets a second try.

    Raises OutOfTimeError at the deadline, and SpecError if Ray is not installed, there is no such
    cluster, or no node of it could take a cell.
    """
    ray = _connect(cluster)
    try:
        _check_resources(ray, cluster)
        limit = jobs or len(cells)
        run = functools.partial(_run_tasks, ray, cells, context, cluster, deadline)
        yield from with_second_tries(run, len(cells), limit)
    finally:
        ray.shutdown()  # its tasks end with the command


def _connect(cluster: Cluster) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise SpecError(
            "--ray needs Ray, which is not installed: python -m pip install 'ray>=2.60'"
        ) from None
    variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    # Installed, the package is one folder; in a checkout, links make one of its parts.
    package = ROOT if ROOT.name == PACKAGE and (ROOT / "py.typed").exists() else LINKS
    code = {"py_modules": [str(package)], "excludes": list(EXCLUDED), "env_vars": variables}
    local_options: dict[str, Any] = {}
    if cluster.address == LOCAL:
        local_options = {"num_cpus": default_jobs("cpu"), "include_dashboard": False}
    try:
        ray.init(
            cluster.address,
            runtime_env=code,
            log_to_driver=False,
            logging_level=logging.ERROR,
            **local_options,
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise _unreachable(cluster, error) from error
    return ray


def reach(cluster: Cluster) -> None:
    """Raise SpecError in at most `PATIENCE` seconds if nobody at a cluster's address speaks gRPC,
    as a cluster does. One that encrypts is left to Ray.
    """
    host, colon, port = cluster.address.rpartition(":")
    if not colon or os.environ.get("RAY_USE_TLS", "0") != "0":
        return
    try:
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(GREETING)
            if connection.makefile("rb").read(4)[3:] != SETTINGS:
                raise OSError("it does not speak gRPC")
    except (OSError, OverflowError) as error:
        raise _unreachable(cluster, error) from error


def _unreachable(cluster: Cluster, error: Exception) -> SpecError:
    return SpecError(
        f"--ray {cluster.address}: no Ray cluster can be used there ({_first(error)}); `ray status`"
        " tells more"
    )


def _first(error: Exception) -> str:
    """The first sentence of an error of Ray, which has many."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].split(". ")[0]


def _check_resources(ray: Any, cluster: Cluster) -> None:
    """Raise SpecError where cells would wait for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(
        node.get("CPU", 0) >= cluster.cpus and node.get("GPU", 0) >= cluster.gpus for node in nodes
    ):
        wanted = f"{cluster.cpus:g} processors and {cluster.gpus:g} GPUs"
        raise SpecError(
            f"--ray {cluster.address}: a cell takes {wanted}, and no node has them; `ray status`"
            " tells what there is"
        )


def _run_tasks(
    ray: Any,
    cells: Sequence[Cell],
    context: Context,
    cluster: Cluster,
    deadline: Deadline,
    positions: Sequence[int],
    limit: int,
) -> Generator[Event]:
    """Tasks for the cells at `positions`."""
    resources = {"num_cpus": cluster.cpus, "num_gpus": cluster.gpus, "max_retries": 0}
    task = ray.remote(**resources)(_work)
    alone = ray.remote(max_calls=1, **resources)(_in_own_process)
    lost = (
        ray.exceptions.WorkerCrashedError,
        ray.exceptions.NodeDiedError,
        ray.exceptions.LocalRayletDiedError,
        ray.exceptions.OutOfMemoryError,
        ray.exceptions.ObjectLostError,
    )
    waiting = deque((position, 1) for position in positions)
    running: dict[Any, tuple[int, int]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < limit:
                position, attempt = waiting.popleft()
                cell = cells[position]
                work = alone if cell.plugins or cluster.gpus else task
                told = (position, cell, cell.code, cell.libraries, context)
                running[work.remote(*told)] = position, attempt
            ended, _ = ray.wait(list(running), timeout=deadline.left())
            for ready in ended:
                position, attempt = running.pop(ready)
                try:
                    yield from ray.get(ready)
                except ray.exceptions.RayError as error:
                    how = _reason(error, isinstance(error, lost))
                    if isinstance(error, lost) and attempt <= RETRIES:
                        waiting.append((position, attempt + 1))
                        yield Event("again", position, text=f"worker lost, run again ({how})")
                        continue
                    record = failed(cells[position], f"attempt {attempt} by Ray: {how}")
                    yield Event("done", position, text=str(error), record=record)
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def _reason(error: Exception, lost: bool) -> str:
    """In a line: how a worker was lost, or what its task raised, which ends Ray's text."""
    said = _first(error) if lost else (str(error).strip().splitlines() or [""])[-1]
    return f"{type(error).__name__}: {said}"


def _work(
    position: int, cell: Cell, code: str, packages: dict[str, str], context: Context
) -> list[Event]:
    """Run a cell on this node, with the node's cache, or refuse it; returns what happened, without
    its progress.
    """
    reason = refusal(cell, code, packages)
    if reason:
        record = failed(cell, f"node {platform.node()} {reason}")
        return [Event("done", position, record=record)]
    from fedtables.benchmarks.running.execute import run_cell

    events: list[Event] = []
    context = replace(context, stages=str((cache_home() / "stages").resolve()))
    record, trace = run_cell(cell, context, events.append, position)
    events.append(Event("done", position, text=trace, record=record))
    return [event for event in events if event.kind != "progress"]


def _in_own_process(*arguments: Any) -> list[Event]:
    """`_work` in a worker that Ray ends afterwards, with all that a plug-in or a fault of CUDA
    leaves behind.
    """
    return _work(*arguments)


def _installed(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "absent"


def refusal(cell: Cell, code: str, packages: dict[str, str]) -> str:
    """Why this node must not run a cell whose code has the digest `code` where the command was
    given; else empty.
    """
    others = [
        f"{name} {installed} instead of {version}"
        for name, version in packages.items()
        if (installed := _installed(name)) != version
    ]
    if others:
        return f"has {', '.join(others)}"
    try:
        with registry.used(cell.plugins):
            if cell.code != code:
                return "has other code; a plug-in file must be the same on every node"
            for source in cell.sources:
                resolved = catalogue.resolve(source.used)
                if (resolved.used, resolved.digest) != (source.used, source.digest):
                    return (
                        f"has other data: {source.used} is not the one that the command was given"
                        " for"
                    )
    except (SpecError, DataError, ResultsError, OSError) as error:
        return f"cannot run it: {error}"
    return ""
