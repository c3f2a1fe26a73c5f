"""What a run exchanges, and what a method is chosen by beside its accuracy, by hand."""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch

from fedtables.baselines.centralized import Centralized
from fedtables.baselines.standalone import Standalone
from fedtables.benchmarks.measures import exchange
from fedtables.datasets.corruptions import CORRUPTIONS
from fedtables.federation.cache import StageCache
from fedtables.federation.channel import Channel, Transfer
from fedtables.federation.data import LabelledSet
from fedtables.federation.fitting import fit
from fedtables.federation.inside.networks import HeterogeneousClientsError
from fedtables.federation.method import Method
from fedtables.methods.fedavg import FedAvg
from fedtables.methods.feddf import FedDF
from fedtables.methods.fedmd import FedMD
from fedtables.reports.measures.exchange import EXCHANGED
from tests.federation.tiny import make_client, make_federation


def followed():
    """The tiny federation as `plan` sees it."""
    return make_federation(device="meta", stages=StageCache(None, device="meta"))


QUICK = {"rounds": 2, "participation": 1.0}
METHODS = {
    "standalone": (Standalone(), (False, False, True, True)),
    "centralized": (Centralized(), (False, False, False, True)),
    "fedavg": (FedAvg(**QUICK), (False, True, False, False)),
    "feddf": (
        FedDF(**QUICK, distillation_steps=4, evaluation_interval=2),
        (True, True, False, False),
    ),
    "fedmd": (FedMD(rounds=1, public_samples=4), (True, False, True, False)),
}


@pytest.mark.parametrize("name", METHODS)
def test_properties_of_methods_that_are_known(name):
    """Distillation, parameter transfer, privacy, asynchronous."""
    method, expected = METHODS[name]
    channel = Channel()
    fit(make_federation(channel=channel), method)
    found = exchange.properties(channel.ledger, exchange.followed(method, followed())[1])
    assert list(found) == list(EXCHANGED)
    assert tuple(found.values()) == expected


def transfer(kind, direction="up", number=0, client=0):
    return Transfer(number, direction, kind, client, 8)


ONE_SHOT = [
    transfer(kind, client=k) for k in range(2) for kind in ("labels", "logits", "attention")
]


@pytest.mark.parametrize(
    ("ledger", "private", "asynchronous", "weights"),
    [
        (ONE_SHOT, True, True, False),
        ([*ONE_SHOT, transfer("logits", number=1)], True, False, False),  # answers again
        (
            [transfer("labels"), transfer("logits", number=1)],
            True,
            True,
            False,
        ),  # counts first, answers later, each once
        ([*ONE_SHOT, transfer("logits", "down")], True, False, False),
        ([*ONE_SHOT, transfer("parameters")], False, True, True),
        ([*ONE_SHOT, transfer("parameters", "down")], True, False, True),
        ([transfer("gradients")], False, True, True),
        ([transfer("features")], False, True, False),
        ([transfer("images")], False, True, False),
        ([transfer("discriminator-outputs")], False, True, False),
    ],
)
def test_what_the_ledger_says(ledger, private, asynchronous, weights):
    found = exchange.properties(ledger, public=True)
    assert found == {
        "distillation": True,
        "param-transfer": weights,
        "privacy": private,
        "asynchronous": asynchronous,
    }


@pytest.mark.parametrize(
    ("ledger", "budgets", "expected"),
    [
        ([], {}, {}),
        (ONE_SHOT, {}, {"bandwidth-gb": 48e-9, "privacy-cost": 0.0}),
        (
            [*ONE_SHOT, transfer("parameters", "down")],
            {},
            {"bandwidth-gb": 56e-9, "privacy-cost": 0.0},
        ),
        ([transfer("parameters")], {}, {"bandwidth-gb": 8e-9, "privacy-cost": math.inf}),
        ([transfer("images")], {}, {"bandwidth-gb": 8e-9, "privacy-cost": math.inf}),
        (
            [transfer("parameters")],
            {"eps1": 1.0, "eps3": 0.01},
            {"bandwidth-gb": 8e-9, "privacy-eps1": 1.0, "privacy-eps3": 0.01},
        ),
    ],
)
def test_what_an_exchange_costs(ledger, budgets, expected):
    assert exchange.costs(ledger, budgets) == pytest.approx(expected)


@dataclass(frozen=True)
class Counts(Method):
    """Asks how many public images there are and what identifies them, and looks at none."""

    def fit(self, federation):
        assert (len(federation.public), federation.public.digest) == (6, "public")
        return federation.networks.initial()


def test_to_count_public_images_is_not_to_look_at_them():
    assert not exchange.followed(Counts(), followed())[1]


