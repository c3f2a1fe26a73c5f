"""From a table's spec to its cells: pure data, hashable, printable; a worker process gets a cell
and nothing else.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.tables import registry
from benchmarks.tables.spec import Paper, Row, Scalar, SpecError, Table, Value
from datasets import catalogue
from datasets.catalogue import ResolvedData
from federation.training.execution import DEFAULT, Execution
from models import weight_files
from privacy.plan import DP_SGD
from results.files import DataError, digest
from results.names import near
from results.published import format_column
from results.sourcecode import folder_modules, package_versions, source_digest


@dataclass(frozen=True)
class Cell:
    """One row x column of one table for one seed."""

    table: str
    row: str
    column: str
    method: str
    role: str
    measure: str
    metrics: tuple[str, ...]
    unit: str
    seed: int
    seed_axes: tuple[str, ...]
    profile: str
    protocol: str
    config: tuple[tuple[str, Scalar], ...]
    """Resolved configuration, without the fields of other methods."""
    data: ResolvedData
    public: ResolvedData | None = None
    """The data set of the public images, where it is another."""
    private: ResolvedData | None = None
    """The data set of the clients' samples, where the target data are of another."""
    others: tuple[ResolvedData, ...] = ()
    """The data sets of further sites, and of a test set that is none of the clients'."""
    plugins: tuple[str, ...] = ()
    device: str = "cpu"
    threads: int = 1
    execution: Execution = DEFAULT

    @property
    def sources(self) -> tuple[ResolvedData, ...]:
        """Every data set that it reads."""
        return tuple(
            source
            for source in (self.data, self.public, self.private, *self.others)
            if source is not None
        )

    @property
    def key(self) -> str:
        """Digest of everything that determines the cell's numbers, except the code."""
        data = [
            {"asked": source.asked, "used": source.used, "digest": source.digest}
            for source in self.sources
        ]
        identity = {
            "table": self.table,
            "row": self.row,
            "column": self.column,
            "method": self.method,
            "role": self.role,
            "measure": self.measure,
            "metrics": self.metrics,
            "unit": self.unit,
            "seed": self.seed,
            "axes": self.seed_axes,
            "profile": self.profile,
            "protocol": self.protocol,
            "config": self.config,
            "data": data,
            "device": self.device.split(":")[0],
            "threads": self.threads,
            "execution": self.execution.to_json(),
        }
        return digest(identity)

    @property
    def code(self) -> str:
        """Digest of the source that computes it and reads its data, and of the packages it computes
        with.
        """
        config = dict(self.config)
        others = registry.find_measure(self.measure).methods(config)
        return _code(
            (self.method, *others),
            self.measure,
            registry.find_scenario(str(config.get("data.task", registry.TASK))).module,
            tuple(source.used for source in self.sources),
            self.plugins,
        )

    def __str__(self) -> str:
        return f"{self.table} {self.row} {self.column} seed {self.seed}"


@functools.cache
def _code(
    methods: tuple[str, ...],
    measure: str,
    scenario: str,
    data: tuple[str, ...],
    plugins: tuple[str, ...],
) -> str:
    """Digest of the code that runs any cell, and of what is a cell's own: methods, measure,
    scenario and readers of data.
    """
    base = source_digest(
        "benchmarks.running.execute",
        registry.measure_module(measure),
        scenario,
        *folder_modules("models.networks"),
    )
    of_methods = [registry.find_method(method, plugins).code for method in methods]
    readers = [catalogue.reader_digest(name) for name in data]
    return digest([base, *of_methods, readers, package_versions()])


@dataclass(frozen=True)
class Selection:
    """What of a table to run, as the command line asks for it."""

    profile: str = "smoke"
    protocol: str = "paper"
    seeds: tuple[int, ...] = (0,)
    only: Mapping[str, str] | None = None
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    require_real: bool = False
    device: str = "cpu"
    threads: int = 1
    execution: Execution = DEFAULT
    overrides: tuple[tuple[str, Scalar], ...] = ()
    """Settings of the user's own, from `--set`."""

    @property
    def variant(self) -> str:
        """What sets this selection's files apart from the table's own: protocol, overrides,
        execution; empty for none.
        """
        own = f"set-{digest(self.overrides)[:8]}" if self.overrides else ""
        protocol = self.protocol if self.protocol != "paper" else ""
        return ".".join(part for part in (protocol, own, self.execution.label) if part)


