"""Training as the run has it, at the server and on clients."""

from dataclasses import astuple

import pytest

from fedtables.federation.augmentation import Augmentation
from fedtables.federation.cache import StageCache
from fedtables.federation.execution import Execution
from fedtables.federation.samples import counted
from fedtables.federation.training.plan import SteadyPenalty, TrainingPlan
from fedtables.methods.dlad import DLAD
from fedtables.methods.fedavg import FedAvg
from fedtables.methods.fedprox import FedProx
from tests.federation.tiny import make_federation
from tests.methods.shards import same_bits, uneven_clients


def test_training_on_a_client_uses_its_samples_the_given_plan_and_its_own_stream():
    federation = make_federation()

    def trained_on(client, *names, epochs=1):
        model = federation.networks.initial("cnn-small")
        plan = TrainingPlan(epochs=epochs, batch_size=4, lr=0.01)
        federation.train_on_clients([(federation.clients[client], model)], plan, *names)
        return dict(model.state_dict())

    first = trained_on(0, "round", 1)
    assert same_bits(first, trained_on(0, "round", 1))
    assert not same_bits(first, trained_on(0, "round", 2))
    assert not same_bits(first, trained_on(1, "round", 1))
    assert not same_bits(first, trained_on(0, "round", 1, epochs=2))


# -- clients side by side --


def side_by_side(stacked, clients=None, **changes):
    return make_federation(
        clients or uneven_clients(),
        local=TrainingPlan(2, 4, 0.05, "sgd", momentum=0.9),
        execution=Execution(stacked=stacked),
        augmentation=Augmentation(rotation=20),
        **changes,
    )


@pytest.mark.parametrize("stacked", [2, 9])
def test_side_by_side_clients_have_the_bits_samples_and_bytes_of_those_alone(stacked):
    fits = []
    for count in (1, stacked):
        federation = side_by_side(count, looks=1)
        with counted() as seen:
            models = federation.local_models() + federation.stages.teachers()
            student = DLAD(classifier_epochs=2).fit(federation)
            rounds = FedAvg(rounds=2, participation=1.0).fit(federation)
        ledger = sorted(map(astuple, federation.channel.ledger))
        fits.append(([*models, student, rounds], seen.total(), ledger))
    (alone, *amounts), (together, *same_amounts) = fits
    assert amounts == same_amounts
    for one, other in zip(alone, together, strict=True):
        assert one.history == other.history
        assert same_bits(one.state, other.state)


def test_a_stage_that_is_there_is_not_computed_again_beside_others(tmp_path):
    lost = side_by_side(5, stages=StageCache(tmp_path)).local_models()[1].lineage
    for part in tmp_path.rglob(f"{lost}.*"):
        part.unlink()
    rest = side_by_side(5, stages=StageCache(tmp_path))
    assert len(rest.local_models()) == 5
    assert [event.key for event in rest.stages.cache.events if event.computed] == [lost]


def test_clients_with_a_penalty_that_is_not_steady_take_no_turns(monkeypatch):
    taken = []

    def penalty(self, this, client, worker):
        def term(model, batch):
            taken.append(client.index)
            return batch.outputs.new_zeros(())

        return term if self.mu else SteadyPenalty(term)

    monkeypatch.setattr(FedProx, "penalty", penalty)
    for mu in (0.5, 0.0):
        FedProx(rounds=1, participation=1.0, mu=mu).fit(side_by_side(3))
    one_by_one, in_turns = taken[: len(taken) // 2], taken[len(taken) // 2 :]
    assert one_by_one == sorted(one_by_one) == sorted(in_turns) != in_turns
