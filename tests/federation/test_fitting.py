"""Fits as stages: shared where everything is equal, with the ledger; whatever differs makes
another.
"""

import math
import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch

from fedtables.baselines.standalone import Standalone
from fedtables.federation.augmentation import Augmentation
from fedtables.federation.cache import DAMAGED, StageCache, content_digest
from fedtables.federation.channel import Transfer, encoded_size
from fedtables.federation.data import LabelledSet, PublicData
from fedtables.federation.fitting import fit
from fedtables.federation.inside.evaluation import Evaluation
from fedtables.federation.inside.privacy import Protection
from fedtables.federation.method import Method
from fedtables.federation.seeds import AXES, Seeds
from fedtables.federation.tasks.images import Classification
from fedtables.federation.training.inputs import Normalisation
from fedtables.federation.training.plan import TrainingPlan
from fedtables.methods.dlad import DLAD
from fedtables.methods.fedavg import FedAvg
from fedtables.models.catalogue import entry
from fedtables.privacy.plan import PrivacyPlan
from fedtables.privacy.releases import GaussianSteps
from fedtables.results.sourcecode import source_modules
from tests.federation.tiny import CLASSES, make_client, make_federation
from tests.methods.shards import same_bits


@dataclass(frozen=True)
class Constant(Method):
    """A network whose last biases are `level`; every client sends them once."""

    sends = frozenset({"parameters"})
    protected: ClassVar = {"dp-sgd": sends}
    level: float = 0.5

    def fit(self, federation):
        model = federation.networks.initial()
        torch.nn.init.constant_(model.head.bias, self.level)
        for number in federation.rounds(2):
            for client in federation.clients[:number]:
                if federation.privacy.mechanism:
                    federation.privacy.spend(client, GaussianSteps(10.0, 1.0, 1))
                federation.channel.up(client.index, "parameters", {"bias": model.head.bias})
            federation.evaluation.track(model)
        return federation.networks.checkpoint(model)


@dataclass(frozen=True)
class Returning(Method):
    """Returns one of `RETURNED`."""

    what: str

    def fit(self, federation):
        return RETURNED[self.what](federation)


def make_checkpoint(federation):
    return federation.networks.checkpoint(federation.networks.initial(), federation.networks.server)


RETURNED = {
    "module": lambda federation: federation.networks.initial(),
    "checkpoint": make_checkpoint,
    "list": lambda federation: federation.local_models(),
    "tuple": lambda federation: tuple(federation.local_models()),
    "samples": lambda federation: replace(
        make_checkpoint(federation), samples=torch.arange(256).to(torch.uint8).view(4, 1, 8, 8)
    ),
    "nothing": lambda federation: None,
    "empty list": lambda federation: [],
    "tensor": lambda federation: torch.zeros(3),
    "modules": lambda federation: [federation.networks.initial()],
    "state": lambda federation: federation.networks.initial().state_dict(),
    "generator": lambda federation: (checkpoint for checkpoint in federation.local_models()),
}


@pytest.fixture(params=["disk", "memory"])
def stages(request, tmp_path):
    return StageCache(tmp_path / "stages" if request.param == "disk" else None)


def fits(stages):
    return [event.computed for event in stages.events if event.kind == "fit"]


# -- sharing --


def test_two_federations_of_one_configuration_share_a_fit_and_its_ledger(stages):
    first, second = make_federation(stages=stages), make_federation(stages=stages)
    [found], [again] = fit(first, Constant()), fit(second, Constant())
    assert fits(stages) == [True, False]
    assert same_bits(found.state, again.state)
    assert replace(again, state=found.state) == found
    size = encoded_size({"bias": torch.empty(CLASSES)})
    expected = [
        Transfer(number, "up", "parameters", client, size)
        for number, client in ((1, 0), (2, 0), (2, 1))
    ]
    assert first.channel.ledger == second.channel.ledger == expected


class Reweighted(Classification):
    """Code of another module that prints the same."""

    def __repr__(self):
        return repr(Classification(self.classes))


def moved(**changes):
    """Client 1 replaced by one that differs."""
    return [make_client(0), make_client(1, **changes)]