def parse_overrides(
    pairs: Iterable[str], paper: Paper, plugins: Sequence[str] = ()
) -> tuple[tuple[str, Scalar], ...]:
    """`["local.epochs=2"]` as settings of `paper`, or fields of methods.

    Raises SpecError for an unknown one or a value of another kind.
    """
    known: dict[str, Value] = {setting.name: setting.paper for setting in paper.settings}
    overrides: dict[str, Scalar] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not text:
            raise SpecError(
                f"--set takes setting=value, for example --set local.epochs=2; got {pair!r}"
            )
        method = name.partition(".")[0]
        if name not in known and method in registry.methods(plugins):
            for own in dataclasses.fields(registry.find_method(method, plugins).load()):
                default: Any = own.default
                known[f"{method}.{own.name}"] = default
        if name not in known:
            raise SpecError(f"--set {name}: {paper.key} has no such setting; {near(name, known)}")
        paper_value = known[name]
        example = (
            next(iter(paper_value.values())) if isinstance(paper_value, Mapping) else paper_value
        )
        overrides[name] = _parse_like(example, text, name)
    return tuple(sorted(overrides.items()))


def _parse_like(example: Scalar, text: str, name: str) -> Scalar:
    if isinstance(example, bool):
        if text not in ("true", "false"):
            raise SpecError(f"--set {name}={text}: it is true or false")
        return text == "true"
    if isinstance(example, str):
        return text
    try:
        return int(text) if isinstance(example, int) else float(text)
    except ValueError:
        raise SpecError(
            f"--set {name}={text}: it is a{' whole' if isinstance(example, int) else ''} number"
        ) from None


def parse_only(pairs: Iterable[str]) -> dict[str, str]:
    """`["dataset=mnist", "row=global-dlad"]` as a mapping. Raises SpecError for anything but
    key=value.
    """
    only: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key or not value:
            raise SpecError(
                f"--only takes key=value, for example --only dataset=mnist; got {pair!r}"
            )
        only[key] = f"{only[key]},{value}" if key in only else value
    return only


