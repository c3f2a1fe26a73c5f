"""What of a run is differentially private: noise, one budget per client, and who has spent what."""

import bisect
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch

from fedtables.federation.client import Client
from fedtables.federation.inside.setup import Setup
from fedtables.federation.seeds import Stream
from fedtables.federation.tasks.images import MultiLabel
from fedtables.federation.training.plan import TrainingPlan
from fedtables.federation.training.private import PrivateSteps
from fedtables.privacy.accounting import Accountant, calibrate
from fedtables.privacy.plan import DP_SGD, RELEASED, PrivacyPlan
from fedtables.privacy.releases import GaussianSteps, Steps
from fedtables.results.files import digest


class Protection:
    """The plan of a private run, its accountant, and what a reader must know.

    Clients hold disjoint samples (`assemble` refuses others), so that what one releases costs only
    its own budget.
    """

    def __init__(self, plan: PrivacyPlan, kinds: frozenset[str] | None = None, group: int = 1):
        """`kinds` are the payloads that the method sends under the plan's mechanism, every one of
        them protected; each fit begins with its own. `group` is how many samples of one group, such
        as a patient, clients hold.
        """
        self.plan = plan
        self.kinds = kinds
        self.unit = "one sample"
        """Of what epsilon is."""
        if group > 1:
            self.unit += f", not one person: a group, such as a patient, has up to {group} samples"
        self.accountant = Accountant(plan.epsilon, plan.delta, plan.accountant)
        self.notes: list[str] = []
        """For example that it stopped before its budget would have been passed."""
        self.details: dict[str, Any] = {}
        """More for the record, by name."""

    def begin(self, kinds_under: Callable[[str], frozenset[str]]) -> None:
        """A method is fitted now, which sends these kinds under a mechanism. Raises ValueError if
        it has no such form, or if the budget has been spent on an earlier fit.
        """
        kinds = kinds_under(self.plan.mechanism)
        if self.accountant.state_dict()["parties"]:
            raise ValueError(
                "the budget of a federation is of one fit: make a new one, and add up what both"
                " have spent"
            )
        self.kinds = kinds

    @property
    def counts(self) -> tuple[GaussianSteps, ...]:
        """What the release of a client's label counts costs: one sample changes them by 1."""
        noisy = "labels" in (self.kinds or ()) and self.plan.mechanism != RELEASED
        return (GaussianSteps(self.plan.counts_noise, 1.0, 1),) if noisy else ()

    def state_dict(self) -> dict[str, Any]:
        """Plain values, for snapshots and for the stage of a fit."""
        spent = self.accountant.state_dict()
        return {"accountant": spent, "notes": list(self.notes), "details": dict(self.details)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.accountant.load_state_dict(state["accountant"])
        self.notes = list(state["notes"])
        self.details = dict(state["details"])


class Privacy:
    """The protection of a run by differential privacy; of a run without, it does nothing."""

    def __init__(self, setup: Setup, protection: Protection | None):
        self._setup = setup
        self._drawn: set[tuple[object, ...]] = set()
        self._noise: dict[int, float] = {}
        self.protection = protection
        """For whoever runs the method; None for a run that is not private."""

    @property
    def mechanism(self) -> str:
        """How the run is made differentially private; empty for a run that is not."""
        return self.protection.plan.mechanism if self.protection is not None else ""

    @property
    def plan(self) -> PrivacyPlan:
        """The mechanism's settings, of a private run."""
        return self._protected.plan

    @property
    def _protected(self) -> Protection:
        assert self.protection is not None
        return self.protection

    def noise(self, *names: object) -> Stream:
        """The stream `names` of the noise axis, for what differential privacy draws; another for
        every budget and setting.

        Raises ValueError for names that were used before: of two releases with the same noise the
        difference has none.
        """
        if names in self._drawn:
            raise ValueError(
                f"the noise {' '.join(map(str, names))} is drawn for the second time; name it by"
                " its round too"
            )
        self._drawn.add(names)
        return self._setup.stream("noise", digest(asdict(self.plan)), *names)

    def spend(self, client: Client, *releases: Steps) -> None:
        """Book what `client` will release. Raises BudgetExhaustedError where the budget ends."""
        self._protected.accountant.spend(client.index, *releases)

    def note(self, text: str) -> None:
        """Keep a note for the record of a private run, once."""
        if text not in self._protected.notes:
            self._protected.notes.append(text)

    def reserve(self, *trainings: tuple[TrainingPlan, Mapping[int, int]]) -> None:
        """Say how often clients will train by each plan, by index, before they do: such is the
        noise of DP-SGD that all of it stays within their budgets. A training that nobody reserved
        is taken for the client's only one.
        """
        if self.mechanism != DP_SGD:
            return
        for client in self._setup.clients:
            shapes = tuple(
                (sample_rate(client, plan), steps_of(client, plan) * times[client.index])
                for plan, times in trainings
                if times.get(client.index)
            )
            if client.size and shapes and client.index not in self._noise:
                self._noise[client.index] = self.plan.noise_multiplier or smallest_noise(
                    self.plan, self._protected.counts, shapes
                )

    def can_train(self, client: Client, plan: TrainingPlan) -> bool:
        """Whether the client has budget for a step of `plan`; always where there is no budget."""
        private = self.steps(client, plan)
        return private is None or private.steps > 0

    def steps(self, client: Client, plan: TrainingPlan) -> PrivateSteps | None:
        """How the client trains by `plan` under DP-SGD with what is left of its budget, no steps if
        nothing is; None where the run does not ask for that.
        """
        if self.mechanism != DP_SGD:
            return None
        if client.index not in self._noise:
            self.reserve((plan, {client.index: 1}))
        noise = self._noise.get(client.index, self.plan.noise_multiplier)
        rate, steps = sample_rate(client, plan), steps_of(client, plan)
        steps = self._affordable(client, functools.partial(GaussianSteps, noise, rate), steps)
        return PrivateSteps(noise, rate, steps, self.plan.clip_norm)

    def _affordable(
        self, client: Client, release: functools.partial[GaussianSteps], steps: int
    ) -> int:
        """The largest number of steps, up to `steps`, that the budget of `client` has room for."""
        accountant = self._protected.accountant
        if not client.size or accountant.affords(client.index, release(steps)):
            return steps
        self.note(f"stopped before the budget of {self.plan.epsilon:g} would have been passed")

        def too_many(count: int) -> bool:
            return not accountant.affords(client.index, release(count))

        return bisect.bisect_left(range(1, steps), True, key=too_many)

    def book(self, client: Client, private: PrivateSteps | None) -> None:
        """Book a training by DP-SGD, if it is one and has steps."""
        if private is not None and private.steps and client.size:
            self.spend(client, private.release)

    def sent_counts(self, client: Client) -> torch.Tensor:
        """A client's label counts (classes,) as it sends them: in a private run that protects them
        with Gaussian noise, not below 0, float.

        Raises ValueError where such a run is of a multi-label task.
        """
        counts = torch.tensor(client.label_counts, device=self._setup.device)
        if self.protection is None or not self.protection.counts:
            return counts
        if isinstance(self._setup.task, MultiLabel):
            raise ValueError(
                "label counts of a multi-label task have no private form: one sample more"
                " changes several counts, and the noise is for one"
            )
        self.spend(client, *self.protection.counts)
        noise = self.noise("label counts", client.index).normal(len(counts))
        return (counts + self.plan.counts_noise * noise).clamp_min(0)


def sample_rate(client: Client, plan: TrainingPlan) -> float:
    """Of Poisson sampling: batches have the plan's size on average."""
    return min(1.0, plan.batch_size / max(1, client.size))


def steps_of(client: Client, plan: TrainingPlan) -> int:
    """Steps of DP-SGD in a plan's epochs."""
    return plan.epochs * math.ceil(1 / sample_rate(client, plan))


@functools.lru_cache(maxsize=4096)  # clients of one size have the same
def smallest_noise(
    plan: PrivacyPlan, beside: tuple[Steps, ...], shapes: Sequence[tuple[float, int]]
) -> float:
    """The smallest noise multiplier with which steps of `shapes`, (sample rate, steps), and what is
    released `beside` them stay within the plan's budget."""

    def released(noise: float) -> list[Steps]:
        return [*beside, *(GaussianSteps(noise, rate, steps) for rate, steps in shapes)]

    return calibrate(released, plan.epsilon, plan.delta, plan.accountant)
