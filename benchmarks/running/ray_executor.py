"""The executor of a Ray cluster: every cell is a task there, and its events are those of the pool
of processes.

Ray is imported when a cluster is asked for, never before. Nodes get this checkout from the command
and refuse a cell that their packages, plug-in files or data would compute otherwise, so a cell's
numbers do not depend on where it ran.
"""

from __future__ import annotations

import functools
import logging
import os
import platform
import re
import socket
import time
import uuid
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from benchmarks.running.deadline import NEVER, Deadline
from benchmarks.running.events import Context, Event, alone_for_memory, failed
from benchmarks.running.machine import default_jobs
from benchmarks.running.stage_server import StageServer
from benchmarks.tables.cells import Cell
from benchmarks.tables.request import Request
from benchmarks.tables.spec import SpecError
from datasets import catalogue
from federation.events import StageEvent
from federation.watching import Point
from results.files import DataError, ResultsError, cache_home, write_atomic
from results.names import near
from results.record import Record
from results.sourcecode import ROOT

LOCAL, AUTO = "local", "auto"
FETCH, SHARED = "fetch", "shared"
RETRIES = 3
"""How often a cell is run again whose worker or node was lost."""
EXCLUDED = (
    ".git",
    ".tox",
    ".venv",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    "__pycache__",
    "/tests",
    "/docs",
    "/results/*",
    "!/results/*.py",
    "!/results/published",
)
"""What nodes do not need of the checkout, as in a .gitignore."""
PASSED_ON = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "CUBLAS_WORKSPACE_CONFIG",
)
"""Variables that may change a number or a time; workers of the local pool inherit them."""


PATIENCE, LAST_PORT = 10, 65535
SETTINGS, FRAME_HEADER = 4, 9
"""Of HTTP/2, on which gRPC stands: the type of the frame that either side begins with, and the
bytes of a frame's header, the fourth of which is the type (RFC 9113, 3.4 and 4.1)."""
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, SETTINGS, 0, 0, 0, 0, 0])
"""What a client begins with: the preface, and no settings of its own."""


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
    cache: str
    """`shared`: all nodes see the command's stage folder; `fetch`: each has its own, and gets
    stages through Ray."""


def cluster_of(request: Request) -> Cluster:
    """The cluster that a request names; 0 processors mean as many as threads, None GPUs one on
    CUDA.

    A cluster's cache is fetched unless it is said to be shared, for its nodes need not have a
    folder in common. Raises SpecError for what fits no cluster.
    """
    address, device, cache = request.ray, request.run_device, request.ray_cache
    cpus, gpus = request.num_cpus, request.num_gpus
    if "://" in address:
        raise SpecError(
            f"--ray {address}: Ray's client protocol is not used; give the command on a node of the"
            " cluster with --ray auto"
        )
    if address not in (LOCAL, AUTO) and not re.fullmatch(r"[^:]+:[0-9]{1,5}", address, re.ASCII):
        raise SpecError(f"--ray {address}: it is {LOCAL}, {AUTO}, or host:port of a cluster")
    if device.startswith("cuda:"):
        raise SpecError(f"--device {device}: Ray chooses the GPU of each cell; use --device cuda")
    if cache and cache not in (FETCH, SHARED):
        raise SpecError(f"--ray-cache {cache}: no such value; {near(cache, (FETCH, SHARED))}")
    on_cuda = device == "cuda"
    gpus = float(on_cuda) if gpus is None else gpus
    if (gpus > 1 and gpus != int(gpus)) or (gpus > 0) != on_cuda:
        wanted = (
            "a part of one, or a whole number of them" if on_cuda else f"none on --device {device}"
        )
        raise SpecError(f"--num-gpus {gpus:g}: a cell takes {wanted}")
    return Cluster(
        address, cpus or request.threads, gpus, cache or (SHARED if address == LOCAL else FETCH)
    )


