"""Tries a user's own settings before anything runs: what they make of methods and federations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.scenarios.assembly import Run, build_federation, make_method
from benchmarks.scenarios.configuration import Configuration
from benchmarks.scenarios.scenario import DataSets
from benchmarks.tables import registry
from benchmarks.tables.cells import Cell, expand, unread
from benchmarks.tables.selection import Selection
from benchmarks.tables.spec import Paper, SpecError, Table
from federation.caching.cache import StageCache
from federation.seeds import Seeds
from results.files import RefusedError

OF_ROWS = ("row", "method")
"""Keys of `--only` that choose rows; the others choose columns."""


def try_settings(
    tables: Sequence[tuple[Paper, Table]], cells: Sequence[Cell], selection: Selection
) -> None:
    """Build the method and the federation of the first of these tables' `cells` in every row and in
    every column, on a device where nothing is computed, and methods of which no cell reads a
    setting, as they are in rows that were not asked for. Where there are no settings of the user's
    own, private cells alone are tried: their partition may not allow an epsilon.

    Raises SpecError if the settings cannot be used.
    """
    tried = list(cells) if selection.overrides else [cell for cell in cells if cell.is_private]
    overrides = dict(selection.overrides)
    ignored = unread(cells, selection.overrides)
    left_out = _left_out(tables, cells, selection) if ignored else []
    for name in ignored:
        method, _, parameter = name.partition(".")
        if method in registry.methods(selection.plugins):
            with _told(f"--set {name}={overrides[name]}"):
                entry = registry.find_method(method, selection.plugins)
                own = [cell for cell in left_out if cell.method == method]
                for cell in own:
                    make_method(entry, dict(cell.config))
                if not own:
                    entry.load()(**{parameter: overrides[name]})
    first = {(cell.table, "row", cell.row): cell for cell in reversed(tried)}
    first |= {(cell.table, "column", cell.column): cell for cell in reversed(tried)}
    where = "--set: " if selection.overrides else ""
    for cell in {cell.key: cell for cell in first.values()}.values():
        with _told(f"{where}{cell} cannot be made of these settings"):
            _build(cell)


def _left_out(
    tables: Sequence[tuple[Paper, Table]], cells: Sequence[Cell], selection: Selection
) -> list[Cell]:
    """In the columns that were asked for, the cells of rows that were not."""
    columns = {key: value for key, value in (selection.only or {}).items() if key not in OF_ROWS}
    every = replace(selection, only=columns, drop=(), seeds=selection.seeds[:1])
    asked = {(cell.table, cell.row) for cell in cells}
    return [
        cell
        for paper, table in tables
        for cell in expand(paper, table, every, skip_unusable=True)
        if (cell.table, cell.row) not in asked
    ]


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Errors of settings as SpecError."""
    try:
        yield
    except (RefusedError, ValueError) as error:
        raise SpecError(f"{what}: {error}") from error
    except (ArithmeticError, LookupError, TypeError) as error:
        raise SpecError(f"{what}: {error!r}") from error


def _build(cell: Cell) -> None:
    config = dict(cell.config)
    method = make_method(registry.find_method(cell.method, cell.plugins), config)
    configuration = Configuration.parse(config)
    measure = registry.find_measure(cell.measure)
    measure.check(config)
    if measure.needs_fit(config):
        data = DataSets(cell.data, cell.public, cell.private, cell.others)
        run = Run(Seeds.moving(cell.seed_axes, cell.seed), StageCache(None, device="meta"), "meta")
        build_federation(configuration, data, type(method), run)
