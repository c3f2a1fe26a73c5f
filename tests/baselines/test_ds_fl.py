"""DS-FL: entropy reduction by hand, the order of a round, and every byte that crosses."""

import math

import pytest
import torch

from fedtables.baselines.ds_fl import DSFL, entropy_reduction
from fedtables.federation.channel import Channel
from fedtables.federation.data import PublicData
from fedtables.federation.inside.trainer import Trainer
from fedtables.federation.tasks.values import DenseRegression
from fedtables.federation.training.loops import predict
from tests.federation.tiny import CLASSES, bright_images, make_client, make_federation
from tests.methods.shards import booked, client_with, copied, mixed_clients, same_bits, size

PUBLIC = PublicData(bright_images(torch.arange(20) % CLASSES, 100), "twenty images")
METHOD = DSFL(
    rounds=3,
    public_samples=8,
    local_epochs=2,
    distillation_epochs=3,
    distillation_batch_size=4,
    distillation_lr=0.05,
)


def entropy(probabilities):
    return -(probabilities * probabilities.log()).sum(dim=1)


def test_labels_are_a_softmax_of_mean_probabilities_by_hand():
    mean = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    found = entropy_reduction(mean, 0.1)
    # exp(5), exp(3), exp(2) over their sum; exp(1), exp(1), exp(8).
    sums = math.exp(5) + math.exp(3) + math.exp(2), 2 * math.exp(1) + math.exp(8)
    expected = [
        [math.exp(5) / sums[0], math.exp(3) / sums[0], math.exp(2) / sums[0]],
        [math.exp(1) / sums[1], math.exp(1) / sums[1], math.exp(8) / sums[1]],
    ]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_a_certain_answer_of_ten_classes_stays_so_at_a_tenth_and_not_at_one():
    certain = torch.eye(10)[:1]
    assert entropy_reduction(certain, 0.1)[0, 0].item() == pytest.approx(0.9996, abs=5e-5)
    assert entropy_reduction(certain, 1.0)[0, 0].item() == pytest.approx(0.232, abs=5e-4)


def test_a_tenth_sharpens_one_or_more_flattens_and_no_argmax_moves():
    # Of ten classes one has half or more: T = 0.1 would flatten where several are about as likely.
    others = torch.rand(200, 10, generator=torch.Generator().manual_seed(0)) + 1e-3
    mean = 0.5 * torch.eye(10).repeat(20, 1) + 0.5 * others / others.sum(dim=1, keepdim=True)
    assert (entropy(entropy_reduction(mean, 0.1)) < entropy(mean)).all()
    for temperature in (0.1, 1.0, 5.0):
        found = entropy_reduction(mean, temperature)
        assert torch.equal(found.argmax(dim=1), mean.argmax(dim=1))
        torch.testing.assert_close(found.sum(dim=1), torch.ones(200))
        if temperature >= 1:
            assert (entropy(found) > entropy(mean)).all()


def test_towards_zero_labels_are_the_argmax_of_the_mean():
    mean = torch.tensor([[0.34, 0.33, 0.33], [0.2, 0.3, 0.5]])
    torch.testing.assert_close(entropy_reduction(mean, 1e-4), torch.eye(3)[[0, 2]])


def spied(monkeypatch, method, clients=2, **changes):
    """What is trained and what crosses in a fit, in order, and its checkpoint."""
    events = []
    train = Trainer.train

    def keep(trainer, model, samples, training, *rest):
        def seen():
            return predict(model, PUBLIC.images, normalise=federation.normalise)

        start = seen()
        history = train(trainer, model, samples, training, *rest)
        about = {"targets": samples.targets, "images": samples.images, "plan": training.plan}
        about |= {"augmented": training.augmented, "start": start, "end": seen()}
        events.append((training.names[0], model, federation.channel.round, about))
        return history

    monkeypatch.setattr(Trainer, "train", keep)

    def deliver(transfer, tensors):
        events.append((transfer.direction, transfer.client, transfer.round, copied(tensors)))
        return tensors

    federation = make_federation(clients, **{"public": PUBLIC, **changes}, channel=Channel(deliver))
    return method.fit(federation), events


def of(events, what, number):
    return [content for kind, _, round_, content in events if (kind, round_) == (what, number)]


def test_a_round_is_update_upload_broadcast_distil_and_then_the_server_learns(monkeypatch):
    _, events = spied(monkeypatch, METHOD)
    for number in (1, 2, 3):
        order = [kind for kind, _, round_, _ in events if round_ == number]
        expected = ["client"] * 2 + ["up"] * 2 + ["down"] * 2 + ["digest"] * 2 + ["server"]
        assert order == expected
    local, learnt = of(events, "client", 2)[0], of(events, "digest", 2)[0]
    assert (local["plan"].epochs, local["plan"].lr, local["plan"].optimizer) == (2, 0.01, "adam")
    plan = learnt["plan"]
    assert (plan.epochs, plan.batch_size, plan.lr, plan.optimizer) == (3, 4, 0.05, "sgd")
    assert not learnt["augmented"]
    assert of(events, "server", 2)[0]["plan"] == plan


