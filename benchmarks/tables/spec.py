"""What a paper's spec file is made of: tables, rows, columns, and settings that carry their source.

A spec holds facts and no code: `benchmarks/papers/dlad.py` is the model for the next paper.
"""

import csv
import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fedtables.federation.execution import DEFAULT, FAST, Execution
from fedtables.results.files import RefusedError

PAPERS = Path(__file__).parents[1] / "papers"
Scalar = bool | int | float | str
SettingValue = Scalar | Mapping[str, Scalar]
"""One value, or one per column: `{"dataset=mnist": 5, "": 15}` takes the first entry whose pairs
all hold.

Pairs name the column's keys, `table`, `row`, `method`, `protocol` or `private` (yes or no); a value
may be one of several, `method=fedavg|fedprox`. A method that the paper does not name counts as the
nearest that it derives from and the paper names.
"""

SETTLED = "evaluation.settled"
TESTED_ON = ".test"
"""Ends the name of a setting that says on which site a cell is tested, and nothing of its fit."""
EVALUATED_ON = "evaluation.on"
VALIDATION_SHARE = "partition.validation_share"
LOOKS = "evaluation.looks"
DUPLICATES = "partition.duplicates"
PLANS = ("local.", "server.")
"""What settings of the plans begin with, by which clients and server train."""
UNLISTED: Mapping[str, Scalar] = {
    SETTLED: 0.5,
    EVALUATED_ON: "test",
    VALIDATION_SHARE: 0.0,
    LOOKS: 0,
    DUPLICATES: True,
}
"""Settings of every paper, as they are here unless it lists them or `--set` says otherwise."""
HELD_OUT = "held-out"
"""The `public.name` of images that are held out of the clients' own data set."""
PROFILES = ("smoke", "cpu", "gpu", "paper")
"""From the smallest to the paper's own."""
ON_CUDA = PROFILES[2:]
"""Those with the paper's networks, which run on CUDA and are planned with the official data."""
PROTOCOLS = ("paper", "released")
SOURCES = ("paper", "code", "assumed", "class")
AS_CLASS = "as its class has it"
"""Stands in a setting for the default of the method's field, whose docstring is its source."""


def usual_device(profile: str) -> str:
    """The device of a profile where none is asked for."""
    return "cuda" if profile in ON_CUDA else "cpu"


def usual_execution(profile: str, device: str, *, chosen: bool = False) -> Execution:
    """How a profile's training runs on a device where neither precision nor compilation is asked
    for; what is left open where one is `chosen`.
    """
    return FAST if profile in ON_CUDA and device.startswith("cuda") and not chosen else DEFAULT


class SpecError(RefusedError):
    """What was asked for does not exist; the message names what does."""


@dataclass(frozen=True)
class Setting:
    """One hyper-parameter: its value at the paper's scale, where that comes from, and what reduced
    profiles use.
    """

    name: str
    """Dotted: `local.epochs`; `dlad.temperature` sets the field of the method `dlad`."""
    paper: SettingValue
    source: str
    """`paper`, `code` (the authors' release), `assumed`, or `class` (the method's docstring)."""
    where: str
    """Section, or the reason of an assumption."""
    cpu: SettingValue | None = None
    """Reduced value for the cpu profile; None keeps the paper's."""
    smoke: SettingValue | None = None
    gpu: SettingValue | None = None
    released: SettingValue | None = None
    """Value under `--protocol released`, where the authors' code departs from the paper."""

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise ValueError(
                f"{self.name}: source must be one of {', '.join(SOURCES)}, not {self.source!r}"
            )

    @property
    def reduced(self) -> dict[str, SettingValue | None]:
        """What each profile has in the paper's place."""
        return {"smoke": self.smoke, "cpu": self.cpu, "gpu": self.gpu, "paper": None}

    @property
    def values(self) -> tuple[SettingValue | None, ...]:
        """All that it can be."""
        return (self.paper, *self.reduced.values(), self.released)

    def value(self, profile: str, protocol: str) -> SettingValue:
        """The value before columns are told apart."""
        reduced = self.reduced[profile]
        if reduced is not None:
            return reduced
        return self.released if protocol == "released" and self.released is not None else self.paper

    def is_reduced(self, profile: str) -> bool:
        """Whether the profile departs from the paper's value."""
        return profile != "paper" and self.value(profile, "paper") != self.paper


def as_class(method: str, names: str) -> tuple[Setting, ...]:
    """Settings of a method, named in a row, that are as its class has them."""
    return tuple(Setting(f"{method}.{name}", AS_CLASS, "class", "") for name in names.split())


def _fits(column: Mapping[str, Any], pair: str) -> bool:
    key, _, wanted = pair.partition("=")
    return str(column.get(key)) in wanted.split("|")


