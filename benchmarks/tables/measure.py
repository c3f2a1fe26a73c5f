"""What is taken from a fitted federation: the interface of the files in `benchmarks/measures/`.

A measure is known by its name in its file's `MEASURES`. It says what it needs of a cell before
anything runs, so its module imports no framework: `take` does where it needs one.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedtables.benchmarks.tables.spec import LOOKS, Scalar, SpecError
from fedtables.metrics.names import DEFINED, OF, facts
from fedtables.results.record import Measurement

if TYPE_CHECKING:
    from fedtables.datasets.catalogue import ResolvedData
    from fedtables.federation.data import Checkpoint
    from fedtables.federation.federation import Federation
    from fedtables.federation.method import Method
    from fedtables.federation.seeds import Seeds

Config = Mapping[str, Scalar]


@dataclass(frozen=True)
class FittedCell:
    """A cell's federation after its method's fit, and what of the cell a measure may ask."""

    config: Config
    metrics: tuple[str, ...]
    """Those of the table."""
    unit: str
    """How the table prints shares: `fraction`, `percent`, or empty."""
    role: str
    """Only clients with this kind of network count; all if empty."""
    name: str
    """The method's."""
    sources: tuple[ResolvedData, ...]
    """Every data set that the cell reads."""
    seeds: Seeds
    federation: Federation
    method: Method
    fitted: Sequence[Checkpoint]
    """What the method left; nothing where the measure needs no fit."""
    on_meta: Callable[[Config], Federation]
    """Builds the same federation again on the `meta` device, where a fit computes nothing, but for
    the settings that are given."""
    other_method: Callable[[str], Method]
    """Makes the method of a name, with the fields that the configuration sets."""

    @property
    def models(self) -> list[Checkpoint]:
        """The models whose numbers are averaged: all, or those of clients of the row's role; none
        of a client without samples. Raises ValueError if nothing is left of what was fitted.
        """
        empty = {f"client-{c.index}" for c in self.federation.clients if not c.size}
        models = [model for model in self._of_role if model.owner not in empty]
        if self.fitted and not models:
            raise ValueError("no client of this row holds a sample; its networks never trained")
        return models

    @property
    def over_models(self) -> str:
        """`mean over models`, and of how many clients where some hold no samples; empty for a
        single model.
        """
        count, of = len(self.models), len(self._of_role)
        if count < of:
            return f"mean over the models of {count} of {of} clients, the others hold no samples"
        return "mean over models" if count > 1 else ""

    @property
    def _of_role(self) -> list[Checkpoint]:
        owners = {f"client-{c.index}" for c in self.federation.clients if c.role == self.role}
        return [model for model in self.fitted if not self.role or model.owner in owners]

    @property
    def percent(self) -> int:
        """What a share is multiplied with: 100 in a table that prints percent, else 1."""
        return 100 if self.unit == "percent" else 1

    def scale(self, metric: str) -> int:
        """What a value of `metric` is multiplied with: `percent` for a share, else 1."""
        return self.percent if facts(metric).share else 1


def mean_of_numbers(values: Any) -> Any:
    """The mean over the first axis of those of some values that are numbers; NaN if none is."""
    import numpy as np

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        return np.nanmean(values, axis=0)


def counted(
    metric: str, mean: float, counts: Sequence[tuple[int, int]], column: str = ""
) -> Measurement:
    """A mean over models and sites, and of how many values it is: the sums of `counts`, of each how
    many are defined and how many there are.
    """
    defined, of = (sum(parts) for parts in zip(*counts, strict=True))
    return Measurement(metric, float(mean), column, defined, of)


def count_in(
    history: Mapping[str, Sequence[float]], metric: str, places: Sequence[int] = (0,)
) -> tuple[int, int]:
    """Of how many of how many values a metric is a mean at the `places` of its history, the fewest.
    What has no count is one value.
    """
    if metric + DEFINED not in history:
        return int(not any(math.isnan(history[metric][place]) for place in places)), 1
    pairs = zip(history[metric + DEFINED], history[metric + OF], strict=True)
    counts = [(int(defined), int(of)) for defined, of in pairs]
    return min(counts[place] for place in places)


@dataclass(frozen=True)
class Taken:
    """A cell's numbers, and how they came about."""

    measurements: tuple[Measurement, ...]
    statistic: str
    """How the numbers were made from the run, in words."""
    arrays: str = ""
    """What a picture is drawn from, as `fedtables.results.arrays.pack` gives it."""


class Measure(ABC):
    """One measure; its file has an instance of it in `MEASURES`, by name."""

    numbers: bool = False
    """Whether a cell has one number per metric, so that a table can be swept over budgets, and
    claims about other tables may rest on it."""
    settings: frozenset[str] = frozenset()
    """First words of settings that concern no cell but those of measures that name them."""
    every_epoch: bool = False
    """Whether it reads a run after every epoch and round, so that `evaluation.looks` must be 0."""
    extractor: bool = False
    """Whether it judges images by a pre-trained network, which `evaluation.extractor` names."""
    takes_no_method: str = ""
    """Why `--methods` cannot add a row, as what the table does; empty where it can."""

    def check(self, config: Config) -> None:
        """Raises SpecError for a configuration that it cannot be taken of."""
        if self.every_epoch and config.get(LOOKS):
            raise SpecError(f"this table is of every epoch and round: set {LOOKS} to 0")

    def needs_fit(self, config: Config) -> bool:
        """Whether a cell of this configuration needs its method's fit."""
        return True

    def unplanned(self, config: Config) -> str:
        """What a cell of this configuration does beside the fit that nobody can count before, in
        words; empty for nothing that takes long.
        """
        return ""

    def methods(self, config: Config) -> tuple[str, ...]:
        """Names of other methods whose settings and code have a part in a cell's numbers."""
        return ()

    def histories(self, run: FittedCell, metric: str) -> list[Sequence[float]]:
        """Those of the run's models of what the table calls `metric`, empty where one has none."""
        return [model.history.get(metric, ()) for model in run.models]

    @abstractmethod
    def take(self, run: FittedCell) -> Taken:
        """The numbers of a cell. Raises ValueError for a run that has nothing of the kind."""
