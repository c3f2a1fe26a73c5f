"""What is measured on data that no method may learn from, and what an upper bound may see."""

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from fedtables.datasets.access import refuse
from fedtables.federation.costs import active_meter
from fedtables.federation.data import History, LabelledSet
from fedtables.federation.inside.setup import HeldOut, Setup
from fedtables.federation.samples import aside
from fedtables.federation.tasks.base import Task
from fedtables.federation.training.loops import evaluate
from fedtables.federation.watching import show
from fedtables.metrics.names import METRICS, at_site, is_count
from fedtables.results.files import digest


class OracleError(Exception):
    """A method reached for knowledge that it did not declare."""


def is_looked_at(number: int, count: int, looks: int) -> bool:
    """Whether epoch (round) `number`, from 1, of `count` is one of `looks` that are evenly spread
    over them, the last among them; every one is for 0.
    """
    return not looks or number * looks // count > (number - 1) * looks // count


def _copied(history: Mapping[str, Sequence[float]]) -> History:
    return {name: [float(value) for value in values] for name, values in history.items()}


class Evaluation:
    """The test set and the server's validation set, and the metrics of the run so far."""

    def __init__(self, setup: Setup, held: HeldOut):
        self._task, self._normalise, self._device = setup.task, setup.normalise, setup.device
        self._held = held
        self._history: History = {}
        self._own: dict[str, History] = {}
        self._number, self._count, self._for_all = 0, 0, False
        self.validation_set = held.validation
        self.looks = held.looks
        self.oracle = held.oracle_allowed

    @property
    def history(self) -> History:
        """What `track`, or a training that is tracked, has measured so far, and what `note` keeps:
        a copy, since the suite alone writes it. A checkpoint takes it along.
        """
        return _copied(self._history)

    def history_of(self, owner: str) -> History:
        """The history, with what `track` has measured of the owner's own model."""
        return self.history | _copied(self._own.get(owner, {}))

    def begin_history(self, history: Mapping[str, Sequence[float]] | None = None) -> History:
        """Begin the history anew, or go on after `history`; the suite writes what is returned."""
        self._history, self._own = _copied(history or {}), {}
        return self._history

    def state_dict(self) -> dict[str, History]:
        """The histories by owner, for snapshots; of the global model under an empty name."""
        return {owner: _copied(of) for owner, of in {"": self._history, **self._own}.items()}

    def load_state_dict(self, histories: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
        self.begin_history(histories[""])
        self._own = {owner: _copied(of) for owner, of in histories.items() if owner}

    def note(self, name: str, value: float) -> None:
        """Keep a value of the method's own. Raises ValueError for the name of a metric."""
        if name.partition("@")[0] in METRICS:
            raise ValueError(f"{name} is a metric: federation.evaluation.track(model) measures it")
        self._history.setdefault(name, []).append(value)

    @property
    def test_set(self) -> LabelledSet:
        """For measures alone. Raises AccessError while a method fits: none may learn from it."""
        refuse("evaluation.test_set is for measures; no method learns from the test set")
        return self._held.test

    @property
    def test_digest(self) -> str:
        """Identifies the test samples, those of further sites too, in stage keys."""
        if not self._held.further_tests:
            return self._held.test.digest
        sites = {site: held.digest for site, held in self._held.further_tests.items()}
        return digest([self._held.test.digest, sites])

    def begin_round(self, number: int, count: int, *, for_all: bool = False) -> None:
        """Round `number` of `count` begins; `for_all` if it is the one that a plan follows."""
        self._number, self._count, self._for_all = number, count, for_all

    def end_rounds(self) -> None:
        """What is tracked from now on is looked at."""
        self._count, self._for_all = 0, False

    def track(self, model: nn.Module, owner: str = "") -> None:
        """Note the test metrics of the global model after a round, if it is one that is looked at,
        or after the rounds; or of the own model of an `owner`, such as `client-3`, within rounds.
        No method may choose anything by them.
        """
        history = self._own.setdefault(owner, {}) if owner else self._history
        self._number += not self._count
        count = self._count or self._number
        for metric, value in self.look(model, self._number, count, for_all=self._for_all).items():
            history.setdefault(metric, []).append(value)
            if not is_count(metric):
                show(f"{metric}/{owner or 'global model'}", self._number, value)

    def look(
        self,
        model: nn.Module,
        number: int,
        count: int,
        task: Task | None = None,
        *,
        for_all: bool = False,
    ) -> dict[str, float]:
        """Metrics as `test` after epoch or round `number` of `count`, none if it is not looked at.
        With `for_all` it is the one that a plan follows for all: it costs as many tests as looks.
        What a look takes is neither the method's time nor its work.
        """
        meter = active_meter()
        with aside():
            if for_all and meter is not None:
                times = meter.times * min(self.looks or count, count) // count
                with meter.having(times=times):
                    return self.test(model, task)
            return self.test(model, task) if is_looked_at(number, count, self.looks) else {}

    def test(self, model: nn.Module, task: Task | None = None) -> dict[str, float]:
        """Metrics on the test set (none while planning) of a network that was trained for the
        federation's task, or for `task`; on test samples of further sites as `metric@site`.
        """
        found = self.measured(model, self._held.test, task)
        for site, held in self._held.further_tests.items():
            of_site = self.measured(model, held, task)
            found |= {at_site(metric, site): value for metric, value in of_site.items()}
        return found

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Metrics on the server's validation set, as `require_validation`; none while planning."""
        return self.measured(model, self.require_validation())

    def measured(
        self, model: nn.Module, held: LabelledSet, trained_for: Task | None = None
    ) -> dict[str, float]:
        """Metrics of a network for the federation's task, or `trained_for`, on any labelled set."""
        return evaluate(model, held, self._task, self._normalise, trained_for)

    def require_validation(self) -> LabelledSet:
        """The server's validation set.

        Raises ValueError if it has none: `partition.validation_share` sets one aside before clients
        get theirs.
        """
        if self.validation_set is None:
            raise ValueError(
                "this method needs a validation set at the server; set partition.validation_share"
                " above 0, or give `validation`"
            )
        return self.validation_set

    def public_labels(self) -> torch.Tensor:
        """True labels (n,) of the public images, for methods that declare the oracle
        `public-labels`.

        Raises OracleError for every other method: a real server has no such labels.
        """
        if "public-labels" not in self.oracle or self._held.oracle_labels is None:
            raise OracleError(
                "public data are unlabelled; an upper bound must declare oracle = {'public-labels'}"
            )
        return self._held.oracle_labels.to(self._device)
