"""A benchmark and reproduction suite for federated distillation.

`fedtables.reproduce("dlad/table2")` regenerates a table, as the command `fedtables` does.
"""

import importlib
from typing import Any

__all__ = ["reproduce"]


def __getattr__(name: str) -> Any:
    """`reproduce`, imported when it is asked for: commands that compute nothing start at once.

    By its name, so that what a cell was computed by is not all commands and pictures.
    """
    if name != "reproduce":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("fedtables.benchmarks.commands.regeneration").reproduce
