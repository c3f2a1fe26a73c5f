"""MOON: the contrastive loss by hand, whose model is the last one, and where it is FedAvg."""

import math

import pytest
import torch

from fedtables.baselines.moon import MOON, model_contrastive_loss
from fedtables.federation.training.plan import TrainingPlan
from fedtables.methods.fedavg import FedAvg
from tests.federation.tiny import make_client, make_dense_federation, make_federation
from tests.methods.shards import client_with, same_bits

HEAD = "cnn-small+projection"


def test_the_loss_by_hand():
    own = torch.tensor([[2.0, 0.0]])
    like, across = torch.tensor([[5.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    # Cosines 1 and 0, over a temperature of 0.5: e^2 / (e^2 + 1).
    loss = model_contrastive_loss(own, like, across, 0.5)
    assert loss.item() == pytest.approx(-math.log(math.exp(2) / (math.exp(2) + 1)))
    away = model_contrastive_loss(own, across, like, 0.5)
    assert away.item() == pytest.approx(-math.log(1 / (math.exp(2) + 1)))


def test_it_is_the_mean_of_the_batch_and_ln_2_where_both_models_agree():
    own = torch.tensor([[1.0, 0.0], [1.0, 0.0]], requires_grad=True)
    other = torch.tensor([[1.0, 2.0], [-3.0, 1.0]])
    loss = model_contrastive_loss(own, other, other, 0.5)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert own.grad.abs().max() == 0
    one = model_contrastive_loss(own[:1], other[:1], other[1:], 0.5)
    both = model_contrastive_loss(own, other, torch.stack([other[1], other[1]]), 0.5)
    assert both.item() == pytest.approx((one.item() + math.log(2)) / 2)


def federation(head=False, **changes):
    clients = [make_client(index, network=HEAD if head else "cnn-small") for index in range(3)]
    return make_federation(clients, network=HEAD if head else "cnn-small", **changes)


ALL = {"participation": 1.0}


@pytest.mark.parametrize("head", [True, False])
def test_with_mu_zero_it_is_fedavg_on_its_network_to_the_last_bit(head):
    found = MOON(rounds=3, mu=0.0, projection=head, **ALL).fit(federation())
    plain = FedAvg(rounds=3, **ALL).fit(federation(head))
    assert found.network == plain.network
    assert same_bits(found.state, plain.state)


@pytest.mark.parametrize(("rounds", "same"), [(1, True), (2, False)])
def test_the_first_round_is_fedavgs_for_all_models_are_alike(rounds, same):
    found = MOON(rounds=rounds, mu=5.0, projection=False, **ALL).fit(federation())
    plain = FedAvg(rounds=rounds, **ALL).fit(federation())
    alike = [torch.allclose(found.state[n], plain.state[n], atol=1e-5) for n in plain.state]
    assert all(alike) == same


def test_a_batch_of_one_sample_is_learnt_from():
    one = make_federation([client_with(0, [1])], local=TrainingPlan(1, 1, 0.01))
    found = MOON(rounds=2, mu=1.0, **ALL).fit(one)
    assert all(tensor.isfinite().all() for tensor in found.state.values())


def test_nothing_crosses_that_does_not_with_fedavg():
    own, plain = federation(), federation(head=True)
    MOON(rounds=2, **ALL).fit(own)
    FedAvg(rounds=2, **ALL).fit(plain)
    assert own.channel.ledger == plain.channel.ledger


def test_a_task_without_one_class_per_image_is_refused():
    with pytest.raises(ValueError, match="one class per image"):
        MOON(rounds=1).fit(make_dense_federation())
