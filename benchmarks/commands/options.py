"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from benchmarks.papers import FIRST
from benchmarks.tables import registry


def _tables_like(begun: str) -> list[str]:
    known = [*registry.papers(), *registry.all_tables()]
    return [name for name in known if name.startswith(begun)]


Tables = Annotated[
    list[str] | None,
    typer.Argument(
        help=f"paper/table, for example {FIRST}; or a paper for all of its tables",
        autocompletion=_tables_like,
    ),
]
