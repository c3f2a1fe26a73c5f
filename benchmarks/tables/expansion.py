"""Rows, columns and seeds of a table become cells, each with its settings and its data."""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.cells import Cell, asks_for_privacy, with_plugins
from fedtables.benchmarks.tables.defaults import filled
from fedtables.benchmarks.tables.selection import Selection, matches, table_rows, wanted_values
from fedtables.benchmarks.tables.spec import HELD_OUT, Paper, Row, Scalar, SpecError, Table
from fedtables.datasets import catalogue
from fedtables.datasets.catalogue import ResolvedData
from fedtables.federation.execution import DEFAULT
from fedtables.models import weight_files
from fedtables.privacy.plan import DP_SGD
from fedtables.results.files import DataError
from fedtables.results.published import format_column

if TYPE_CHECKING:
    from fedtables.federation.method import Method

UNREAD = "no row of this selection reads it"
"""What is said of a setting of the user's own that `unread` names."""


def unread(cells: Iterable[Cell], overrides: Iterable[tuple[str, Scalar]]) -> list[str]:
    """The settings among `overrides` that no cell reads."""
    read = {setting for cell in cells for setting in cell.config}
    return [name for name, value in overrides if (name, value) not in read]


def expand(
    paper: Paper, table: Table, selection: Selection, skip_unusable: bool = False
) -> list[Cell]:
    """The cells of a table, rows within columns, in print order.

    Raises SpecError for a selection that fits nothing, DataError for data that `require_real`
    misses or that are damaged; with `skip_unusable` the columns of such data are left out.
    """
    _check_protocol(paper, table, selection)
    rows = table_rows(table, selection)
    _check_settings(table, selection)
    wanted = wanted_values(table, rows, selection.only or {})
    entries = {row.method: registry.find_method(row.method) for row in rows}
    lineages = {name: registry.lineage(name) for name in entries.keys() - paper.methods}
    # Each class and each data set is looked for once: plug-ins and folders are read at every call.
    loads = {name: functools.cache(entry.load) for name, entry in entries.items()}
    resolve = functools.cache(
        functools.partial(
            catalogue.resolve,
            embedded=selection.profile == "smoke",
            require_real=selection.require_real,
        )
    )
    cells = []
    for column in table.columns:
        for row in rows:
            if not matches(row, column, wanted):
                continue
            name = row.method
            entry, lineage, load = entries[name], lineages.get(name, ()), loads[name]
            place = _Place(paper, table, row, column, selection, entry, lineage, load, resolve)
            config = place.config()
            if not row.applies(config, column) or place.has_other_labels(config):
                continue
            try:
                cells += place.cells(config)
            except (DataError, SpecError):
                if not skip_unusable:
                    raise
    if not cells:
        raise SpecError(
            f"nothing of {table.key} is left to run; loosen --only or --methods (a method that"
            " reads public labels has no cell where the public set is of another data set, whose"
            " classes are not the task's)"
        )
    return cells


def _check_protocol(paper: Paper, table: Table, selection: Selection) -> None:
    """Raise SpecError if the selection's protocol is none that the table has."""
    if selection.protocol == "released" and not paper.released_code:
        raise SpecError(
            f"--protocol released: the authors of {paper.key} released no code; only --protocol"
            " paper exists"
        )
    if selection.protocol == "released" and not table.released:
        raise SpecError(
            f"--protocol released: the rows of {table.key} are variants of the paper's equations,"
            " which the released code lacks; another table may offer it as a row (`show` lists"
            " offered rows)"
        )


def _check_settings(table: Table, selection: Selection) -> None:
    """Raise SpecError for settings of the user's own that the table's columns set."""
    shown = {table.axes[key] for column in table.columns for key in column}
    for name, _ in selection.overrides:
        if name in shown:
            raise SpecError(
                f"--set {name}: the columns of {table.key} set it; choose among them with --only"
            )


