"""A pool of worker processes over cells, and one over items of another kind.

A cell depends on nothing but itself and its stages, so any number of workers gives the same
numbers.
"""

import contextlib
import functools
import multiprocessing
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from fedtables.benchmarks.running.events import (
    DEVICE_FAULT,
    Context,
    Event,
    failed,
    with_second_tries,
)
from fedtables.benchmarks.running.machine import NEVER, VISIBLE, Deadline, visible_gpus
from fedtables.benchmarks.tables.cells import Cell
from fedtables.results.files import ResultsError
from fedtables.results.record import Record

R = TypeVar("R")


def run_pool(
    cells: Sequence[Cell], context: Context, jobs: int, deadline: Deadline = NEVER
) -> Generator[Event]:
    """`jobs` worker processes. One that has run a cell of a plug-in ends with what that leaves
    behind. One that dies fails its cell, and another takes its place, as of one whose device
    failed. Cells without enough memory, or whose device failed, get a second try.

    Raises OutOfTimeError at the deadline; cells that are not finished then are given up.
    """
    run = functools.partial(_run, cells, context, deadline)
    yield from with_second_tries(run, len(cells), jobs)


def _run(
    cells: Sequence[Cell], context: Context, deadline: Deadline, positions: Sequence[int], jobs: int
) -> Generator[Event]:
    """`jobs` workers for the cells at `positions`, by turns on the GPUs that there are."""
    devices = {cells[position].device for position in positions}
    gpus = visible_gpus(*devices) if len(devices) == 1 else []
    spawn = multiprocessing.get_context("spawn")
    waiting = list(positions)[::-1]
    workers: dict[Connection, tuple[Any, int]] = {}
    current: dict[Connection, int] = {}
    ended: list[Any] = []

    def start(number: int) -> Connection:
        here, there = spawn.Pipe()
        gpu = gpus[number % len(gpus)] if gpus else None
        told = (there, context, os.getpid(), gpu)
        process = spawn.Process(target=_worker, args=told, daemon=True)
        with _without_main():
            process.start()
        there.close()
        workers[here] = (process, number)
        return here

    def assign(connection: Connection) -> Event:
        position = waiting.pop()
        current[connection] = position
        connection.send((position, cells[position]))
        return Event("started", position, workers[connection][1])

    for number in range(min(jobs, len(positions))):
        start(number)
    try:
        for connection in list(workers):
            yield assign(connection)
        while current:
            for ready in wait(list(current), deadline.left()):
                assert isinstance(ready, Connection)
                process, number = workers[ready]
                try:
                    event: Event = ready.recv()
                except (EOFError, ConnectionResetError):
                    process.join()
                    record = _lost(cells[current[ready]], process.exitcode)
                    event = Event("done", current[ready], record=record)
                yield replace(event, worker=number)
                if event.kind == "done":
                    done = cells[current.pop(ready)]
                    if not waiting:
                        continue
                    assert event.record is not None
                    broken = event.record.reason.startswith(DEVICE_FAULT)
                    if process.exitcode is not None or done.plugins or broken:
                        _end(ready)
                        ended.append(workers.pop(ready)[0])
                        ready = start(number)
                    yield assign(ready)
    finally:
        for connection, (process, _) in workers.items():
            if connection in current:
                process.terminate()
            else:
                _end(connection)
        for process in (*ended, *(process for process, _ in workers.values())):
            process.join(5)
            process.terminate()
            process.join()


def _end(connection: Connection) -> None:
    """An idle worker ends by itself, and takes down what compilation has set up in it."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.send(None)
    connection.close()


def _lost(cell: Cell, code: int | None) -> Record:
    how = f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    hint = "; out of memory? try fewer --jobs" if code == -signal.SIGKILL else ""
    return failed(cell, f"worker process lost ({how}{hint})")


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """A process that is spawned here does not import the caller's script: a worker has no use for
    it, and a script or notebook that calls `fedtables.reproduce` would be run again.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _worker(connection: Connection, context: Context, parent: int, gpu: str | None) -> None:
    _use(gpu)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle; it ends us
    threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()
    # This imports torch: the parent has no use for it, and would wait.
    from fedtables.benchmarks.running.execute import run_cell

    with contextlib.suppress(EOFError, BrokenPipeError):
        while (task := connection.recv()) is not None:
            position, cell = task
            record, trace = run_cell(cell, context, connection.send, position)
            connection.send(Event("done", position, text=trace, record=record))


def _use(gpu: str | None) -> None:
    """Let this process see one GPU alone; before CUDA starts, which looks once."""
    if gpu is not None:
        os.environ[VISIBLE] = gpu


def _exit_with(parent: int) -> None:
    """End this worker when its parent is gone, however it went: an orphan would compete with the
    next run.
    """
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def in_processes(
    function: Callable[[int], R],
    items: Sequence[int],
    jobs: int,
    done: Callable[[], None],
    device: str = "cpu",
) -> list[R]:
    """`function` of every item, in their order, by `jobs` processes of one thread each, by turns on
    the GPUs that there are; `done` is called as each one is there.

    Raises ResultsError if a process is lost.
    """
    spawn = multiprocessing.get_context("spawn")
    results = []
    told = (device, visible_gpus(device), spawn.Value("i", 0))
    with ProcessPoolExecutor(min(jobs, len(items)), spawn, _prepare, told) as pool:
        try:
            for result in pool.map(function, items):
                results.append(result)
                done()
        except BrokenProcessPool as error:
            raise ResultsError(
                "a worker process was lost; out of memory? try fewer --jobs"
            ) from error
        except BaseException:  # Ctrl-C, or what one could not do: the others are not waited for
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise
    return results


def _prepare(device: str, gpus: Sequence[str], started: Any) -> None:
    """`started` counts the processes."""
    with started.get_lock():
        number, started.value = started.value, started.value + 1
    _use(gpus[number % len(gpus)] if gpus else None)
    from fedtables.benchmarks.running.execute import prepare_device
    from fedtables.federation.execution import DEFAULT

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle; it ends us
    prepare_device(device, 1, DEFAULT)
