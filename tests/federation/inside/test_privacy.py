"""Budgets of clients: noise that fits them, training that stops before they are passed, and what a
cache must not forget.
"""

from dataclasses import replace

import pytest
import torch

from fedtables.datasets.access import AccessError, while_fitting
from fedtables.federation.cache import StageCache
from fedtables.federation.execution import Execution
from fedtables.federation.fitting import fit
from fedtables.federation.inside.privacy import Protection
from fedtables.federation.training.plan import TrainingPlan
from fedtables.methods.fedavg import FedAvg
from fedtables.methods.fedmd import FedMD
from fedtables.privacy.accounting import epsilon
from fedtables.privacy.plan import PrivacyPlan
from fedtables.privacy.releases import GaussianSteps
from tests.federation.tiny import make_federation

PLAN = PrivacyPlan("dp-sgd", epsilon=8.0)
LOCAL = TrainingPlan(epochs=3, batch_size=4, lr=0.01)


def private(plan=PLAN, kinds=frozenset({"parameters"}), **options):
    return make_federation(protection=Protection(plan, kinds), local=LOCAL, **options)


def test_noise_is_reserved_for_all_that_a_client_will_do_and_for_its_label_counts():
    federation = private(kinds=frozenset({"parameters", "labels"}))
    client = federation.clients[0]
    federation.privacy.reserve((LOCAL, {0: 5, 1: 1}))
    first = federation.privacy.steps(client, LOCAL)
    whole = [GaussianSteps(10.0, 1.0, 1), replace(first, steps=5 * 9).release]
    assert 7.9 < epsilon(whole, 1e-5) <= 8
    assert (
        federation.privacy.steps(federation.clients[1], LOCAL).noise_multiplier
        < first.noise_multiplier
    )


def test_a_given_noise_ends_training_before_the_budget_and_says_so():
    federation = private(replace(PLAN, noise_multiplier=1.5))
    client, model = federation.clients[0], federation.networks.initial("cnn-small")
    taken = []
    while federation.privacy.can_train(client, LOCAL):
        taken.append(federation.privacy.steps(client, LOCAL).steps)
        federation.train_on_clients([(client, model)], LOCAL, len(taken))
    total = sum(taken)
    assert taken[-1] < 9 == taken[0]
    assert (
        epsilon([GaussianSteps(1.5, 1 / 3, total)], 1e-5)
        <= 8
        < epsilon([GaussianSteps(1.5, 1 / 3, total + 1)], 1e-5)
    )
    assert federation.privacy.protection.accountant.epsilon(0) == pytest.approx(
        epsilon([GaussianSteps(1.5, 1 / 3, total)], 1e-5)
    )
    assert federation.privacy.protection.notes == [
        "stopped before the budget of 8 would have been passed"
    ]
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    federation.train_on_clients([(client, model)], LOCAL, "again")
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_local_models_are_spent_for_whoever_trained_them():
    stages = StageCache(None)
    first, second = private(stages=stages), private(stages=stages)
    models = first.local_models()
    again = second.local_models()
    assert [event.computed for event in stages.events] == [True, True, False, False]
    assert all(
        torch.equal(a.state["head.weight"], b.state["head.weight"])
        for a, b in zip(models, again, strict=True)
    )
    assert (
        second.privacy.protection.accountant.epsilon()
        == first.privacy.protection.accountant.epsilon()
        > 7.9
    )
    plain = make_federation(stages=stages, local=LOCAL).local_models()
    assert not torch.equal(plain[0].state["head.weight"], models[0].state["head.weight"])


def test_label_counts_are_noisy_and_booked():
    federation = private(replace(PLAN, counts_noise=3.0), frozenset({"labels"}))
    exact = torch.tensor([client.label_counts for client in federation.clients])
    counts = federation.label_counts()
    assert counts.is_floating_point()
    assert (counts != exact).any()
    assert (counts >= 0).all()
    assert (counts - exact).abs().max() < 6 * 3.0
    assert federation.privacy.protection.accountant.releases(1) == (GaussianSteps(3.0, 1.0, 1),)


@pytest.mark.parametrize(
    "method",
    [FedAvg(rounds=3, participation=0.5), FedMD(rounds=2, public_samples=3)],
)
def test_methods_that_train_in_rounds_use_their_budget_up_and_no_more(method):
    federation = private(kinds=type(method).protected["dp-sgd"], clients=3)
    fit(federation, method)
    spent = [
        federation.privacy.protection.accountant.epsilon(client.index)
        for client in federation.clients
    ]
    assert all(value == 0 or 7.5 < value <= 8 for value in spent)
    assert max(spent) > 7.5
    assert federation.privacy.protection.notes == []


def test_a_fit_from_the_cache_has_spent_what_it_spent():
    stages = StageCache(None)
    first, second = private(stages=stages), private(stages=stages)
    fit(first, FedAvg(rounds=2))
    fit(second, FedAvg(rounds=2))
    assert second.privacy.protection.state_dict() == first.privacy.protection.state_dict()
    other = private(replace(PLAN, epsilon=4.0), stages=stages)
    fit(other, FedAvg(rounds=2))
    assert 3.5 < other.privacy.protection.accountant.epsilon() <= 4


def test_private_training_is_eager_and_client_by_client():
    with pytest.raises(ValueError, match="leave out the execution options"):
        private(execution=Execution(stacked=2))


def test_every_budget_and_every_name_has_noise_of_its_own():
    first, other = private(), private(replace(PLAN, epsilon=4.0))
    assert not torch.equal(
        first.privacy.noise("votes", 0).normal(4), other.privacy.noise("votes", 0).normal(4)
    )
    assert not torch.equal(
        first.privacy.noise("votes", 1).normal(4), first.privacy.noise("votes", 2).normal(4)
    )
    with pytest.raises(ValueError, match="noise votes 1 is drawn for the second time"):
        first.privacy.noise("votes", 1)


def test_a_derived_method_inherits_no_promise():
    class Mine(FedAvg):
        pass

    assert FedAvg.protections() == {"dp-sgd": FedAvg.sends}
    assert Mine.protections() == {}


@pytest.mark.parametrize("mechanism", ["dp-sgd", "pate"])
def test_under_dp_sgd_samples_are_for_private_training_alone(mechanism):
    federation = private(PrivacyPlan(mechanism, epsilon=8.0))
    client = federation.clients[0]
    with while_fitting():
        if mechanism == "dp-sgd":
            with pytest.raises(AccessError, match="for its private training alone"):
                client.run(lambda shard: shard.images.float().mean())
            model = federation.networks.initial()
            federation.train_on_clients([(client, model)], LOCAL, "round", 1)
        assert client.run(len) == 12
    assert bool(federation.privacy.protection.accountant.releases(0)) == (mechanism == "dp-sgd")
