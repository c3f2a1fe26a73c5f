"""The contract, on every method found and on methods that break it."""

import ast
import inspect
import itertools
import textwrap
import types
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from fedtables.benchmarks.contract import promises
from fedtables.benchmarks.contract.fits import BrokenContractError, Fit
from fedtables.benchmarks.scenarios.small import shortened, small_method
from fedtables.benchmarks.tables import registry
from fedtables.datasets.access import AccessError, while_fitting
from fedtables.federation.method import Method
from fedtables.federation.training.plan import SteadyPenalty
from fedtables.methods.dlad import teacher_probabilities
from fedtables.methods.fedprox import FedProx
from fedtables.privacy.releases import GaussianSteps

METHODS = sorted(registry.methods())


@pytest.mark.parametrize("check", promises.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", METHODS)  # outermost: all checks of a method share its fits
def test_every_method_keeps_the_contract(name, check):
    check(small_method(registry.find_method(name)))


@pytest.mark.parametrize("name", METHODS)
def test_every_hyper_parameter_is_documented_and_every_method_has_a_title(name):
    entry = registry.find_method(name)
    method = entry.load()
    assert method.title
    assert method.__doc__
    for field in fields(method):
        owner = next(c for c in method.__mro__ if field.name in inspect.get_annotations(c))
        assert field.name in documented(owner), field.name


def documented(owner):
    """Names of a class's fields that are followed by a sentence."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    return {
        first.target.id
        for first, then in itertools.pairwise(tree.body)
        if isinstance(first, ast.AnnAssign)
        and isinstance(then, ast.Expr)
        and isinstance(then.value, ast.Constant)
    }


def upload_all(federation):
    return [
        federation.upload(c, m)
        for c, m in zip(federation.clients, federation.local_models(), strict=True)
    ]


@dataclass(frozen=True)
class Liar(Method):
    """Sends parameters and says it sends nothing."""

    def fit(self, federation):
        return federation.distill(
            teacher_probabilities(federation, upload_all(federation)).mean(dim=0)
        )


@dataclass(frozen=True)
class Gambler(Method):
    """Draws from a generator that no seed reaches."""

    sends = frozenset({"parameters"})

    def fit(self, federation):
        upload_all(federation)
        return federation.distill(
            torch.empty(len(federation.public), 10).exponential_(generator=None).softmax(dim=1)
        )


@dataclass(frozen=True)
class Vandal(Method):
    """Clears the public images."""

    def fit(self, federation):
        local = federation.local_models()
        federation.public.images.zero_()
        return local


@dataclass(frozen=True)
class Mute(Method):
    """Sends something noisy that the accountant never hears of, and nothing of what it says."""

    protected: ClassVar = {"pate": frozenset({"votes"}), "dp-sgd": frozenset()}

    def fit(self, federation):
        for client in federation.clients:
            noise = federation.privacy.noise("mute", client.index).normal(3)
            federation.channel.up(client.index, "votes", {"votes": noise})
        return federation.networks.initial()


@dataclass(frozen=True)
class Stowaway(Method):
    """Sends counts of its labels as they are beside votes with noise."""

    sends = frozenset({"votes"})
    protected: ClassVar = {"pate": sends}

    def fit(self, federation):
        for client in federation.clients:
            noise = federation.privacy.noise("stowaway", client.index).normal(3)
            counts = client.run(lambda shard: shard.targets.bincount(minlength=10))
            federation.privacy.spend(client, GaussianSteps(10.0, 1.0, 1))
            federation.channel.up(client.index, "votes", {"votes": noise, "counts": counts})
        return federation.networks.initial()


@dataclass(frozen=True)
class Twofold(Method):
    """Trains privately, and adds what it takes of the samples without noise."""

    sends = frozenset({"parameters"})
    protected: ClassVar = {"dp-sgd": sends}

    def fit(self, federation):
        local = federation.local_models()
        for client, model in zip(federation.clients, local, strict=True):
            mean = client.run(lambda shard: shard.images.float().mean())
            moved = {name: tensor + mean for name, tensor in model.state.items()}
            federation.channel.up(client.index, "parameters", moved)
        return local


@dataclass(frozen=True)
class Late(Method):
    """Learns in its second epoch what it took in the first without asking."""

    epochs: int = 3

    def fit(self, federation):
        model, taken = federation.networks.initial(), 0.0
        for _ in range(self.epochs):
            with torch.no_grad():
                next(model.parameters()).add_(taken)
            client = federation.clients[0]
            taken = client.run(lambda shard: float(shard.images.double().mean()) / 255)
        return model


@dataclass(frozen=True)
class Counter(FedProx):
    """Says that its penalty is steady, and weighs it by the number of the step."""

    def penalty(self, this, client, worker):
        steps = itertools.count()

        def term(model, batch):
            return next(steps) * batch.outputs.square().mean()

        return SteadyPenalty(term)


@dataclass(frozen=True)
class BySgd(FedProx):
    """Its rule holds for plain SGD alone."""

    quick: ClassVar[dict[str, object]] = {"local.optimizer": "sgd", "local.lr": 0.05}


def test_quick_names_the_plan_by_which_the_contract_trains():
    plan = Fit(BySgd(), brief=False).federation.local
    assert (plan.optimizer, plan.lr, plan.batch_size) == ("sgd", 0.05, 16)


@dataclass(frozen=True)
class Waiter(FedProx):
    """Says that its penalty is steady, and waits for a loss in it."""

    def penalty(self, this, client, worker):
        return SteadyPenalty(lambda model, batch: batch.outputs.mean() * batch.outputs.sum().item())


@pytest.mark.parametrize(
    ("method", "check", "message"),
    [
        (Counter, promises.learns_the_same_by_graphs, "replayed teach it otherwise"),
        (Waiter, promises.learns_the_same_by_graphs, "no CUDA graph can hold .* capturing: item"),
        (Late, promises.learns_from_clients_only_by_the_channel, "did not cross the channel"),
        (
            Stowaway,
            promises.keeps_its_budget,
            "under pate no noise reaches 'counts' of what client 0 sends as 'votes'",
        ),
        (Twofold, promises.keeps_its_budget, "samples are for its private training alone"),
        (Mute, promises.keeps_its_budget, r"clients \[0, 1, 2, 3, 4\] told the accountant nothing"),
        (Liar, promises.declares_what_it_sends, "ledger shows .*parameters"),
        (Gambler, promises.is_deterministic, "same seeds differ"),
        (
            Gambler,
            promises.learns,
            r"with quick = \{.*\}, its own or inherited, but the contract needs 0.25",
        ),
        (Vandal, promises.leaves_data_alone, "in place"),
    ],
)
def test_a_method_that_breaks_the_contract_is_caught(method, check, message):
    with pytest.raises((BrokenContractError, AccessError), match=message):
        check(method())


@dataclass(frozen=True)
class Bare(Method):
    """Returns tensors of a network rather than the network."""

    def fit(self, federation):
        return [federation.networks.initial().state_dict()]


def test_what_is_no_model_is_told_by_its_type():
    with pytest.raises(BrokenContractError, match="fit returned list of OrderedDict; it must"):
        promises.learns(Bare())


@dataclass(frozen=True)
class Stepper(Method):
    """Has a loop of its own, which must be longer than what it leaves out."""

    steps: int = 100
    interval: int = 25
    ramp: int = 5

    def __post_init__(self):
        if self.steps <= self.ramp:
            raise ValueError

    def fit(self, federation):
        return federation.networks.initial()


def test_a_brief_fit_shortens_loops_where_the_method_can_be_had_so():
    short = shortened(Stepper())
    assert (short.steps, short.interval) == (8, 4)
    assert shortened(Stepper(ramp=60)) == Stepper(steps=64, interval=25, ramp=60)
    assert shortened(Stepper(ramp=99)) == Stepper(ramp=99)
    assert shortened(Bare()) == Bare()


@dataclass(frozen=True)
class Idle(Method):
    """Never learns."""

    def fit(self, federation):
        return federation.networks.initial()


@dataclass(frozen=True)
class Renamed(Idle):
    """Has no fit of its own."""


@dataclass(frozen=True)
class Crasher(Method):
    """Ends in the middle of its fit."""

    def fit(self, federation):
        size = len(federation.public)
        return size / 0


def test_of_a_method_that_does_not_repeat_itself_nothing_further_is_compared(monkeypatch):
    monkeypatch.setattr(promises, "small_method", lambda entry: entry())
    _, repeats, *others = promises.judge(Gambler)
    assert repeats.word == promises.BROKEN
    assert [verdict.word for verdict in others] == [promises.NOT_JUDGED] * (
        len(promises.CHECKS) - 2
    )


def test_a_finding_has_the_line_of_the_methods_fit_of_its_class_or_of_the_error():
    source = Path(__file__).read_text().splitlines()

    def line_of(method, error=None):
        path, _, number = promises.place(method, error).rpartition(":")
        assert Path(path) == Path(__file__)
        return source[int(number) - 1].strip()

    assert line_of(Idle()) == "def fit(self, federation):"
    assert source[source.index("class Renamed(Idle):") - 1] == line_of(Renamed())
    with while_fitting(), pytest.raises(ZeroDivisionError) as raised:
        Crasher().fit(federation=types.SimpleNamespace(public=[]))
    assert line_of(Crasher(), raised.value) == "return size / 0"