class _Calls:
    """The methods of a Ray actor as if it were here."""

    def __init__(self, actor: Any):
        self._actor = actor

    def __getattr__(self, name: str) -> Any:
        import ray

        return lambda *arguments: ray.get(getattr(self._actor, name).remote(*arguments))


def run_ray(
    cells: Sequence[Cell],
    context: Context,
    cluster: Cluster,
    jobs: int = 0,
    deadline: Deadline = NEVER,
) -> Generator[Event]:
    """Cells as Ray tasks, at most `jobs` at a time (0: as many as fit). A cell whose worker or node
    is lost is run again; one that shares a GPU with too little memory for it is, alone.

    Raises OutOfTimeError at the deadline, and SpecError if Ray is not installed, there is no such
    cluster, or no node of it could take a cell.
    """
    ray = _connect(cluster)
    seen = Path(context.stages) / f".seen-{uuid.uuid4().hex}"
    try:
        _check_resources(ray, cluster)
        write_atomic(seen, "")
        limit = jobs or len(cells)
        run = functools.partial(_run_tasks, ray, cells, context, cluster, seen.name, deadline)
        if cluster.gpus < 1:
            yield from alone_for_memory(run, len(cells), limit)
        else:
            yield from run(range(len(cells)), limit)
    finally:
        ray.shutdown()  # its tasks end with the command
        seen.unlink(missing_ok=True)


def _connect(cluster: Cluster) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise SpecError(
            "--ray needs Ray, which is not installed: python -m pip install 'ray>=2.60'"
        ) from None
    variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    code = {"working_dir": str(ROOT), "excludes": list(EXCLUDED), "env_vars": variables}
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
    """Raise SpecError in at most `PATIENCE` seconds if nobody answers at a cluster's address."""
    try:
        _probe(cluster.address)
    except OSError as error:
        raise _unreachable(cluster, error) from error


def _unreachable(cluster: Cluster, error: Exception) -> SpecError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0].split(". ")[0]
    return SpecError(
        f"--ray {cluster.address}: no Ray cluster can be used there ({reason}); `ray status`"
        " tells more"
    )


def _probe(address: str) -> None:
    """Raise OSError in at most `PATIENCE` seconds where nobody at `host:port` speaks gRPC, as a
    cluster does; Ray would try for minutes.
    """
    host, colon, port = address.rpartition(":")
    if not (colon and port.isdigit()):
        return
    if int(port) > LAST_PORT:
        raise OSError(f"ports end at {LAST_PORT}")
    until = time.monotonic() + PATIENCE
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(GREETING)
        answer = b""
        while len(answer) < FRAME_HEADER:
            connection.settimeout(max(until - time.monotonic(), 0.001))
            try:
                received = connection.recv(FRAME_HEADER)
            except TimeoutError:
                raise OSError(f"it answers nothing within {PATIENCE} seconds") from None
            if not received:
                raise OSError("it hangs up")
            answer += received
    if answer[3] != SETTINGS:
        raise OSError("it does not speak gRPC")