def pick(value: SettingValue, column: Mapping[str, Any]) -> Scalar:
    """The scalar that `value` takes in a column. Raises SpecError if no entry fits."""
    if not isinstance(value, Mapping):
        return value
    for condition, scalar in value.items():
        if all(_fits(column, pair) for pair in condition.split()):
            return scalar
    raise SpecError(
        f"no entry of {dict(value)} fits the column {dict(column)}; add one with the key ''"
    )


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    key: str
    """The slug in `results/published/`."""
    method: str
    """The file name of the method, with hyphens."""
    title: str
    """The printed label."""
    upper_bound: bool = False
    """Whether the method uses knowledge that no real server has; its `oracle` says which."""
    role: str = ""
    """Average only over clients with this kind of network."""
    needs: tuple[str, str] | None = None
    """(configuration name, text): the row exists only in columns whose configuration contains the
    text."""
    absent: tuple[str, ...] = ()
    """Columns for which the paper prints a dash and the row does not exist: pairs such as
    `fraction=1.00`."""
    config: Mapping[str, Scalar] = field(default_factory=dict)
    """Configuration of this row only: what the row is, as the paper's table defines it."""
    protocol: str = ""
    """The row is always run under this protocol; empty for the one asked for."""

    def applies(self, config: Mapping[str, Scalar], column: Mapping[str, str]) -> bool:
        """Whether the row exists in a column with its configuration."""
        if any(_fits(column, pair) for pair in self.absent):
            return False
        return self.needs is None or self.needs[1] in str(config[self.needs[0]]).split("+")


@dataclass(frozen=True)
class Mechanism:
    """Steps of the subsampled Gaussian mechanism, as a paper or its code counts them."""

    noise_multiplier: float
    sample_rate: float
    steps: int
    where: str
    """Where they come from."""


@dataclass(frozen=True)
class Derived:
    """A column whose numbers are computed from other columns of the same row and seed."""

    column: Mapping[str, str]
    of: tuple[Mapping[str, str], ...]
    metrics: tuple[str, ...]
    weights: str = ""
    """The metric that weighs the columns in a mean; empty for their sum."""
    alone: bool = False
    """Whether print has these metrics in no other column, so that claims mean this one."""


@dataclass(frozen=True)
class Expectation:
    """What a table of this suite's own, which no paper prints, is expected to show; stated before
    the seeds that are judged are run.
    """

    id: str
    text: str
    predicate: str
    """By the grammar of `results/published/README.md`; may read the paper's printed numbers."""
    claims: Sequence[str]
    """Ids of the paper's claims that it tests."""


@dataclass(frozen=True)
class Table:
    """A table, or a figure with numbers."""

    key: str
    """`table2` or `figure2`."""
    caption: str
    rows: tuple[Row, ...]
    columns: tuple[Mapping[str, str], ...]
    axes: Mapping[str, str]
    """Which configuration entry each column key sets: `{"dataset": "data.name"}`; an empty one if
    it tells columns apart and sets none by itself."""
    title: str = ""
    """By its key, `Table 2`, if empty."""
    fixed: Mapping[str, Scalar] = field(default_factory=dict)
    """Configuration that is the same in all columns of this table only."""
    measure: str = "final"
    """What is taken from a fitted federation: a measure's name (`benchmarks/measures/`)."""
    metrics: tuple[str, ...] = ("accuracy",)
    unit: str = "fraction"
    """How the paper prints shares such as accuracy, and so do we: `fraction` or `percent`."""
    released: bool = True
    """Whether `--protocol released` makes sense: not if the rows are of what the released code
    lacks."""
    offered: tuple[Row, ...] = ()
    """Rows that the paper does not print, added with `--methods +KEY`."""
    seed_axes: tuple[str, ...] = ()
    """The axes that a seed of `--seeds` moves in this table; those of the paper if empty."""
    mechanism: Mechanism | None = None
    """What the paper's privacy budget was computed for; the protocol card prints its epsilon under
    every convention."""
    x_axis: str = ""
    """The column key that a line plot runs along; bars if empty."""
    scaled: Mapping[str, str] = field(default_factory=dict)
    """Column keys that name a size of the paper's public set, each with the configuration entry
    that limits it."""
    own: str | None = None
    """The row of the paper's own method, which pictures and pages set apart: the last if None, none
    if empty."""
    settings: tuple[Setting, ...] = ()
    """What this table has in place of the paper's settings of the same names, and beside them: for
    a task of its own."""
    derived: tuple[Derived, ...] = ()
    """Columns that no cell measures."""
    unmeasured: tuple[tuple[Mapping[str, str], str], ...] = ()
    """Columns of the paper's table that the suite does not measure, each with the reason."""
    preparatory: bool = False
    """Whether other tables take their settings from it, so that it is computed only if it is named
    and not with all tables of its paper."""

    def __post_init__(self) -> None:
        kind = self.key.rstrip("0123456789abc")
        title = self.title or f"{kind} {self.key.removeprefix(kind)}".strip().capitalize()
        object.__setattr__(self, "title", title)


