"""Rows, columns and seeds of a table become cells, each with its settings and its data."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from benchmarks.tables import registry
from benchmarks.tables.cells import Cell, asks_for_privacy
from benchmarks.tables.defaults import filled
from benchmarks.tables.selection import Selection, matches, table_rows, wanted_values
from benchmarks.tables.spec import HELD_OUT, Paper, Row, Scalar, SpecError, Table
from datasets import catalogue
from datasets.catalogue import ResolvedData
from federation.execution import DEFAULT
from models import weight_files
from privacy.plan import DP_SGD
from results.files import DataError
from results.published import format_column


def _private_data(
    name: str, target: ResolvedData, resolve: Callable[..., ResolvedData]
) -> ResolvedData | None:
    """The clients' data set, or what stands in for it best; the server's own target data only where
    both are of one set.
    """
    if not name:
        return None
    if name == target.asked:
        return target
    return resolve(name, but_not=target.used)


def _sites(config: Mapping[str, Scalar]) -> list[str]:
    """The data sets in `data.name` (`nih-cxr14+chexpert`), and the one that a cell is tested on,
    each once.
    """
    names = [*str(config["data.name"]).split("+"), str(config.get("evaluation.test", ""))]
    return list(dict.fromkeys(filter(None, names)))


def _may_set(name: str, row: Row, config: Mapping[str, Scalar], named: bool) -> bool:
    """Whether `--set` reaches a row: not what the row is defined by, nor a public set where its
    method, which the paper names, uses none.
    """
    without = named and name == "public.name" and not config.get(name)
    return name not in row.config and not without


def _fields_set(
    config: Mapping[str, Scalar], entry: registry.MethodEntry, lineage: Sequence[str]
) -> dict[str, Scalar]:
    """The configuration with every field of a method that the paper does not name: as it is set
    for the method itself, else for the nearest that it derives from, else as its class has it.
    """
    values = {}
    for about in fields(entry.load()):
        names = [f"{name}.{about.name}" for name in lineage]
        value = next((config[name] for name in names if name in config), about.default)
        if about.init and isinstance(value, bool | int | float | str):
            values[names[0]] = value
    return {**config, **values}


def _separable(config: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The configuration with each network's form with GroupNorm, where there is one: BatchNorm
    mixes what DP-SGD has to clip.
    """
    from models.catalogue import networks

    siblings = {
        name: f"{value}-gn" for name, value in config.items() if name.startswith("network.")
    }
    return {
        **config,
        **{name: sibling for name, sibling in siblings.items() if sibling in networks()},
    }


def _private(
    config: Mapping[str, Scalar], entry: registry.MethodEntry, shown: Iterable[str], protocol: str
) -> dict[str, Scalar]:
    """The configuration with what the method declares of its privacy where nobody has set it, or
    without the settings of a privacy that is not asked for; those of the column, `shown`, stay.

    Raises SpecError if it asks for a mechanism that the method has no form for, and if it says
    neither that there is privacy nor that there is none.
    """
    if (asked := config.get("privacy.dp", "no")) not in ("yes", "no"):
        raise SpecError(f"privacy.dp cannot be {asked!r}; known: no, yes")
    if asks_for_privacy(config):
        method = entry.load()
        defaults = method.privacy_defaults(protocol)
        config = {name: value or defaults.get(name, value) for name, value in config.items()}
        protected, mechanism = method.protections(), config["privacy.mechanism"]
        if mechanism not in protected:
            known = (
                f"it has one under {', '.join(sorted(protected))}"
                if protected
                else "it has none at all"
            )
            raise SpecError(
                f"{entry.name} has no private form under {mechanism}; {known}. Leave it out, or"
                " --set privacy.mechanism=..."
            )
        return _separable(config) if mechanism == DP_SGD else dict(config)
    return {
        name: value
        for name, value in config.items()
        if not name.startswith("privacy.") or name in shown
    }


UNREAD = "no row of this selection reads it"
"""What is said of a setting of the user's own that `unread` names."""


