"""Answers that are too large to be kept are computed anew for each batch, with the same outcome."""

import pytest
import torch

from fedtables.federation.costs import Meter, active_meter, metering
from fedtables.federation.shared import consensus
from fedtables.federation.shared.consensus import are_kept, book_epoch
from fedtables.federation.training.plan import TrainingPlan
from fedtables.methods.fedad import FedAD
from fedtables.methods.fedad.losses import Asked
from fedtables.methods.feddf import FedDF
from fedtables.methods.fedmd import FedMD
from tests.federation.tiny import make_federation
from tests.methods.fedad.cases import transferred
from tests.methods.fedad.test_fedad_dense import (
    POSITIONS,
    dense_federation,
    image_federation,
    larger,
)
from tests.methods.shards import same_bits


def pixels():
    return dense_federation(server=TrainingPlan(epochs=2, batch_size=4, lr=0.01))


DF = FedDF(rounds=1, participation=1.0, distillation_steps=4, evaluation_interval=2)


@pytest.mark.parametrize(
    ("method", "federation"),
    [
        (FedAD(one_shot=True), pixels),
        (FedAD(one_shot=True, dropped=1), pixels),
        (FedAD(one_shot=True), image_federation),
        (DF, pixels),
    ],
    ids=["fedad-pixels", "fedad-dropped", "fedad-images", "feddf"],
)
def test_with_answers_by_batch_the_network_and_the_bytes_are_the_same(
    monkeypatch, method, federation
):
    kept, anew = federation(), federation()
    first = method.fit(kept)
    monkeypatch.setattr(consensus, "MOST_KEPT", 0)
    second = method.fit(anew)
    assert anew.channel.by_kind() == kept.channel.by_kind()
    for name, weights in first.state.items():
        torch.testing.assert_close(second.state[name], weights, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("method", [FedAD(one_shot=True), FedMD(rounds=1)])
@pytest.mark.parametrize("windows", [False, True])
def test_answers_that_are_worked_on_in_parts_make_the_same_network(monkeypatch, method, windows):
    def federation():
        return dense_federation(public=larger()) if windows else dense_federation()

    first = method.fit(federation())
    monkeypatch.setattr(consensus, "AT_ONCE", 1)
    second = method.fit(federation())
    assert same_bits(first.state, second.state)


def test_answers_are_kept_up_to_a_number_of_bytes(monkeypatch):
    federation = image_federation()
    # Of two clients for five images, with their attention, in float32.
    whole = 2 * 4 * 5 * (32 * 32 + POSITIONS**2)
    for most, kept in ((whole, True), (whole - 1, False)):
        monkeypatch.setattr(consensus, "MOST_KEPT", most)
        assert are_kept(federation, 2, POSITIONS**2) == kept
        found, _ = transferred(federation, FedAD(one_shot=True))
        assert isinstance(found, Asked) != kept


def test_answers_of_one_number_a_class_those_of_an_epoch_and_stitched_ones_are_always_kept(
    monkeypatch,
):
    monkeypatch.setattr(consensus, "MOST_KEPT", 0)
    assert FedAD(one_shot=True).keeps(make_federation(), 1)
    assert FedAD(one_shot=False).keeps(dense_federation(), 1)
    assert FedAD(one_shot=True, quantised=True).keeps(dense_federation(), 1)
    assert FedAD(one_shot=True).keeps(dense_federation(public=larger()), 1)
    assert not FedAD(one_shot=True).keeps(dense_federation(), 1)


def test_a_plan_counts_the_answers_of_every_batch():
    asked = []

    def answer(batch):
        asked.append((len(batch), active_meter().times))

    with metering(Meter()):
        book_epoch(answer, images=10, batch_size=4)
    assert asked == [(4, 3)]
    book_epoch(answer, images=10, batch_size=4)  # a run asks by itself
    assert len(asked) == 1
