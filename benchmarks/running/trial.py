"""Tries a user's own settings before anything runs: what they make of methods and federations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.scenarios.assembly import Run, build_federation, make_method
from benchmarks.scenarios.configuration import Configuration
from benchmarks.scenarios.scenario import DataSets
from benchmarks.tables import registry
from benchmarks.tables.cells import Cell
from benchmarks.tables.expansion import expand, unread
from benchmarks.tables.selection import Selection
from benchmarks.tables.spec import Paper, SpecError, Table
from federation.cache import StageCache
from federation.method import Method
from federation.seeds import Seeds
from privacy.plan import DP_SGD, PrivacyPlan
from results.files import RefusedError

OF_ROWS = ("row", "method")
"""Keys of `--only` that choose rows; the others choose columns."""


def check_cells(cells: Iterable[Cell]) -> None:
    """Make the method and read the configuration of every cell. Raises SpecError for the first that
    cannot be made, with what is wrong.
    """
    for cell in cells:
        with _told(str(cell)):
            _parsed(cell)


def try_settings(
    tables: Sequence[tuple[Paper, Table]], cells: Sequence[Cell], selection: Selection
) -> None:
    """Build the method, the federation and the networks of the first of these tables' `cells` in
    every row and in every column, on a device where nothing is computed. Settings that no cell
    reads are tried in rows that were not asked for, in other tables of the paper, or alone. Where
    there are no settings of the user's own, private cells alone are tried: their partition may not
    allow an epsilon.

    Raises SpecError if the settings cannot be used.
    """
    tried = list(cells) if selection.overrides else [cell for cell in cells if cell.is_private]
    ignored = {n: dict(selection.overrides)[n] for n in unread(cells, selection.overrides)}
    left_out = _left_out(tables, cells, selection) if ignored else []
    for name, value in ignored.items():
        method, _, parameter = name.partition(".")
        with _told(f"--set {name}={value}"):
            if method in registry.methods(selection.plugins):
                entry = registry.find_method(method, selection.plugins)
                own = [dict(cell.config) for cell in left_out if cell.method == method]
                for config in own or [{name: value}]:
                    make_method(entry, config)
            elif method == "privacy" and value and name != "privacy.dp":
                # `expand` leaves these out where there is no privacy
                plan: dict[str, Any] = {"mechanism": DP_SGD, "epsilon": 1.0, parameter: value}
                PrivacyPlan(**plan)
            elif cell := _reader(tables, replace(selection, overrides=((name, value),))):
                _parsed(cell)
    first = {(cell.table, "row", cell.row): cell for cell in reversed(tried)}
    first |= {(cell.table, "column", cell.column): cell for cell in reversed(tried)}
    where = "--set: " if selection.overrides else ""
    for cell in {cell.key: cell for cell in first.values()}.values():
        with _told(f"{where}{cell} cannot be made of these settings"):
            _build(cell)


def _reader(tables: Sequence[tuple[Paper, Table]], selection: Selection) -> Cell | None:
    """The first cell of any table of these papers that reads the selection's one setting."""
    every = replace(selection, only=None, add=(), drop=(), seeds=selection.seeds[:1])
    for paper in {paper.key: paper for paper, _ in tables}.values():
        for table in paper.tables:
            with contextlib.suppress(SpecError):  # of a column that sets it
                for cell in expand(paper, table, every, skip_unusable=True):
                    if not unread([cell], selection.overrides):
                        return cell
    return None


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


def _parsed(cell: Cell) -> tuple[Method, Configuration]:
    """The method and the configuration of a cell, whose measure can be taken of it."""
    config = dict(cell.config)
    method = make_method(registry.find_method(cell.method, cell.plugins), config)
    configuration = Configuration.parse(config)
    registry.find_measure(cell.measure).check(config)
    return method, configuration


def _build(cell: Cell) -> None:
    method, configuration = _parsed(cell)
    if registry.find_measure(cell.measure).needs_fit(dict(cell.config)):
        data = DataSets(cell.data, cell.public, cell.private, cell.others)
        run = Run(Seeds.moving(cell.seed_axes, cell.seed), StageCache(None, device="meta"), "meta")
        federation = build_federation(configuration, data, type(method), run)
        federation.networks.initial()
        for client in {(c.network, c.task): c for c in federation.clients}.values():
            federation.networks.initial(client.network, client.task)
