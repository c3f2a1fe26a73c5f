"""Tries a user's own settings before anything runs: what they make of methods and federations."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fedtables.benchmarks.scenarios.assembly import build_federation, make_method
from fedtables.benchmarks.scenarios.configuration import Configuration
from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.cells import Cell
from fedtables.benchmarks.tables.expansion import unread
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import Scalar, SpecError
from fedtables.datasets import catalogue
from fedtables.federation.cache import StageCache
from fedtables.federation.method import Method
from fedtables.federation.parts import Run
from fedtables.federation.seeds import Seeds
from fedtables.models import weight_files
from fedtables.models.catalogue import check_outputs
from fedtables.privacy.plan import DP_SGD, PrivacyPlan
from fedtables.results.files import DataError, RefusedError


def check_cells(cells: Iterable[Cell], *, stand_ins: bool = False) -> None:
    """Make the method and read the configuration of every cell.

    Raises SpecError for the first that cannot be made, DataError for absent weights, and for data
    that stand in for others under the profile `paper`, unless `stand_ins` may.
    """
    named: set[Scalar] = set()
    for cell in cells:
        with _told(str(cell)):
            _parsed(cell)
        for data in cell.sources if cell.profile == "paper" and not stand_ins else ():
            if data.stands_in:
                raise DataError(
                    f"--profile paper takes official data, and {cell} has {data.label}."
                    f" {catalogue.source(data.asked).how_to_get} With --stand-ins it runs as it is"
                )
        named.update(dict(cell.config).values())
        for file in weight_files.needed(dict(cell.config)):
            if not file.path.exists():
                raise DataError(f"{cell} needs {file.name}, which is absent. {file.how_to_get}")
    if weight_files.LITE0 in named:
        weight_files.lite0_path()


def try_settings(cells: Sequence[Cell], selection: Selection) -> None:
    """Build the method, the federation and the networks of the first of these cells in every row
    and in every column, on a device where nothing is computed; methods and privacy of which no cell
    reads a setting, by themselves. Where there are no settings of the user's own, private cells
    alone are tried: their partition may not allow an epsilon.

    Raises SpecError if the settings cannot be used.
    """
    overrides = dict(selection.overrides)
    for name in unread(cells, selection.overrides):
        with _told(f"--set {name}={overrides[name]}"):
            _try_unread(name, overrides[name])
    tried = [cell for cell in cells if overrides or cell.is_private]
    first = {(cell.table, "row", cell.row): cell for cell in reversed(tried)}
    first |= {(cell.table, "column", cell.column): cell for cell in reversed(tried)}
    where = "--set: " if overrides else ""
    for cell in {cell.key: cell for cell in first.values()}.values():
        with _told(f"{where}{cell} cannot be made of these settings"):
            _build(cell)


def _try_unread(name: str, value: Scalar) -> None:
    section, _, parameter = name.partition(".")
    if section in registry.methods():
        make_method(registry.find_method(section), {name: value})
    elif section == "privacy" and parameter != "dp" and value:
        plan: dict[str, Any] = {"mechanism": DP_SGD, "epsilon": 1.0, parameter: value}
        PrivacyPlan(**plan)


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
    method = make_method(registry.find_method(cell.method), config)
    configuration = Configuration.parse(config)
    registry.find_measure(cell.measure).check(config)
    return method, configuration


def _build(cell: Cell) -> None:
    method, configuration = _parsed(cell)
    if registry.find_measure(cell.measure).needs_fit(dict(cell.config)):
        data = DataSets(cell.data, cell.public, cell.private, cell.others)
        run = Run(Seeds.moving(cell.seed_axes, cell.seed), StageCache(None, device="meta"), "meta")
        federation = build_federation(configuration, data, type(method), run)
        check_outputs(federation.networks.initial())
        for client in {(c.network, c.task): c for c in federation.clients}.values():
            check_outputs(federation.networks.initial(client.network, client.task))
