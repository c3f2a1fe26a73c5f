"""A process of its own for each fit: what one has kept, another does not find.

Linux and macOS fork; the process that forks never fits the method itself. Inside, files that are no
code, connections and other processes are closed to the method.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import sys
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

import numpy as np
import torch

from datasets.access import AccessError, while_fitting

T = TypeVar("T")

HERE = str(Path(__file__).parent)
CODE = frozenset({".py", ".pyc", ".so", ".dylib"})
"""Files that importing reads."""
PACKAGED = frozenset({".json", ".txt", ".toml", ".yaml", ""})
"""What installed packages read of themselves, beside their code."""
SYSTEM = ("/proc/", "/sys/", "/dev/null", "/dev/urandom")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
PROCESSES = ("os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen")
CONNECTIONS = ("socket.connect", "socket.bind", "sqlite3.connect")
FOLDERS = ("os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink", "os.truncate")
MEMORY = ("gc.get_objects", "gc.get_referrers", "gc.get_referents")
"""By which a method would find what nobody gave it."""


class EndedError(Exception):
    """A process ended before its function returned."""


class Closed:
    """What is closed to a method while it fits, by Python's audit events."""

    def __init__(self) -> None:
        self.active = False
        sys.dont_write_bytecode = True  # an import in a fit is none of its doing
        self.found: list[str] = []
        """What was asked for all the same."""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.active:
            return
        asked = ""
        if event == "open":
            asked = self._opened(*arguments)
        elif event in PROCESSES:
            asked = "it starts a process"
        elif event in CONNECTIONS:
            asked = "it opens a connection"
        elif event in FOLDERS:
            asked = f"it changes files ({event} {arguments[0]!s:.200})"
        elif event in MEMORY:
            asked = "it searches the memory of its process"
        if asked and not _imports_package():
            self.found.append(asked)
            raise AccessError(f"{asked} while it fits")

    def _opened(self, path: object, mode: object, flags: int) -> str:
        if not isinstance(path, str | bytes):  # a descriptor
            return ""
        name = str(Path(os.fsdecode(path)).absolute())
        writes = bool(flags & WRITES) or (isinstance(mode, str) and bool(set(mode) & set("wax+")))
        if (name.startswith(SYSTEM) and not name.endswith("/mem")) or name in sys.path:
            return ""
        if writes:
            return f"it writes {name}"
        suffix = Path(name).suffix
        packaged = name.startswith((sys.prefix, sys.base_prefix)) and suffix in PACKAGED
        return "" if suffix in CODE or packaged else f"it reads {name}"

    @contextlib.contextmanager
    def fitting(self) -> Iterator[None]:
        """A method fits inside."""
        with while_fitting():
            self.active = True
            try:
                yield
            finally:
                self.active = False


def _imports_package() -> bool:
    """Whether an installed package does this while it is imported."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not frame.f_code.co_filename.startswith(HERE):
        if frame.f_code.co_name == "<module>":
            return frame.f_code.co_filename.startswith((sys.prefix, sys.base_prefix))
        frame = frame.f_back
    return False


def in_own_process(function: Callable[[Closed], T]) -> T:
    """What `function` returns in a process forked from this one; exceptions are raised here, with
    the lines where they were raised as `lines`.

    Raises EndedError if the process ends before.
    """
    here, there = multiprocessing.Pipe(duplex=False)
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        here.close()
        _answer(there, function)
    there.close()
    answer: Any = None
    with contextlib.suppress(EOFError):
        answer = here.recv()
    here.close()
    _, status = os.waitpid(child, 0)
    if answer is None:
        code = os.waitstatus_to_exitcode(status)
        raise EndedError(f"exit code {code}" if code >= 0 else f"killed by signal {-code}")
    kind, value = answer
    if kind == "raised":
        raise value
    result: T = value
    return result


def _answer(connection: Connection, function: Callable[[Closed], Any]) -> NoReturn:
    """Send what `function` returns or raises, and end."""
    torch.set_num_threads(1)  # threads of the parent are not here
    torch.seed()  # nor do two processes draw alike from generators that no seed reaches
    random.seed()
    np.random.seed()
    answer: tuple[str, Any] = ("", None)
    try:
        answer = ("returned", function(Closed()))
    except SystemExit as error:
        answer = ("raised", EndedError(f"sys.exit({error.code!r})"))
    except BaseException as error:
        answer = ("raised", _portable(error))
    try:
        connection.send(answer)
    except Exception as error:
        connection.send(("raised", EndedError(f"its result cannot be sent: {error}")))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _portable(error: BaseException) -> BaseException:
    """An exception as another process can raise it, with its lines."""
    lines = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    kept: BaseException
    try:
        kept = type(error)(*error.args)
    except Exception:
        kept = RuntimeError(f"{type(error).__name__}: {error}")
    kept.lines = lines  # type: ignore[attr-defined]
    return kept