LABELS = torch.tensor([0, 1, 2] * 2)
OTHERS = {
    "a client's shard": {"clients": moved(digest="other samples")},
    "a client's network": {"clients": moved(network="cnn")},
    "more clients": {"clients": 3},
    "the order of clients": {"clients": [make_client(1), make_client(0)]},
    "the global network": {"network": "cnn"},
    "the public set": {"public": PublicData(torch.zeros(6, 1, 8, 8, dtype=torch.uint8), "other")},
    "the validation set": {
        "validation": LabelledSet(torch.zeros(6, 1, 8, 8, dtype=torch.uint8), LABELS, "other")
    },
    "no validation set": {"validation": None},
    "the test set": {
        "test": LabelledSet(torch.zeros(6, 1, 8, 8, dtype=torch.uint8), LABELS, "other")
    },
    "the local plan": {"local": TrainingPlan(epochs=3, batch_size=4, lr=0.02)},
    "the server's plan": {"server": TrainingPlan(epochs=2, batch_size=3, lr=0.01, clip_norm=1.0)},
    "the augmentation": {"augmentation": Augmentation(crop=1)},
    "the normalisation": {"normalise": Normalisation((0.4,), (0.25,))},
    "the oracle": {"oracle_allowed": frozenset({"public-labels"})},
    "pre-training": {"pretrained": True},
    "the task": {"task": Classification(4)},
    "the code of the task": {"task": Reweighted(3)},
    **{
        f"the seed of {axis}": {"seeds": Seeds(**{axis: 1})}
        for axis in AXES
        if axis not in ("noise", "attack")
    },
}


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_what_may_change_an_outcome_makes_another_fit(monkeypatch, changes):
    monkeypatch.setattr(
        "fedtables.models.networks.imagenet.load_imagenet", lambda model, network: None
    )
    stages = StageCache(None)
    fit(make_federation(stages=stages), Constant())
    fit(make_federation(stages=stages, **changes), Constant())
    assert fits(stages) == [True, True]


@pytest.mark.parametrize("mechanism", ["", "dp-sgd"])
def test_noise_makes_another_fit_of_a_private_run_alone_and_an_attack_of_none(mechanism):
    def protection():
        return (
            Protection(PrivacyPlan(mechanism, epsilon=8.0), frozenset({"parameters"}))
            if mechanism
            else None
        )

    stages = StageCache(None)
    for seeds in (Seeds(), Seeds(noise=1), Seeds(attack=1)):
        fit(make_federation(stages=stages, seeds=seeds, protection=protection()), Constant())
    assert fits(stages) == [True, bool(mechanism), False]


@dataclass(frozen=True)
class Other(Constant):
    """Another method with the same fields."""


def test_another_hyper_parameter_or_method_makes_another_fit():
    stages = StageCache(None)
    for method in (Constant(), Constant(level=0.25), Other(), Constant()):
        fit(make_federation(stages=stages), method)
    assert fits(stages) == [True, True, True, False]


# -- what a fit may leave --


def test_a_bare_module_becomes_a_checkpoint_of_the_server_and_is_measured_once(stages):
    for _ in range(2):
        federation = make_federation(stages=stages)
        [checkpoint] = fit(federation, Returning("module"))
        module = federation.networks.initial()
        assert same_bits(checkpoint.state, dict(module.state_dict()))
        assert checkpoint.history == {"accuracy": [federation.evaluation.test(module)["accuracy"]]}
        assert (checkpoint.owner, checkpoint.outputs, checkpoint.samples) == (
            "server",
            CLASSES,
            None,
        )
        assert checkpoint.lineage == content_digest(checkpoint.state)
        assert same_bits(federation.networks.module(checkpoint).state_dict(), module.state_dict())


def test_what_was_measured_as_infinite_is_kept_where_nothing_was_tracked(monkeypatch):
    monkeypatch.setattr(Evaluation, "test", lambda own, model, task=None: {"hd95": math.inf})
    [checkpoint] = fit(make_federation(), Returning("module"))
    assert checkpoint.history == {"hd95": [math.inf]}


