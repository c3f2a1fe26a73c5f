"""The command line and the runner: `python -m benchmarks --help`; from Python, `reproduce`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.commands.notebook import reproduce

__all__ = ["reproduce"]


def __getattr__(name: str) -> Any:
    """`reproduce`, imported when it is asked for: commands that compute nothing start at once."""
    if name != "reproduce":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from benchmarks.commands.notebook import reproduce

    return reproduce
