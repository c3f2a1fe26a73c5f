"""One function of many items, by processes of one thread each."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from benchmarks.running.execute import prepare_device
from federation.execution import DEFAULT
from results.files import ResultsError

R = TypeVar("R")


def in_processes(
    function: Callable[[int], R],
    items: Sequence[int],
    jobs: int,
    done: Callable[[], None],
    device: str = "cpu",
) -> list[R]:
    """`function` of every item, in their order, by `jobs` processes of one thread each; `done` is
    called as each one is there.

    Raises ResultsError if a process is lost.
    """
    spawn = multiprocessing.get_context("spawn")
    results = []
    with ProcessPoolExecutor(min(jobs, len(items)), spawn, _prepare, (device,)) as pool:
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


def _prepare(device: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle; it ends us
    prepare_device(device, 1, DEFAULT)