class Saying(torch.nn.Module):
    """Sees the class that a pixel says, plus `off`."""

    def __init__(self, off=0):
        super().__init__()
        self.off = off

    def forward(self, images):
        classes = ((255 * images[:, 0, 0, 0]).round().long() + self.off) % 2
        return torch.nn.functional.one_hot(classes, 2).float()


class Lost(torch.nn.Module):
    """Has no number for any class, as where training diverged."""

    def forward(self, images):
        return torch.full((len(images), 2), torch.nan)


def saying(modules, counts, targets, pixels):
    """Networks by owner, clients by their label counts, test images by their only pixel."""
    images = torch.tensor(pixels, dtype=torch.uint8).reshape(-1, 1, 1, 1).expand(-1, 1, 8, 8)
    return SimpleNamespace(
        task=SimpleNamespace(outputs=2),
        clients=[
            SimpleNamespace(index=k, size=sum(held), label_counts=held)
            for k, held in enumerate(counts)
        ],
        networks=SimpleNamespace(module=lambda model: modules[model.owner]),
        normalise=lambda images: images,
        evaluation=SimpleNamespace(
            test_set=LabelledSet(images.contiguous(), torch.tensor(targets), "")
        ),
    )


def owners(*names):
    return [SimpleNamespace(owner=name) for name in names]


def test_the_weakest_clients_are_at_the_tenth_percentile_of_their_own_distributions():
    # The global network is right about all of class 0 and half of class 1.
    made = saying({"server": Saying()}, [[3, 0], [0, 5], [1, 1]], [0, 1, 1], [0, 1, 0])
    # Clients have 1, 0.5 and 0.75: a tenth of the way is a fifth of the step from 0.5 to 0.75.
    assert exchange.weakest(made, owners("server")) == (pytest.approx(0.55), (3, 3))


def test_a_client_of_whose_classes_there_is_no_test_image_is_counted_and_left_out():
    # Of class 1 there is no test image.
    made = saying({"server": Saying()}, [[3, 0], [0, 5]], [0, 0], [0, 1])
    assert exchange.weakest(made, owners("server")) == (0.5, (1, 2))


def test_a_network_whose_scores_are_not_numbers_is_wrong_everywhere():
    made = saying({"server": Lost()}, [[3, 0]], [0, 0], [0, 1])
    assert exchange.weakest(made, owners("server")) == (0, (1, 1))
    assert exchange.corrupted(made, owners("server")) == 0


def test_a_client_with_a_network_of_its_own_has_its_accuracy_and_one_without_samples_none():
    modules = {"client-0": Saying(), "client-1": Saying(off=1)}
    made = saying(modules, [[2, 0], [2, 0], [0, 0]], [0, 0], [0, 0])
    value, count = exchange.weakest(made, owners("client-0", "client-1"))
    assert (value, count) == (pytest.approx(0.1), (2, 2))


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_keeps_the_images_kind_and_is_the_same_every_time(name):
    images = torch.arange(2 * 3 * 8 * 8).reshape(2, 3, 8, 8).remainder(256).to(torch.uint8)
    once, again = CORRUPTIONS[name](images), CORRUPTIONS[name](images)
    assert (once.dtype, once.shape) == (torch.uint8, images.shape)
    assert once.equal(again)
    assert not once.equal(images)


class Failing:
    """A method whose fit raises."""

    def __init__(self, error):
        self.error = error

    def fit(self, federation):
        raise self.error


def run_of(method):
    """A fitted run, of which clients with two kinds of network are asked for."""

    def on_meta(changes):
        assert changes == exchange.MIXED
        names = ("cnn-small", "resnet8-narrow")
        clients = [make_client(k, device="meta", network=name) for k, name in enumerate(names)]
        return make_federation(clients, device="meta", stages=StageCache(None, device="meta"))

    return SimpleNamespace(method=method, on_meta=on_meta)


@pytest.mark.parametrize(
    ("method", "differ"),
    [
        (FedMD(rounds=1, public_samples=4), True),
        (FedAvg(rounds=1), False),
        (Failing(HeterogeneousClientsError("one network everywhere")), False),
        (Failing(RuntimeError("shapes of two networks")), False),
    ],
)
def test_networks_may_differ_unless_the_fit_refuses_them(method, differ):
    assert exchange.networks_may_differ(run_of(method)) is differ


def test_an_error_that_is_no_refusal_is_not_taken_for_one():
    with pytest.raises(AttributeError, match="a mistake"):
        exchange.networks_may_differ(run_of(Failing(AttributeError("a mistake"))))