@dataclass(frozen=True)
class Paper:
    """A paper and the tables that this suite regenerates from it."""

    key: str
    title: str
    citation: str
    settings: tuple[Setting, ...]
    tables: tuple[Table, ...]
    released_code: bool
    """Whether the authors released code that `--protocol released` could follow."""
    seed_axes: tuple[str, ...]
    """The axes that a seed of `--seeds` moves; the others stay at 0."""

    @functools.cached_property
    def notes(self) -> Mapping[str, tuple[str, ...]]:
        """Notes for readers by heading of `papers/KEY.md`: keys of tables, or `""` for all."""
        path = PAPERS / f"{self.key}.md"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        parts = [part.partition("\n") for part in f"\n{text}".split("\n## ")]
        return {
            heading: tuple(" ".join(item.split()) for item in items.split("\n- ")[1:])
            for heading, _, items in parts
        }

    def notes_on(self, table: Table) -> tuple[str, ...]:
        """The notes on all tables, and those on this one."""
        key = table.key.partition(".")[0]
        of_table = [notes for of, notes in self.notes.items() if not of or key in of.split(", ")]
        return tuple(itertools.chain(*of_table))

    def expectations(self, table: Table) -> tuple[Expectation, ...]:
        """What a table that no paper prints is judged by: lines of `papers/expectations.csv`."""
        name = f"{self.key}/{table.key.partition('.')[0]}"
        with (PAPERS / "expectations.csv").open(encoding="utf-8", newline="") as file:
            return tuple(
                Expectation(line["id"], line["text"], line["predicate"], line["claims"].split())
                for line in csv.DictReader(file)
                if line["table"] == name
            )

    def settings_of(self, table: Table) -> tuple[Setting, ...]:
        """The settings of a table: its own, and those of the paper that it does not replace."""
        own = {setting.name for setting in table.settings}
        return (*table.settings, *(s for s in self.settings if s.name not in own))

    @functools.cached_property
    def every_setting(self) -> tuple[Setting, ...]:
        """The settings of the paper and of all its tables."""
        return (*self.settings, *(s for table in self.tables for s in table.settings))

    @functools.cached_property
    def methods(self) -> frozenset[str]:
        """The methods that its rows or settings name."""
        rows = (row for table in self.tables for row in (*table.rows, *table.offered))
        pairs = (
            pair.partition("=")
            for setting in self.every_setting
            for value in setting.values
            if isinstance(value, Mapping)
            for condition in value
            for pair in condition.split()
        )
        return frozenset(
            {row.method for row in rows}
            | {setting.name.partition(".")[0] for setting in self.every_setting}
            | {name for key, _, names in pairs if key == "method" for name in names.split("|")}
        )

    def config(
        self,
        table: Table,
        row: Row,
        column: Mapping[str, str],
        profile: str,
        protocol: str,
        overrides: Mapping[str, Scalar] = MappingProxyType({}),
        lineage: Sequence[str] = (),
    ) -> dict[str, Scalar]:
        """The resolved configuration of a row in a column, before the user's `overrides`, which may
        make it private.

        `lineage` are the row's method and those that it derives from, nearest first, where the
        paper does not name it.
        """
        of_column = {
            entry: _scalar(value) for key, value in column.items() if (entry := table.axes[key])
        }
        config: dict[str, Scalar] = {**table.fixed, **of_column, **row.config}
        asked = {**overrides, **config}
        private = (
            asked.get("privacy.epsilon", math.inf) != math.inf and asked.get("privacy.dp") != "no"
        )
        facts = {
            "private": "yes" if private else "no",
            "table": table.key.partition(".")[0],
            "row": row.key,
            "method": next((name for name in lineage if name in self.methods), row.method),
            "protocol": protocol,
        }
        known = {
            **{
                key: str(table.fixed[entry])
                for key, entry in table.axes.items()
                if entry in table.fixed
            },
            **column,
            **facts,
        }
        for setting in self.settings_of(table):
            config.setdefault(setting.name, pick(setting.value(profile, protocol), known))
        return config


def _scalar(text: str) -> Scalar:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def grid(**keys: tuple[str, ...]) -> tuple[dict[str, str], ...]:
    """All combinations, the last key varying fastest: `grid(dataset=("mnist",),
    distribution=("iid", "niid1"))`.
    """
    return tuple(
        dict(zip(keys, values, strict=True)) for values in itertools.product(*keys.values())
    )