def test_labels_are_the_sharpened_mean_of_the_probabilities_that_came_up(monkeypatch):
    # Sizes do not matter.
    clients = [client_with(0, [0] * 20 + [1] * 10), make_client(1), make_client(2)]
    _, events = spied(monkeypatch, METHOD, clients)
    for number in (1, 2, 3):
        up = torch.stack([content["logits"] for content in of(events, "up", number)])
        torch.testing.assert_close(up.sum(dim=2), torch.ones(3, 8))
        expected = entropy_reduction(up.mean(dim=0), 0.1)
        learners = of(events, "digest", number) + of(events, "server", number)
        for content in learners:
            torch.testing.assert_close(content["targets"], expected)
        for content in of(events, "down", number):
            torch.testing.assert_close(content["labels"], expected)


def test_networks_go_on_from_round_to_round_and_the_server_begins_untrained(monkeypatch):
    model, events = spied(monkeypatch, METHOD)
    by_client = [of(events, "client", n)[0] for n in (1, 2, 3)]
    for number in (1, 2):
        after = of(events, "digest", number)[0]["end"]
        torch.testing.assert_close(by_client[number]["start"], after)
    federation = make_federation()
    untrained = federation.networks.initial()
    before = predict(untrained, PUBLIC.images, normalise=federation.normalise)
    torch.testing.assert_close(of(events, "server", 1)[0]["start"], before)
    torch.testing.assert_close(by_client[0]["start"], before)
    fitted = federation.networks.module(model)
    after = predict(fitted, PUBLIC.images, normalise=federation.normalise)
    torch.testing.assert_close(of(events, "server", 3)[0]["end"], after)


def test_all_learn_the_rounds_own_public_images_drawn_without_repeats(monkeypatch):
    _, events = spied(monkeypatch, METHOD)
    rounds = []
    for number in (1, 2, 3):
        batches = [c["images"] for c in of(events, "digest", number) + of(events, "server", number)]
        assert all(torch.equal(batches[0], batch) for batch in batches)
        same = (batches[0][:, None] == PUBLIC.images[None]).flatten(2).all(dim=2)
        rounds.append(frozenset(same.float().argmax(dim=1).tolist()))
    assert [len(chosen) for chosen in rounds] == [8, 8, 8]
    assert len(set(rounds)) == 3


def test_every_byte_is_probabilities_or_labels_of_the_rounds_images():
    federation = make_federation(clients=3, public=PUBLIC)
    METHOD.fit(federation)
    sent = {"up": size("logits", 8, CLASSES), "down": size("labels", 8, CLASSES)}
    assert booked(federation) == {
        (n, way, "logits", k): (sent[way], 1) for n in (1, 2, 3) for way in sent for k in range(3)
    }


def test_who_does_not_take_part_neither_sends_nor_learns(monkeypatch):
    method = DSFL(rounds=4, participation=0.4, public_samples=8, local_epochs=1)
    _, events = spied(monkeypatch, method, 5)
    for number in (1, 2, 3, 4):
        up = [client for kind, client, n, _ in events if (kind, n) == ("up", number)]
        down = [client for kind, client, n, _ in events if (kind, n) == ("down", number)]
        assert len(up) == 2
        assert up == down
        assert len(of(events, "client", number)) == len(of(events, "digest", number)) == 2


def test_networks_may_differ_and_a_client_without_samples_stays_out():
    federation = make_federation(mixed_clients(), network="densenet-tiny", public=PUBLIC)
    model = METHOD.fit(federation)
    assert model.network == "densenet-tiny"
    alone = make_federation([client_with(0, [0, 1, 2] * 4), client_with(1, [])], public=PUBLIC)
    METHOD.fit(alone)
    assert {t.client for t in alone.channel.ledger} == {0}


def test_the_temperature_reaches_the_labels():
    warm, cold = (
        DSFL(rounds=1, local_epochs=1, temperature=t).fit(make_federation()) for t in (1.0, 0.1)
    )
    assert not same_bits(warm.state, cold.state)


def test_a_task_without_classes_is_refused():
    federation = make_federation(task=DenseRegression(1), network="cnn-small+dense")
    with pytest.raises(ValueError, match="DS-FL needs public images and a task of classes"):
        METHOD.fit(federation)
