"""What of a run is differentially private: noise, and every client's budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import torch

from federation.client import Client
from federation.inside.protection import Protection
from federation.inside.setup import Setup
from federation.seeds import Stream
from federation.tasks.multi_label import MultiLabel
from federation.training.plan import TrainingPlan
from federation.training.private import PrivateSteps
from privacy.plan import DP_SGD, PrivacyPlan
from privacy.releases import Steps
from results.files import digest


class Privacy:
    """The protection of a run by differential privacy; of a run without, it does nothing."""

    def __init__(self, setup: Setup, protection: Protection | None):
        self._setup = setup
        self._drawn: set[tuple[object, ...]] = set()
        self.protection = protection
        """The accountant and what a reader must know, for whoever runs the method; None for a run
        that is not private."""

    @property
    def mechanism(self) -> str:
        """How the run is made differentially private; empty for a run that is not."""
        return self.protection.plan.mechanism if self.protection is not None else ""

    @property
    def plan(self) -> PrivacyPlan:
        """The mechanism's settings, of a private run."""
        assert self.protection is not None
        return self.protection.plan

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
        device = self._setup.device
        if self._setup.planned:
            return Stream(None, device)
        plan = digest(asdict(self.plan))
        return Stream(self._setup.seeds.torch("noise", plan, *names, device=device), device)

    def spend(self, client: Client, *releases: Steps) -> None:
        """Book what `client` is about to release. Raises BudgetExhaustedError if it would pass the
        budget.
        """
        assert self.protection is not None
        self.protection.spend(client, *releases)

    def note(self, text: str) -> None:
        """Keep a note for the record of a private run, once."""
        assert self.protection is not None
        self.protection.note(text)

    def reserve(self, *trainings: tuple[TrainingPlan, Mapping[int, int]]) -> None:
        """Say how often clients will train by each plan, by index, before they do: DP-SGD takes its
        noise from it.
        """
        if self.protection is None or self.mechanism != DP_SGD:
            return
        for client in self._setup.clients:
            self.protection.reserve(
                client, *((plan, times.get(client.index, 0)) for plan, times in trainings)
            )

    def can_train(self, client: Client, plan: TrainingPlan) -> bool:
        """Whether the client's privacy budget has a step of `plan` left; always, where there is
        none.
        """
        private = self.steps(client, plan)
        return private is None or private.steps > 0

    def steps(self, client: Client, plan: TrainingPlan) -> PrivateSteps | None:
        """How the client trains by `plan` under DP-SGD; None where the run does not ask for
        that.
        """
        if self.protection is None or self.mechanism != DP_SGD:
            return None
        return self.protection.training(client, plan)

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
