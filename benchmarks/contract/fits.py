"""The fits by which the contract judges a method, each on a small federation, of which the data are
changed, and in a process of its own.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal

import safetensors.torch
import torch

from benchmarks.contract.changes import NEITHER, Halves, with_hidden_data, with_private_data
from benchmarks.contract.process import Closed, EndedError, in_own_process
from benchmarks.scenarios.assembly import Run, assemble
from benchmarks.scenarios.configuration import Configuration
from benchmarks.scenarios.scenario import Parts
from benchmarks.scenarios.small import small_config, small_data
from benchmarks.tables.registry import find_scenario
from benchmarks.tables.spec import Scalar
from datasets import catalogue
from datasets.access import AccessError, while_fitting
from federation.caching.cache import StageCache, content_digest
from federation.channel import Channel, Transfer, encode
from federation.federation import Federation
from federation.fitting import listed
from federation.method import Fitted, Method
from federation.parties.checkpoint import Checkpoint
from federation.parts import stages
from federation.seeds import Seeds
from federation.training import replay
from federation.training.execution import Execution
from federation.training.tape import Tape
from privacy.plan import RELEASED
from results.sourcecode import ROOT, source_digest

BRIEF: Mapping[str, Scalar] = {
    "partition.public_limit": 100,
    "local.epochs": 1,
    "server.epochs": 1,
}
"""What differs where it is enough to compare two fits, or to see what they send."""
BRIEF_STEPS: Mapping[str, int] = {
    "steps": 2,
    "interval": 1,
    "epochs": 2,
    "rounds": 2,
}
"""Steps of a method's own loop in such a fit, in all and between two of its evaluations; its own
epochs and rounds. Other fields of epochs, as `warmup_epochs`, are 1."""
DISJOINT: Mapping[str, Scalar] = {
    "partition.duplicates": False,
    "partition.client_share": 0.08,
}
"""What differs in a private run, whose epsilon is of a sample that lies with one client, once."""
EPSILON = 1.0
"""Budget of the contract's private runs."""


class BrokenContractError(AssertionError):
    """A method does not keep the contract; the message says which part, and what to do."""


class NotJudgedError(Exception):
    """Another broken promise leaves no way to tell whether this one is kept."""


class _EnoughError(BaseException):
    """All that a fit is run for has been sent; not for a method to catch."""


@dataclass(frozen=True)
class Message:
    """What a client sends, as it is encoded."""

    kind: str
    client: int
    content: bytes

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        return safetensors.torch.load(self.content)

    @property
    def form(self) -> tuple[object, ...]:
        """Its kind and client, and the names of its tensors."""
        return self.kind, self.client, sorted(self.tensors)


@dataclass(frozen=True)
class Outcome:
    """What a fit leaves."""

    messages: tuple[Message, ...]
    """What clients sent, in order."""
    values: int = 0
    """Of one sample."""
    models: tuple[str, ...] = ()
    """Digests of what was learnt; none where that is no model, and of a fit that was broken off
    when all had been sent."""
    no_model: str = ""
    """What fit returned in place of models."""
    personal: bool = False
    """One model for each client, which stays with it, rather than one at the server."""
    score: float = 0.0
    """Mean of the task's headline metric, where that was asked for."""
    spoilt: bool = False
    """Whether images or labels were changed in place."""
    reached_for: tuple[str, ...] = ()
    """What it asked for that is closed to a method."""
    epsilon: float = 0.0
    silent: tuple[int, ...] = ()
    """Clients that sent something and told the accountant nothing."""
    imported: tuple[str, ...] = ()
    """Modules, of packages and of this repository, that were imported for it."""

    @property
    def kinds(self) -> set[str]:
        """Of payloads that left clients."""
        return {message.kind for message in self.messages}

    @property
    def digest(self) -> str:
        """Of everything learnt. Raises NotJudgedError where that is no model."""
        if not self.models:
            raise NotJudgedError("what fit returns cannot be compared")
        return "".join(self.models)