@pytest.mark.parametrize("what", ["list", "tuple"])
def test_one_checkpoint_per_client_stays_in_order_with_its_own_history(stages, what):
    for _ in range(2):
        federation = make_federation(stages=stages)
        found = fit(federation, Returning(what))
        assert [checkpoint.owner for checkpoint in found] == ["client-0", "client-1"]
        for checkpoint, own in zip(found, federation.local_models(), strict=True):
            assert same_bits(checkpoint.state, own.state)
            assert replace(checkpoint, state={}) == replace(own, state={})
            assert len(checkpoint.history["accuracy"]) == 3


def test_generated_samples_are_kept(stages):
    for _ in range(2):
        [checkpoint] = fit(make_federation(stages=stages), Returning("samples"))
        assert checkpoint.samples.flatten().tolist() == list(range(256))
        assert checkpoint.samples.shape == (4, 1, 8, 8)
        assert checkpoint.samples.dtype == torch.uint8


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("nothing", "NoneType"),
        ("empty list", "list"),
        ("tensor", "Tensor"),
        ("modules", "list of CNN"),
        ("state", "OrderedDict"),
        ("generator", "generator"),
    ],
)
def test_anything_else_is_refused_and_not_kept(what, name):
    stages = StageCache(None)
    for _ in range(2):
        with pytest.raises(
            TypeError,
            match=(
                f"fit returned {name}; it must return a module, a checkpoint, or one checkpoint per"
            ),
        ):
            fit(make_federation(stages=stages), Returning(what))
    assert fits(stages) == []


# -- weights that stages hold already --


def sizes(folder, kind):
    return [path.stat().st_size for path in (folder / kind).rglob("*.safetensors")]


def test_local_models_are_stored_once_and_a_fit_refers_to_them(tmp_path):
    first = fit(make_federation(stages=StageCache(tmp_path)), Standalone())
    weights = 4 * sum(tensor.numel() for tensor in first[0].state.values())
    assert min(sizes(tmp_path, "local-model")) > weights > 10_000
    assert max(sizes(tmp_path, "fit")) < 100
    federation = make_federation(stages=StageCache(tmp_path))
    again = fit(federation, Standalone())
    assert [(event.kind, event.computed) for event in federation.stages.cache.events] == [
        ("fit", False)
    ]
    in_memory = fit(make_federation(), Standalone())
    assert len(again) == len(in_memory) == 2
    for one, other, third in zip(first, again, in_memory, strict=True):
        assert same_bits(one.state, other.state)
        assert same_bits(one.state, third.state)
        assert (one.owner, one.lineage, one.history) == (other.owner, other.lineage, other.history)


def test_models_of_a_fit_whose_local_models_are_damaged_are_made_again(tmp_path):
    before = [
        dict(checkpoint.state)
        for checkpoint in fit(make_federation(stages=StageCache(tmp_path)), Standalone())
    ]
    next((tmp_path / "local-model").rglob("*.safetensors")).write_bytes(b"")
    federation = make_federation(stages=StageCache(tmp_path))
    after = fit(federation, Standalone())
    assert all(
        same_bits(checkpoint.state, state) for checkpoint, state in zip(after, before, strict=True)
    )
    computed = [event for event in federation.stages.cache.events if event.computed]
    assert [event.kind for event in computed] == ["local-model", "fit"]
    assert all(event.note.startswith(DAMAGED) for event in computed)


# -- code --


def executed_modules(call):
    """The modules of the package of which `call()` runs a line."""
    names = set()

    def entered(frame, event, argument):
        names.add(str(frame.f_globals.get("__name__")))

    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {name for name in names if name.startswith("fedtables.")}


@pytest.mark.parametrize("method", [Standalone, DLAD, FedAvg])
def test_all_code_that_a_fit_runs_determines_its_key(method):
    """The method's own imports, the task's and the networks': a line of code that runs, and is in
    none of them, could be changed without anybody noticing.
    """
    federation = make_federation()
    networks = {federation.networks.server, *(client.network for client in federation.clients)}
    known = source_modules(
        "fedtables.federation.fitting",
        method.__module__,
        type(federation.task).__module__,
        *(entry(network).build.__module__ for network in networks),
    )
    run = executed_modules(lambda: fit(federation, method()))
    assert "fedtables.federation.tasks.images" in run
    assert run <= known