def parse_methods(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`"+mine,-global-avg"` as names to add and rows to drop. Raises SpecError for a name without
    sign.
    """
    add: list[str] = []
    drop: list[str] = []
    for name in (part.strip() for part in text.split(",") if part.strip()):
        if name[0] not in "+-":
            raise SpecError(
                f"--methods takes +name to add and -name to drop; did you mean +{name} or -{name}?"
            )
        (add if name[0] == "+" else drop).append(name[1:])
    return tuple(add), tuple(drop)


def table_rows(table: Table, selection: Selection) -> tuple[Row, ...]:
    """The table's rows with `--methods` applied. Raises SpecError for a name that is neither row
    nor method.
    """
    rows = list(table.rows)
    for name in selection.drop:
        kept = [row for row in rows if name not in (row.key, row.method)]
        if len(kept) == len(rows):
            raise SpecError(
                f"--methods -{name}: {table.key} has no such row;"
                f" {near(name, [r.key for r in table.rows])}"
            )
        rows = kept
    offered = {row.key: row for row in table.offered}
    for name in selection.add:
        if name in [row.key for row in rows]:
            raise SpecError(f"--methods +{name}: {table.key} has that row already")
        if name in offered:
            rows.append(offered[name])
            continue
        entry = registry.find_method(name, selection.plugins)
        if refusal := registry.find_measure(table.measure).takes_no_method:
            raise SpecError(
                f"--methods +{name}: {table.key} {refusal}, no method can be added to it"
            )
        method = entry.load()
        rows.append(Row(name, name, method.title or name, upper_bound=bool(method.oracle)))
    if not rows:
        raise SpecError("--methods left no row")
    return tuple(rows)


def matches(row: Row, column: Mapping[str, str], only: Mapping[str, str]) -> bool:
    """Whether `--only` takes a row in a column."""
    facts = {"row": row.key, "method": row.method, **column}
    return all(
        value in wanted.split(",") for key, wanted in only.items() for value in [facts.get(key, "")]
    )


def _check_only(table: Table, rows: Sequence[Row], only: Mapping[str, str]) -> None:
    values: dict[str, set[str]] = {"row": {r.key for r in rows}, "method": {r.method for r in rows}}
    for column in table.columns:
        for key, value in column.items():
            values.setdefault(key, set()).add(value)
    for key, wanted in only.items():
        if key not in values:
            raise SpecError(
                f"--only {key}=...: {table.key} has no key {key!r}; {near(key, values)}"
            )
        for value in wanted.split(","):
            if value not in values[key]:
                raise SpecError(
                    f"--only {key}={value}: {table.key} has no such value;"
                    f" {near(value, values[key])}"
                )


def _private_data(
    name: str, target: ResolvedData, embedded: bool, require_real: bool
) -> ResolvedData | None:
    """The clients' data set, or what stands in for it best; the server's own target data only where
    both are of one set.
    """
    if not name:
        return None
    if name == target.asked:
        return target
    return catalogue.resolve(
        name, embedded=embedded, require_real=require_real, but_not=target.used
    )


def _sites(config: Mapping[str, Scalar]) -> list[str]:
    """The data sets in `data.name` (`nih-cxr14+chexpert`), and the one that a cell is tested on,
    each once.
    """
    names = [*str(config["data.name"]).split("+"), str(config.get("evaluation.test", ""))]
    return list(dict.fromkeys(filter(None, names)))


def _may_set(name: str, row: Row, config: Mapping[str, Scalar]) -> bool:
    """Whether `--set` reaches a row: not what the row is defined by, nor a public set where its
    method uses none.
    """
    return name not in row.config and not (name == "public.name" and not config.get(name))


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

    Raises SpecError if it asks for a mechanism that the method has no form for.
    """
    if config.get("privacy.dp") == "yes" and config["privacy.epsilon"] != math.inf:
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


def expand(
    paper: Paper, table: Table, selection: Selection, skip_unusable: bool = False
) -> list[Cell]:
    """The cells of a table, rows within columns, in print order.

    Raises SpecError for a selection that fits nothing, DataError for data that `require_real`
    misses or that are damaged; with `skip_unusable` the columns of such data are left out.
    """
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
    rows = table_rows(table, selection)
    only = selection.only or {}
    shown = {table.axes[key] for column in table.columns for key in column}
    for name, _ in selection.overrides:
        if name in shown:
            raise SpecError(
                f"--set {name}: the columns of {table.key} set it; choose among them with --only"
            )
    _check_only(table, rows, only)
    known = set(registry.methods(selection.plugins))
    entries = {row.method: registry.find_method(row.method, selection.plugins) for row in rows}
    measure = registry.find_measure(table.measure)
    of_other_measures = registry.measure_settings() - measure.settings
    cells = []
    for column in table.columns:
        for row in rows:
            if not matches(row, column, only):
                continue
            protocol = row.protocol or selection.protocol
            config = paper.config(
                table, row, column, selection.profile, protocol, dict(selection.overrides)
            )
            config |= {
                name: value for name, value in selection.overrides if _may_set(name, row, config)
            }
            if not row.applies(config, column):
                continue
            entry = entries[row.method]
            other = str(config.get("public.name", ""))
            if other and row.upper_bound and "public-labels" in entry.load().oracle:
                continue  # the public set's labels are of other classes
            embedded = selection.profile == "smoke"
            if measure.extractor:
                config["evaluation.extractor"] = weight_files.default_extractor(embedded)
            try:
                data, *others = (
                    catalogue.resolve(name, embedded=embedded, require_real=selection.require_real)
                    for name in _sites(config)
                )
                public = (
                    catalogue.resolve(other, embedded=embedded, require_real=selection.require_real)
                    if other
                    else None
                )
                private = _private_data(
                    str(config.get("private.name", "")), data, embedded, selection.require_real
                )
            except DataError:
                if skip_unusable:
                    continue
                raise
            try:
                config = _private(config, entry, {table.axes[key] for key in column}, protocol)
            except SpecError:
                if skip_unusable:
                    continue
                raise
            without = known - {row.method, *measure.methods(config)} | of_other_measures
            own = {
                name: value for name, value in config.items() if name.split(".")[0] not in without
            }
            plugins = tuple(str(Path(p).resolve()) for p in selection.plugins)
            needed = plugins if entry.folder == "plugin" else ()
            for seed in selection.seeds:
                cells.append(
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
                        protocol=protocol,
                        config=tuple(sorted(own.items())),
                        data=data,
                        public=public,
                        private=private,
                        others=tuple(others),
                        plugins=needed,
                        device=selection.device,
                        threads=selection.threads,
                        execution=selection.execution,
                    )
                )
    if not cells:
        raise SpecError(
            f"nothing of {table.key} is left to run; loosen --only or --methods (a method that"
            " reads public labels has no cell where the public set is of another data set, whose"
            " classes are not the task's)"
        )
    return cells