@dataclass
class Fit:
    """One run of the method under test."""

    method: Method
    brief: bool = True
    """By `BRIEF` and `BRIEF_STEPS`: too short to learn much."""
    seed: int = 0
    shuffle_public_labels: bool = False
    other_test_set: bool = False
    noise: int = 0
    """Seed of the noise of differential privacy."""
    mechanism: str = ""
    """Run it with differential privacy and a budget of `EPSILON`."""
    changes: Halves = NEITHER
    """Which halves of the clients' samples are others."""
    only_even: bool = False
    """Whether of clients 0, 2, ... alone."""
    replay: Outcome | None = None
    """Deliver to the server what this other run sent."""
    until_sent: bool = False
    """Break off when as many messages have been sent as in `replay`."""
    graphs: Literal["", "taken", "replayed"] = ""
    """Train as under `--compile graphs`, by steps that are `taken`, or recorded and `replayed`."""
    messages: list[Message] = field(default_factory=list)

    def _inspect(self, transfer: Transfer, tensors: Mapping[str, torch.Tensor]) -> None:
        if transfer.direction == "up":
            self.messages.append(Message(transfer.kind, transfer.client, encode(tensors)))

    def _deliver(
        self, transfer: Transfer, received: dict[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        if self.replay is None or transfer.direction == "down":
            return received
        number = len(self.messages)
        if (
            number > len(self.replay.messages)
            or self.messages[-1].form != self.replay.messages[number - 1].form
        ):
            raise BrokenContractError(
                f"what client {transfer.client} sends next depends on its private samples: their"
                " values, not the order, number or names of messages, may tell of them"
            )
        if self.until_sent and number == len(self.replay.messages):
            raise _EnoughError
        return dict(self.replay.messages[number - 1].tensors)

    @property
    def _private(self) -> dict[str, Scalar]:
        """Configuration of a private run."""
        if not self.mechanism:
            return {}
        noise = 1.0 if self.mechanism == RELEASED else 0.0
        return {
            "privacy.epsilon": EPSILON,
            "privacy.mechanism": self.mechanism,
            "privacy.noise_multiplier": noise,
            "privacy.queries": 50,
            **DISJOINT,
        }

    def _changed(self, parts: Parts) -> Parts:
        changes = [
            NEITHER if self.only_even and index % 2 else self.changes
            for index in range(len(parts.clients))
        ]
        if any(change != NEITHER for change in changes):
            parts = with_private_data(parts, changes)
        return with_hidden_data(
            parts, public_labels=self.shuffle_public_labels, test=self.other_test_set
        )

    @functools.cached_property
    def federation(self) -> Federation:
        kind = type(self.method)
        axes = ("partition", "weights", "sampling", "shuffling")
        seeds = replace(Seeds.moving(axes, self.seed), noise=self.noise)
        settings = {**small_config(kind), **(BRIEF if self.brief else {}), **self._private}
        configuration = Configuration.parse(settings)
        scenario = find_scenario(configuration.data.task).load()
        parts = scenario.parts(configuration, small_data(kind), seeds, "cpu")
        execution = Execution(compile="graphs" if self.graphs else "off")
        channel = Channel(self._inspect, self._deliver)
        run = Run(seeds, StageCache(None), channel=channel, execution=execution)
        return assemble(self._changed(parts), configuration, kind, run)

    @functools.cached_property
    def fitted(self) -> Fitted:
        """What the method learns, in this process."""
        method = shortened(self.method) if self.brief else self.method
        federation = self.federation
        with while_fitting():
            return method.fit(federation)

    @functools.cached_property
    def modules(self) -> list[torch.nn.Module]:
        """The learnt model or models. Raises TypeError where that is none."""
        networks, fitted = self.federation.networks, self.fitted
        if isinstance(fitted, torch.nn.Module):
            fitted = networks.checkpoint(fitted)
        return [networks.module(checkpoint) for checkpoint in listed(fitted)]

    @functools.cached_property
    def outcome(self) -> Outcome:
        """What it leaves, in a process of its own.

        Raises BrokenContractError for a method that reaches for what is closed to it, or ends its
        process; and what `fit` raises.
        """
        prepare(self)
        try:
            outcome = in_own_process(self._run)
            import_all(outcome.imported)
            return outcome
        except AccessError as error:
            raise BrokenContractError(str(error)) from error
        except EndedError as error:
            raise BrokenContractError(f"it ends its process ({error})") from error

    def _run(self, closed: Closed) -> Outcome:
        if self.graphs == "replayed":
            replay.RECORDERS["cpu"] = lambda device: Tape()
        federation = self.federation
        before, modules_before = data_digest(federation), set(sys.modules)
        catalogue.load.cache_clear()  # type: ignore[attr-defined]
        sent: dict[str, object] = {}
        try:
            with closed.fitting():
                _ = self.fitted
        except _EnoughError:
            return Outcome(tuple(self.messages), reached_for=tuple(closed.found))
        try:
            modules = self.modules
        except TypeError as error:
            sent["no_model"] = str(error)
            modules = []
        if not self.brief:
            headline = federation.task.metric_names[0]
            values = [federation.evaluation.test(module)[headline] for module in modules]
            sent["score"] = sum(values) / max(1, len(values))
        if federation.privacy.protection is not None:
            accountant = federation.privacy.protection.accountant
            senders = {message.client for message in self.messages}
            silent = sorted(client for client in senders if not accountant.releases(client))
            sent["silent"] = tuple(silent)
            if self.mechanism != RELEASED:
                sent["epsilon"] = accountant.epsilon()
        return Outcome(
            tuple(self.messages),
            math.prod(federation.networks.image_shape),
            models=tuple(content_digest(module.state_dict()) for module in modules),
            personal=not isinstance(self.fitted, torch.nn.Module | Checkpoint),
            spoilt=data_digest(federation) != before,
            reached_for=tuple(closed.found),
            imported=tuple(sorted(filter(_is_library, set(sys.modules) - modules_before))),
            **sent,  # type: ignore[arg-type]
        )


def _is_library(module: str) -> bool:
    """Whether an imported module is of a package or of this repository's folders for code."""
    path = str(getattr(sys.modules[module], "__file__", None) or "")
    ours = (f"{ROOT / folder}{os.sep}" for folder in ("federation", "models", "metrics", "privacy"))
    return path.startswith((sys.prefix, sys.base_prefix, *ours))


_prepared: set[Scalar] = set()


def prepare(fit: Fit) -> None:
    """Do once, without the method, what all fits on such a federation do first, for the processes
    that are forked from this one: read data, import what trains and digest its code, by which
    stages are found again. Nothing is trained here: where there is a GPU a process that has run
    autograd cannot fork.
    """
    name = small_config(type(fit.method))["data.name"]
    if name in _prepared:
        return
    federation = Fit(fit.method).federation
    before = set(sys.modules)

    def train(_: Closed) -> tuple[str, ...]:
        models = federation.local_models()
        if len(federation.public):
            federation.public_outputs(models[0])
        return tuple(sorted(filter(_is_library, set(sys.modules) - before)))

    import_all(in_own_process(train))
    for module in (stages.__name__, type(federation.task).__module__):
        source_digest(module)
    _prepared.add(name)


def import_all(modules: Sequence[str]) -> None:
    """Import modules once, not in every process that is forked from this."""
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def data_digest(federation: Federation) -> str:
    """Digest of all private and public images, and of the private targets."""
    shards = [
        client.run(lambda shard: content_digest({"x": shard.images, "y": shard.targets}))
        for client in federation.clients
    ]
    return "".join([*shards, content_digest({"public": federation.public.images})])


def shortened(method: Method) -> Method:
    """The method with loops of its own of at most `BRIEF_STEPS`, or of the fewest times as many, up
    to 128, that its other fields allow; else as it is.
    """
    most = {f.name: 1 for f in fields(method) if f.name.endswith("_epochs")} | dict(BRIEF_STEPS)
    own = {name: getattr(method, name, None) for name in most}
    numbers = {name: number for name, number in own.items() if isinstance(number, int)}
    for times in (2**power for power in range(8)):
        with contextlib.suppress(ValueError):
            return replace(method, **{n: min(times * most[n], numbers[n]) for n in numbers})
    return method


def of_client(messages: Sequence[Message], client: int) -> list[Message]:
    """Those of one client, in order."""
    return [message for message in messages if message.client == client]
