"""Training as the run has it, at the server and on clients."""

import torch

from federation.training.loops import TrainingPlan
from tests.federation.tiny import make_federation


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_training_returns_a_history_only_when_tracked():
    federation = make_federation()
    plan = TrainingPlan(epochs=2, batch_size=3)
    arguments = (
        federation.public.images,
        torch.zeros(6, dtype=torch.long),
        federation.task.loss,
        plan,
        "x",
    )
    assert federation.train(federation.networks.initial("cnn-small"), *arguments) == {}
    assert (
        len(
            federation.train(federation.networks.initial("cnn-small"), *arguments, track=True)[
                "accuracy"
            ]
        )
        == 2
    )


def test_the_names_of_a_training_choose_its_shuffling():
    federation = make_federation()

    def weights(*names):
        model = federation.networks.initial("cnn-small")
        labels = torch.tensor([0, 1, 2] * 2)
        federation.train(
            model, federation.public.images, labels, federation.task.loss, federation.local, *names
        )
        return dict(model.state_dict())

    assert same(weights("a"), weights("a"))
    assert not same(weights("a"), weights("b"))


def test_tracking_does_not_change_what_is_learnt():
    federation = make_federation(network="resnet8-narrow")

    def weights(track):
        model = federation.networks.initial("resnet8-narrow")
        labels = torch.tensor([0, 1, 2] * 2)
        federation.train(
            model,
            federation.public.images,
            labels,
            federation.task.loss,
            federation.local,
            "a",
            track=track,
        )
        return dict(model.state_dict())

    assert same(weights(track=True), weights(track=False))


def test_training_on_a_client_uses_its_samples_the_given_plan_and_its_own_stream():
    federation = make_federation()

    def trained_on(client, *names, epochs=1):
        model = federation.networks.initial("cnn-small")
        plan = TrainingPlan(epochs=epochs, batch_size=4, lr=0.01)
        federation.train_on_clients([(federation.clients[client], model)], plan, *names)
        return dict(model.state_dict())

    first = trained_on(0, "round", 1)
    assert same(first, trained_on(0, "round", 1))
    assert not same(first, trained_on(0, "round", 2))
    assert not same(first, trained_on(1, "round", 1))
    assert not same(first, trained_on(0, "round", 1, epochs=2))


def test_a_client_adds_its_penalty_to_the_loss():
    federation = make_federation(local=TrainingPlan(epochs=20, batch_size=12, lr=0.05))

    def head_norm(penalty):
        model = federation.networks.initial("cnn-small")
        federation.train_on_clients(
            [(federation.clients[0], model)], federation.local, penalties=[penalty]
        )
        return model.head.weight.norm().item()

    shrunk = head_norm(lambda model, batch: 10 * model.head.weight.square().sum())
    assert shrunk < 0.5 * head_norm(None)