def _check_resources(ray: Any, cluster: Cluster) -> None:
    """Raise SpecError where cells would wait for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(
        node.get("CPU", 0) >= cluster.cpus and node.get("GPU", 0) >= cluster.gpus for node in nodes
    ):
        there = "; ".join(
            f"{node.get('CPU', 0):g} processors and {node.get('GPU', 0):g} GPUs" for node in nodes
        )
        wanted = f"{cluster.cpus:g} processors and {cluster.gpus:g} GPUs"
        raise SpecError(
            f"--ray {cluster.address}: a cell takes {wanted}, and no node has them: {there}"
        )


def _run_tasks(
    ray: Any,
    cells: Sequence[Cell],
    context: Context,
    cluster: Cluster,
    seen: str,
    deadline: Deadline,
    positions: Sequence[int],
    limit: int,
) -> Generator[Event]:
    """Tasks for the cells at `positions`."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    server = None
    if cluster.cache == FETCH:
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        actor = ray.remote(StageServer).options(
            num_cpus=0, scheduling_strategy=here, max_restarts=RETRIES, max_task_retries=RETRIES
        )
        server = actor.remote(context.stages, context.newer_than)
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
    waiting = deque(positions)
    attempts = [0] * len(cells)
    running: dict[Any, int] = {}
    try:
        while waiting or running:
            while waiting and len(running) < limit:
                position = waiting.popleft()
                attempts[position] += 1
                cell = cells[position]
                holder = f"{position} {attempts[position]}"
                arguments = (cell, cell.code, cell.libraries, context, server, holder, seen)
                work = alone if cells[position].plugins else task
                running[work.remote(*arguments)] = position
            ended, _ = ray.wait(list(running), timeout=deadline.left())
            if not ended:
                continue
            [ready] = ended
            position = running.pop(ready)
            record: Record | None
            try:
                record, text, stages, points = ray.get(ready)
                if record is None:
                    record, text = failed(cells[position], text), ""
                for stage in stages:
                    yield Event("stage", position, stage=stage)
                for point in points:
                    yield Event("point", position, point=point)
            except lost as error:
                how = f"{type(error).__name__}: {error}".splitlines()[0].split(". ")[0]
                if server is not None:
                    server.release.remote(f"{position} {attempts[position]}")
                if attempts[position] <= RETRIES:
                    waiting.append(position)
                    yield Event("again", position, text=f"worker lost, run again ({how})")
                    continue
                record, text = (
                    failed(
                        cells[position], f"worker process lost {attempts[position]} times ({how})"
                    ),
                    "",
                )
            except ray.exceptions.RayError as error:
                if server is not None:
                    server.release.remote(f"{position} {attempts[position]}")
                # the cell could not be started, or what it left not be brought here
                record, text = (
                    failed(cells[position], f"Ray: {str(error).strip().splitlines()[-1]}"),
                    str(error),
                )
            yield Event("done", position, text=text, record=record)
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def _work(
    cell: Cell,
    code: str,
    packages: dict[str, str],
    context: Context,
    server: Any,
    holder: str,
    seen: str,
) -> tuple[Record | None, str, list[StageEvent], list[Point]]:
    """Run a cell on this node, or refuse it: no record, and the reason."""
    reason = refusal(cell, code, packages)
    if not reason and server is None and not (Path(context.stages) / seen).exists():
        reason = (
            f"does not see the command's stage folder {context.stages}; use --ray-cache {FETCH}"
        )
    if reason:
        return None, f"node {platform.node()} {reason}", [], []
    from benchmarks.running.execute import run_cell

    events: list[StageEvent] = []
    points: list[Point] = []
    on_point = points.append if context.watched else None
    if server is None:
        return *run_cell(cell, context, on_stage=events.append, on_point=on_point), events, points
    from benchmarks.running.node_stages import NodeStages

    def make_stages(*arguments: Any) -> NodeStages:
        return NodeStages(*arguments, server=cast(StageServer, _Calls(server)), holder=holder)

    context = replace(context, stages=str(cache_home() / "stages"))
    done = run_cell(
        cell, context, on_stage=events.append, on_point=on_point, make_cache=make_stages
    )
    return *done, events, points


def _in_own_process(*arguments: Any) -> tuple[Record | None, str, list[StageEvent], list[Point]]:
    """`_work` in a worker that Ray ends afterwards, with all that a plug-in leaves behind."""
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
        if cell.code != code:
            return "has other code; a plug-in file must be the same on every node"
        for source in cell.sources:
            resolved = catalogue.resolve(source.used)
            if (resolved.used, resolved.digest) != (source.used, source.digest):
                return (
                    f"has other data: {source.used} is not the one that the command was given for"
                )
    except (SpecError, DataError, ResultsError, OSError) as error:
        return f"cannot run it: {error}"
    return ""
