"""`python -m MODULE ARGUMENTS` in a process forked from one that has imported the frameworks: their
import is most of a short command's time.

What differs between processes that are started anew, such as the order of sets, is the same in all
that are forked from one: a test of equal results in two processes starts them itself.
"""

import atexit
import contextlib
import functools
import multiprocessing
import os
import random
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent


def run_forked(
    module: str, *arguments: str, timeout: float, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run` returns of `python -m MODULE ARGUMENTS` in the checkout, with the whole
    environment `env` and its output caught. Raises TimeoutExpired after `timeout` seconds.
    """
    words = [module, *arguments]
    command = [sys.executable, "-m", *words]
    with tempfile.TemporaryDirectory() as folder:
        printed, errors = Path(folder) / "stdout", Path(folder) / "stderr"
        streams = [str(printed), str(errors)]
        server = multiprocessing.get_context("forkserver")
        server.set_forkserver_preload(["tests.preloaded"])
        process = server.Process(target=_run, args=(words, dict(env), streams))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
            raise subprocess.TimeoutExpired(command, timeout)
        shown = printed.read_text(), errors.read_text()
        return subprocess.CompletedProcess(command, process.exitcode, *shown)


def _run(words: Sequence[str], env: Mapping[str, str], streams: Sequence[str]) -> NoReturn:
    """Lead a process group, and end as `python -m` would end, without taking down what the server
    has imported.
    """
    import numpy  # not above: it counts threads, which conftest.py sets

    os.setsid()
    os.chdir(ROOT)
    for number, path in enumerate([os.devnull, *streams]):
        stream = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(env)
    random.seed()
    numpy.random.seed()
    # Its workers need not import everything again either.
    multiprocessing.get_context = functools.partial(_forking, multiprocessing.get_context)
    sys.path.insert(0, str(ROOT))
    sys.argv = list(words)
    # What started this process may have imported it, as no other process has.
    sys.modules.pop(f"{words[0]}.__main__", None)
    code = 1
    try:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = _exit_code(end)
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _forking(get_context, method=None):
    return get_context("fork" if method == "spawn" else method)