def unread(cells: Iterable[Cell], overrides: Iterable[tuple[str, Scalar]]) -> list[str]:
    """The settings among `overrides` that no cell reads."""
    configs = [dict(cell.config) for cell in cells]
    return [
        name
        for name, value in overrides
        if not any(name in config and config[name] == value for config in configs)
    ]


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
    entries = {row.method: registry.find_method(row.method, selection.plugins) for row in rows}
    lineages = {
        name: registry.lineage(name, selection.plugins) for name in entries.keys() - paper.methods
    }
    cells = []
    for column in table.columns:
        for row in rows:
            if not matches(row, column, wanted):
                continue
            entry = entries[row.method]
            config = _config_of(
                paper, table, row, column, selection, entry, lineages.get(row.method, ())
            )
            if not row.applies(config, column):
                continue
            if _other_set(config) and row.upper_bound and "public-labels" in entry.load().oracle:
                continue  # the public set's labels are of other classes
            try:
                sources = _data_of(config, selection)
                config = _private(
                    config,
                    entry,
                    {table.axes[key] for key in column},
                    row.protocol or selection.protocol,
                )
            except (DataError, SpecError):
                if skip_unusable:
                    continue
                raise
            cells += _cells_of(paper, table, row, column, selection, entry, config, sources)
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


def _config_of(
    paper: Paper,
    table: Table,
    row: Row,
    column: Mapping[str, str],
    selection: Selection,
    entry: registry.MethodEntry,
    lineage: Sequence[str],
) -> dict[str, Scalar]:
    """The configuration of a row in a column, with the user's own settings and what the measure
    reads; of a method that the paper does not name, whose `lineage` this is, with all its fields.
    """
    config = paper.config(
        table,
        row,
        column,
        selection.profile,
        row.protocol or selection.protocol,
        dict(selection.overrides),
        lineage,
    )
    config |= {
        name: value
        for name, value in selection.overrides
        if _may_set(name, row, config, named=not lineage)
    }
    measure = registry.find_measure(table.measure)
    config = filled(config, {entry.name, *lineage, *measure.methods(config)})
    if lineage:
        config = _fields_set(config, entry, lineage)
    if measure.extractor:
        embedded = selection.profile == "smoke"
        config["evaluation.extractor"] = weight_files.default_extractor(embedded)
    return config


def _other_set(config: Mapping[str, Scalar]) -> str:
    """The data set of public images that are of another than the clients'; empty for none."""
    return str(config.get("public.name", "")).replace(HELD_OUT, "")


def _data_of(config: Mapping[str, Scalar], selection: Selection) -> dict[str, Any]:
    """The data sets of a configuration, by the fields of `Cell`. Raises DataError as `expand`."""
    resolve = functools.partial(
        catalogue.resolve,
        embedded=selection.profile == "smoke",
        require_real=selection.require_real,
        side=int(config.get("data.image_size", 0)),
    )
    data, *others = (resolve(name) for name in _sites(config))
    other = _other_set(config)
    return {
        "data": data,
        "public": resolve(other) if other else None,
        "private": _private_data(str(config.get("private.name", "")), data, resolve),
        "others": tuple(others),
    }


def _cells_of(
    paper: Paper,
    table: Table,
    row: Row,
    column: Mapping[str, str],
    selection: Selection,
    entry: registry.MethodEntry,
    config: Mapping[str, Scalar],
    sources: Mapping[str, Any],
) -> list[Cell]:
    """The cells of a row in a column, one for each seed, without the settings of other methods and
    measures.
    """
    measure = registry.find_measure(table.measure)
    without = {*registry.methods(selection.plugins)} - {row.method, *measure.methods(config)}
    without |= registry.measure_settings() - measure.settings
    relevant = {name: value for name, value in config.items() if name.split(".")[0] not in without}
    plugins = tuple(str(Path(plugin).resolve()) for plugin in selection.plugins)
    # Federations refuse any other way for private runs.
    is_private = bool(config.get("privacy.mechanism"))
    return [
        Cell(
            table=f"{paper.key}/{table.key}",
            row=row.key,
            column=format_column(dict(column)),
            method=row.method,
            role=row.role,
            measure=table.measure,
            metrics=table.metrics,
            unit=table.unit,
            seed=seed,
            seed_axes=table.seed_axes or paper.seed_axes,
            profile=selection.profile,
            protocol=row.protocol or selection.protocol,
            config=tuple(sorted(relevant.items())),
            plugins=plugins if entry.folder == "plugin" else (),
            device=selection.device,
            threads=selection.threads,
            execution=DEFAULT if is_private else selection.execution,
            **sources,
        )
        for seed in selection.seeds
    ]
