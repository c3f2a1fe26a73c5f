"""The command line and the runner: `python -m benchmarks --help`; from Python, `reproduce`."""

import importlib
from typing import Any

__all__ = ["reproduce"]


def __getattr__(name: str) -> Any:
    """`reproduce`, imported when it is asked for: commands that compute nothing start at once.

    By its name, so that what a cell was computed by is not all commands and pictures.
    """
    if name != "reproduce":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("benchmarks.commands.regeneration").reproduce
