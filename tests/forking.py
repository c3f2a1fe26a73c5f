"""`python -m MODULE ARGUMENTS` in a process forked from one that has imported the frameworks: their
import is most of a short command's time.

What differs between processes that are started anew, such as the order of sets, is the same in all
that are forked from one: a test of equal results in two processes starts them itself.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import multiprocessing
import os
import random
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from filelock import FileLock

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = dict(os.environ)
"""As it was before any test changed it."""
IMPORTED = (
    "torch",
    "torchvision",
    "timm",
    "opacus",
    "monai.networks.nets",
    "scipy.stats",
    "skimage.metrics",
    "sklearn.datasets",
    "matplotlib.pyplot",
    "typer",
    "rich.progress",
    "pandas",
    "torch._dynamo",
    "benchmarks.running.execute",
    "benchmarks.running.planning",
    "benchmarks.commands.regeneration",
)


CLOSED = ""
"""For `run_forked`: a standard output that is closed."""


def run_forked(
    module: str,
    *arguments: str,
    timeout: float,
    env: Mapping[str, str],
    output: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run` returns of `python -m MODULE ARGUMENTS` in the checkout, with the whole
    environment `env` and its standard output caught, or going to the device `output`, or `CLOSED`.
    Raises TimeoutExpired after `timeout` seconds.
    """
    command = [sys.executable, "-m", module, *arguments]
    with tempfile.TemporaryDirectory() as folder:
        printed, errors = Path(folder) / "stdout", Path(folder) / "stderr"
        request = {
            "module": module,
            "arguments": arguments,
            "env": dict(env),
            "streams": [str(printed) if output is None else output, str(errors)],
        }
        with _connected() as connection, connection.makefile("rw") as lines:
            lines.write(json.dumps(request) + "\n")
            lines.flush()
            leader = int(lines.readline())
            timer = threading.Timer(timeout, os.killpg, (leader, signal.SIGKILL))
            timer.daemon = True
            timer.start()
            try:
                answer = lines.readline()
            finally:
                over = not timer.is_alive()
                timer.cancel()
        if not answer and over:
            raise subprocess.TimeoutExpired(command, timeout)
        assert answer, f"the process that leads {' '.join(command)} has died"
        shown = printed.read_text() if printed.exists() else ""
        return subprocess.CompletedProcess(command, int(answer), shown, errors.read_text())


def _connected() -> socket.socket:
    """A connection to the server of all workers of a run of tests, which the first that needs it
    starts, and which ends with that worker; then another starts the next.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    address = Path(tempfile.gettempdir()) / f"fedtables-{run[:12]}.sock"
    with FileLock(f"{address}.lock"):
        try:
            return _connection(address)
        except OSError:
            _start_server(address)
            return _connection(address)


def _connection(address: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(address))
    except OSError:
        connection.close()
        raise
    return connection


def _start_server(address: Path) -> None:
    address.unlink(missing_ok=True)
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__)), str(address)],
        cwd=ROOT,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    atexit.register(_stop_server, server, address)
    assert server.stdout.readline() == "ready\n", "the fork server did not start"


def _stop_server(server: subprocess.Popen[str], address: Path) -> None:
    """End it, so that no other worker finds it from then on."""
    assert server.stdin is not None
    with FileLock(f"{address}.lock"):
        address.unlink(missing_ok=True)
    server.stdin.close()


def serve(address: Path) -> None:
    """Fork for every connection at the address, until the standard input ends; in the forked
    process, run what is asked for.
    """
    sys.path[0] = str(ROOT)
    for name in IMPORTED:
        importlib.import_module(name)
    from results.sourcecode import folder_modules, source_digest

    source_digest("benchmarks.running.execute", *folder_modules("benchmarks.measures"))
    _warm()
    gc.freeze()  # or each forked process would copy what the collector touches
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that end
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as waiting:
        listener.bind(str(address))
        listener.listen()
        waiting.register(listener, selectors.EVENT_READ)
        waiting.register(sys.stdin, selectors.EVENT_READ)
        print("ready", flush=True)
        while True:
            ready = {key.fileobj for key, _ in waiting.select()}
            if listener not in ready:
                return  # the standard input has ended, and nobody waits
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    _answer(connection)


def _answer(connection: socket.socket) -> NoReturn:
    """Lead a process group of the command, and tell its number and then the command's code."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection, connection.makefile("rw") as lines:
        request = json.loads(lines.readline())
        lines.write(f"{os.getpid()}\n")
        lines.flush()
        child = os.fork()
        if child == 0:
            os.close(connection.detach())  # whoever waits at the other end waits for its leader
            _run(request)
        _, status = os.waitpid(child, 0)
        lines.write(f"{os.waitstatus_to_exitcode(status)}\n")
    os._exit(0)


def _warm() -> None:
    """Do once what every process does first: make and digest the commonest data sets, and load
    Matplotlib's fonts.
    """
    from matplotlib.figure import Figure

    from datasets import catalogue

    with tempfile.TemporaryDirectory() as folder:
        os.environ["FEDTABLES_CACHE"] = folder  # a request brings its own
        for name in ("digits", "shapes", "shapes-100", "scenes"):
            catalogue.resolve(name, home=Path(folder))
        figure = Figure()
        figure.subplots().set_title("fonts")
        for suffix in ("png", "svg", "pdf"):
            figure.savefig(Path(folder) / f"fonts.{suffix}")


def _run(request: dict) -> NoReturn:
    """End this process as `python -m` would end, without taking down what the server imported."""
    import numpy  # not above: it counts threads, which conftest.py sets

    for number, path in enumerate([os.devnull, *request["streams"]]):
        stream = os.open(path or os.devnull, os.O_RDWR | os.O_CREAT)
        os.dup2(stream, number)
        os.close(stream)
        if path == CLOSED:  # as the interpreter begins without one
            os.close(number)
            sys.stdout = None
    os.environ.clear()
    os.environ.update(request["env"])
    random.seed()
    numpy.random.seed()
    # Its workers need not import everything again either.
    multiprocessing.get_context = functools.partial(_forking, multiprocessing.get_context)
    sys.argv = [request["module"], *request["arguments"]]
    code = 1
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = _exit_code(end)
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:  # as the interpreter ends
        print("Exception ignored in sys.stdout", file=sys.stderr)
        code = 120
    sys.stderr.flush()
    os._exit(code)


def _exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _forking(get_context, method=None):
    return get_context("fork" if method == "spawn" else method)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