@dataclass(frozen=True)
class _Place:
    """A row in a column of a table, and what is asked of it."""

    paper: Paper
    table: Table
    row: Row
    column: Mapping[str, str]
    selection: Selection
    entry: registry.MethodEntry
    lineage: tuple[str, ...]
    """Of a method that the paper does not name; else empty."""
    load: Callable[[], "type[Method]"]
    resolve: Callable[..., ResolvedData]
    """`catalogue.resolve` for the selection."""

    @property
    def protocol(self) -> str:
        return self.row.protocol or self.selection.protocol

    def config(self) -> dict[str, Scalar]:
        """The configuration, with the user's own settings and what the measure reads; of a method
        that the paper does not name with all its fields.
        """
        overrides, profile = self.selection.overrides, self.selection.profile
        config = self.paper.config(
            *(self.table, self.row, self.column, profile, self.protocol),
            dict(overrides),
            self.lineage,
        )
        config |= {name: value for name, value in overrides if self._may_set(name, config)}
        measure = registry.find_measure(self.table.measure)
        config = filled(config, {self.entry.name, *self.lineage, *measure.methods(config)})
        if self.lineage:
            config |= self._fields_set(config)
        if measure.extractor:
            config["evaluation.extractor"] = weight_files.default_extractor(profile == "smoke")
        return config

    def _may_set(self, name: str, config: Mapping[str, Scalar]) -> bool:
        """Whether `--set` reaches the row: not what the row is defined by, nor a public set where
        its method, which the paper names, uses none.
        """
        without = not self.lineage and name == "public.name" and not config.get(name)
        return name not in self.row.config and not without

    def _fields_set(self, config: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Every field of a method that the paper does not name: as it is set for the method
        itself, else for the nearest that it derives from, else as its class has it.
        """
        values = {}
        for about in fields(self.load()):
            names = [f"{name}.{about.name}" for name in self.lineage]
            value = next((config[name] for name in names if name in config), about.default)
            if about.init and isinstance(value, bool | int | float | str):
                values[names[0]] = value
        return values

    def has_other_labels(self, config: Mapping[str, Scalar]) -> bool:
        """Whether the row learns from the labels of public images that are of other classes."""
        if not _other_set(config) or not self.row.upper_bound:
            return False
        return "public-labels" in self.load().oracle

    def cells(self, config: Mapping[str, Scalar]) -> list[Cell]:
        """One for each seed, without the settings of other methods and measures. Raises DataError
        and SpecError as `expand`.
        """
        selection, table, row = self.selection, self.table, self.row
        data, public, private, others = _data_of(config, self.resolve)
        config = self._private(config)
        measure = registry.find_measure(table.measure)
        without = {*registry.methods()} - {row.method, *measure.methods(config)}
        without |= registry.measure_settings() - measure.settings
        relevant = [(n, value) for n, value in config.items() if n.split(".")[0] not in without]
        # Federations refuse any other way for private runs.
        is_private = bool(config.get("privacy.mechanism"))
        cells = (
            Cell(
                table=f"{self.paper.key}/{table.key}",
                row=row.key,
                column=format_column(dict(self.column)),
                method=row.method,
                role=row.role,
                measure=table.measure,
                metrics=table.metrics,
                unit=table.unit,
                seed=seed,
                seed_axes=table.seed_axes or self.paper.seed_axes,
                profile=selection.profile,
                protocol=self.protocol,
                config=tuple(sorted(relevant)),
                data=data,
                public=public,
                private=private,
                others=others,
                device=selection.device,
                threads=selection.threads,
                execution=DEFAULT if is_private else selection.execution,
            )
            for seed in selection.seeds
        )
        return [with_plugins(cell) for cell in cells]

    def _private(self, config: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """The configuration with what the method declares of its privacy where nobody has set it,
        or without the settings of a privacy that is not asked for; those of the column stay.

        Raises SpecError if it asks for a mechanism that the method has no form for, and if it says
        neither that there is privacy nor that there is none.
        """
        if (asked := config.get("privacy.dp", "no")) not in ("yes", "no"):
            raise SpecError(f"privacy.dp cannot be {asked!r}; known: no, yes")
        if not asks_for_privacy(config):
            shown = {self.table.axes[key] for key in self.column}
            return {n: v for n, v in config.items() if not n.startswith("privacy.") or n in shown}
        method = self.load()
        defaults = method.privacy_defaults(self.protocol)
        config = {name: value or defaults.get(name, value) for name, value in config.items()}
        protected, mechanism = method.protections(), config["privacy.mechanism"]
        if mechanism not in protected:
            forms = f"one under {', '.join(sorted(protected))}" if protected else "none at all"
            raise SpecError(
                f"{self.entry.name} has no private form under {mechanism}; it has {forms}. Leave it"
                " out, or --set privacy.mechanism=..."
            )
        return _separable(config) if mechanism == DP_SGD else dict(config)


def _separable(config: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The configuration with each network's form with GroupNorm, where there is one: BatchNorm
    mixes what DP-SGD has to clip.
    """
    from fedtables.models.catalogue import networks

    of_networks = {name: f"{v}-gn" for name, v in config.items() if name.startswith("network.")}
    return {**config, **{name: v for name, v in of_networks.items() if v in networks()}}


def _other_set(config: Mapping[str, Scalar]) -> str:
    """The data set of public images that are of another than the clients'; empty for none."""
    return str(config.get("public.name", "")).replace(HELD_OUT, "")


def _data_of(
    config: Mapping[str, Scalar], resolve: Callable[..., ResolvedData]
) -> tuple[ResolvedData, ResolvedData | None, ResolvedData | None, tuple[ResolvedData, ...]]:
    """The data sets of a configuration: the first in `data.name`, that of public images, that of
    the clients' samples where the target is of another, and further sites, of which the last may
    be there for its test set alone. Raises DataError as `expand`.
    """
    resolve = functools.partial(resolve, side=int(config.get("data.image_size", 0)))
    names = [*str(config["data.name"]).split("+"), str(config.get("evaluation.test", ""))]
    data, *others = map(resolve, dict.fromkeys(filter(None, names)))
    public = resolve(other) if (other := _other_set(config)) else None
    private = None
    if name := str(config.get("private.name", "")):
        # The server's own target data only where both are of one set.
        private = data if name == data.asked else resolve(name, but_not=data.used)
    return data, public, private, tuple(others)
