"""Tries a user's own settings before anything runs: what they make of methods and federations."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.running.execute import make_method
from benchmarks.scenarios.assembly import Run, build_federation
from benchmarks.scenarios.configuration import Configuration
from benchmarks.scenarios.scenario import DataSets
from benchmarks.tables import registry
from benchmarks.tables.cells import Cell
from benchmarks.tables.spec import SpecError
from federation.caching.cache import StageCache
from federation.seeds import Seeds
from results.files import RefusedError


def try_settings(cells: Sequence[Cell]) -> None:
    """Build the method and the federation of the first cell of every row and of every column, on a
    device where nothing is computed.

    Raises SpecError, with the cell, if the settings cannot be used.
    """
    first = {("row", cell.row): cell for cell in reversed(cells)}
    first |= {("column", cell.column): cell for cell in reversed(cells)}
    for cell in {cell.key: cell for cell in first.values()}.values():
        try:
            _build(cell)
        except (RefusedError, ValueError, ArithmeticError, LookupError, TypeError) as error:
            what = str(error) if isinstance(error, RefusedError | ValueError) else repr(error)
            raise SpecError(f"--set: {cell} cannot be made of these settings: {what}") from error


def _build(cell: Cell) -> None:
    config = dict(cell.config)
    method = make_method(registry.find_method(cell.method, cell.plugins), config)
    configuration = Configuration.parse(config)
    if registry.find_measure(cell.measure).needs_fit(config):
        data = DataSets(cell.data, cell.public, cell.private, cell.others)
        run = Run(Seeds.moving(cell.seed_axes, cell.seed), StageCache(None, device="meta"), "meta")
        build_federation(configuration, data, type(method), run)
