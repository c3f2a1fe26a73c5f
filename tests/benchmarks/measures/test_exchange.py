"""FedAD's Tables 4 and 5: what a run exchanges is read off its ledger, and off what its fit looks
at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from baselines.centralized import Centralized
from baselines.standalone import Standalone
from benchmarks.measures import exchange
from federation.cache import StageCache
from federation.channel import Channel, Transfer
from federation.fitting import fit
from federation.method import Method
from methods.fedavg import FedAvg
from methods.feddf import FedDF
from methods.fedmd import FedMD
from reports.kinds.numbers import PROPERTIES
from tests.federation.tiny import make_federation


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
    assert list(found) == list(PROPERTIES)
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
