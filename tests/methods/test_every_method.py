"""What holds for every method: its plan, an interrupted fit, and clients that are not alike."""

from dataclasses import fields, replace

import pytest
import torch

from fedtables.baselines.centralized import Centralized
from fedtables.baselines.fedkd_gong import FedKDGong
from fedtables.benchmarks.scenarios.small import shortened, small_method
from fedtables.benchmarks.tables import registry
from fedtables.federation.costs import Meter, metering
from fedtables.federation.fitting import listed
from fedtables.federation.snapshots import Snapshots
from fedtables.federation.training.plan import DivergedError, TrainingPlan
from fedtables.methods.fedad import FedAD
from fedtables.methods.fedavg import FedAvg
from fedtables.methods.fediod import FedIOD
from fedtables.methods.fedmd import FedMD
from tests.device_fits import PowerCutError, federation_on
from tests.federation.tiny import CLASSES, make_federation
from tests.methods.shards import client_with, mixed_clients, same_bits

LENGTH_BY_NOISE = {"li-2019"}
"""Whose payloads are as long as noise decides."""


@pytest.mark.parametrize("name", sorted({*registry.methods()} - LENGTH_BY_NOISE))
def test_a_plan_books_the_bytes_of_the_run(name):
    method = shortened(small_method(registry.find_method(name)))
    real, planned = (federation_on(device, method) for device in ("cpu", "meta"))
    method.fit(real)
    with metering(Meter()):
        method.fit(planned)
    assert planned.channel.by_kind() == real.channel.by_kind()


# -- interrupted --


ROUNDS = {"rounds", "interval", "iterations", "epochs"}
"""Fields of which one says that a method has rounds."""
OTHERWISE = {
    "fedad": {"dropped": 1},
    "fedkd-gong": {"multi_round": True},
    "fediod": {"optimizer": "sgd", "student_steps": 2, "weights": "size"},
    "fediod-segmentation": {"judges": "own", "weights": "size", "amsgrad": True},
    "fedsa": {"transferability": "released", "retrain": False, "selection_gap": 2},
}
"""Settings under which a round takes other things over from the one before."""
WITH_ROUNDS = [
    name
    for name in registry.methods()
    if name in OTHERWISE or ROUNDS & {f.name for f in fields(registry.find_method(name).load())}
]


def with_three_rounds(name, changes):
    """The method of the contract, with brief loops but three rounds."""
    method = shortened(small_method(registry.find_method(name)))
    able = {field.name for field in fields(method)}
    if {"steps", "interval"} <= able:
        changes = {**changes, "steps": 3 * method.interval}
    return replace(
        method, **{n: 3 for n in ("rounds", "epochs", "iterations") if n in able}, **changes
    )


@pytest.mark.parametrize(
    ("name", "changes"),
    [*((name, {}) for name in WITH_ROUNDS if name != "fedkd-gong"), *OTHERWISE.items()],
)
def test_a_fit_cut_off_after_a_round_goes_on_and_ends_like_one_that_was_not(
    name, changes, tmp_path
):
    method, rounds, cut = with_three_rounds(name, changes), [], True

    def progress(text, share):
        if text.startswith("round "):
            rounds.append(text.partition("/")[0])
        if cut and text.startswith("round 3/"):
            raise PowerCutError

    def federation(**options):
        return federation_on("cpu", method, **options, **{"server.epochs": 3})

    undisturbed, stopped, resumed = (
        federation(),
        federation(progress=progress),
        federation(progress=progress),
    )
    whole = method.fit(undisturbed)
    for one in (stopped, resumed):
        one.stages.snapshots = Snapshots(tmp_path / "snapshot", every=0)
    with pytest.raises(PowerCutError):
        method.fit(stopped)
    cut = False
    rounds.clear()
    found = method.fit(resumed)
    assert rounds[0] == "round 3"
    assert resumed.channel.ledger == undisturbed.channel.ledger
    for again, before in zip(listed(found), listed(whole), strict=True):
        assert same_bits(again.state, before.state)
        assert again.history == before.history
        if before.samples is not None:
            assert torch.equal(again.samples, before.samples)


# -- clients that are not alike --

GENERATED = {"epochs": 2, "steps": 2, "batch_size": 4, "width": 4, "discriminator_width": 4}
AGNOSTIC = [
    FedMD(rounds=2, public_samples=4, revisit_epochs=1),
    FedIOD(**GENERATED, samples=0),
    FedAD(one_shot=True),
    FedKDGong(),
    FedKDGong(multi_round=True),
    Centralized(),
]


@pytest.mark.parametrize("method", AGNOSTIC, ids=lambda method: type(method).__name__)
def test_networks_may_differ_between_clients(method):
    network = "cnn-small" if isinstance(method, FedAD) else "densenet-tiny"
    federation = make_federation(mixed_clients(), network=network)
    model = method.fit(federation)
    assert model.network == network
    assert federation.networks.module(model)(torch.zeros(2, 1, 8, 8)).shape == (2, CLASSES)


@pytest.mark.parametrize(
    "method", [FedAvg(rounds=2, participation=1.0), *AGNOSTIC[:3]], ids=lambda m: type(m).__name__
)
def test_a_client_without_samples_sends_its_counts_at_most(method):
    federation = make_federation([client_with(0, [0, 1, 2] * 4), client_with(1, [])])
    method.fit(federation)
    assert {t.client for t in federation.channel.ledger if t.kind != "labels"} == {0}


DIVERGING = TrainingPlan(epochs=2, batch_size=3, lr=1e30)


@pytest.mark.parametrize(
    "method",
    [
        FedKDGong(),
        FedKDGong(multi_round=True),
        FedIOD(**GENERATED, lr=1e30),
        FedIOD(**GENERATED, generator_lr=1e30),
    ],
)
def test_a_fit_that_diverges_is_an_error(method):
    with pytest.raises(DivergedError):
        method.fit(make_federation(server=DIVERGING))
