"""FedMD: the consensus and the order of a round, and every byte that crosses."""

import torch

from fedtables.federation.channel import Channel
from fedtables.federation.data import PublicData
from fedtables.federation.inside.trainer import Trainer
from fedtables.federation.training.loops import predict
from fedtables.methods.fedmd import FedMD, absolute_error
from tests.federation.tiny import CLASSES, bright_images, make_client, make_federation
from tests.methods.shards import booked, client_with, size

PUBLIC = PublicData(bright_images(torch.arange(20) % CLASSES, 100), "twenty images")
METHOD = FedMD(rounds=3, public_samples=8, digest_epochs=2, digest_batch_size=4, revisit_epochs=1)


def test_the_absolute_error_is_the_mean_over_classes_for_each_sample():
    outputs = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    targets = torch.tensor([[1.0, 0.0, 7.0], [0.5, -0.5, 2.0]])
    assert absolute_error(outputs, targets).tolist() == [2.0, 1.0]


def spied(monkeypatch, **changes):
    """A federation with twenty public images, the payloads it sends, and what it trains, in
    order.
    """
    events = []
    train = Trainer.train

    def keep(trainer, model, samples, training, *rest):
        start = predict(model, federation.public.images, normalise=federation.normalise)
        about = {"images": samples.images, "targets": samples.targets}
        about |= {"loss": training.loss, "plan": training.plan}
        events.append(("train", None, federation.channel.round, about))
        history = train(trainer, model, samples, training, *rest)
        events[-1][3].update(
            start=start,
            end=predict(model, federation.public.images, normalise=federation.normalise),
        )
        return history

    monkeypatch.setattr(Trainer, "train", keep)

    def deliver(transfer, tensors):
        events.append((transfer.direction, transfer.client, transfer.round, tensors))
        return tensors

    federation = make_federation(**{"public": PUBLIC, **changes}, channel=Channel(deliver))
    federation.local_models()
    events.clear()
    return federation, events


def of(events, what, number):
    return [content for kind, _, round_, content in events if (kind, round_) == (what, number)]


def test_the_consensus_that_goes_down_is_the_plain_mean_of_the_logits_that_came_up(monkeypatch):
    # Sizes do not matter.
    clients = [client_with(0, [0] * 20 + [1] * 10), make_client(1), make_client(2)]
    federation, events = spied(monkeypatch, clients=clients)
    METHOD.fit(federation)
    for number in (1, 2, 3):
        up, down = of(events, "up", number), of(events, "down", number)
        assert len(up) == len(down) == 3
        mean = (up[0]["logits"] + up[1]["logits"] + up[2]["logits"]) / 3
        for content in down:
            torch.testing.assert_close(content["consensus"], mean)


def test_a_round_is_communicate_then_for_each_client_digest_then_revisit(monkeypatch):
    federation, events = spied(monkeypatch)
    METHOD.fit(federation)
    order = [(kind, client) for kind, client, number, _ in events if number == 2]
    learnt = [("train", None)] * 2
    assert order == [("up", 0), ("up", 1), ("down", 0), *learnt, ("down", 1), *learnt]
    for client, position in zip(federation.clients, (0, 2), strict=True):
        digest, revisit = of(events, "train", 2)[position : position + 2]
        assert torch.equal(digest["targets"], of(events, "down", 2)[client.index]["consensus"])
        assert digest["loss"] is absolute_error
        plan = digest["plan"]
        assert (plan.epochs, plan.batch_size, plan.optimizer) == (2, 4, "adam")
        assert torch.equal(revisit["images"], client.run(lambda shard: shard.images))
        assert torch.equal(revisit["targets"], client.run(lambda shard: shard.targets))
        assert (revisit["plan"].epochs, revisit["plan"].lr) == (1, federation.local.lr)
        torch.testing.assert_close(revisit["start"], digest["end"])


def test_what_a_client_sends_next_is_what_it_thinks_after_its_revisit(monkeypatch):
    federation, events = spied(monkeypatch)
    METHOD.fit(federation)
    after = [content["end"] for content in of(events, "train", 3)[1::2]]
    for sent, thought in zip(of(events, "up", 4), after, strict=True):
        torch.testing.assert_close(sent["logits"], thought)


def test_clients_come_with_models_trained_on_their_own_data(monkeypatch):
    federation, events = spied(monkeypatch)
    METHOD.fit(federation)
    first = of(events, "train", 1)[::2]
    for model, digest in zip(federation.local_models(), first, strict=True):
        torch.testing.assert_close(
            digest["start"],
            predict(
                federation.networks.module(model), PUBLIC.images, normalise=federation.normalise
            ),
        )


def test_every_round_draws_fresh_public_images_without_repeats_the_same_for_all(monkeypatch):
    federation, events = spied(monkeypatch)
    METHOD.fit(federation)
    positions = []
    for number in (1, 2, 3):
        batches = [content["images"] for content in of(events, "train", number)[::2]]
        assert torch.equal(batches[0], batches[1])
        same = (batches[0][:, None] == PUBLIC.images[None]).flatten(2).all(dim=2)
        positions.append(frozenset(same.float().argmax(dim=1).tolist()))
        assert same.any(dim=1).all()
    assert [len(chosen) for chosen in positions] == [8, 8, 8]
    assert len(set(positions)) == 3


def test_the_central_model_learns_the_last_consensus_on_all_public_images(monkeypatch):
    federation, events = spied(monkeypatch)
    distilled = []
    monkeypatch.setattr(federation, "distill", lambda *arguments: distilled.append(arguments))
    METHOD.fit(federation)
    first, second = (content["logits"] for content in of(events, "up", 4))
    ((targets, loss),) = distilled
    torch.testing.assert_close(targets, (first + second) / 2)
    assert targets.shape == (20, CLASSES)
    assert loss is absolute_error


def test_every_byte_is_logits_of_the_rounds_samples_and_of_the_whole_public_set_at_the_end():
    federation = make_federation(clients=3, public=PUBLIC)
    METHOD.fit(federation)
    sent = {"up": size("logits", 8, CLASSES), "down": size("consensus", 8, CLASSES)}
    expected = {
        (n, way, "logits", k): (sent[way], 1) for n in (1, 2, 3) for way in sent for k in range(3)
    }
    whole = size("logits", 20, CLASSES)
    assert booked(federation) == expected | {(4, "up", "logits", k): (whole, 1) for k in range(3)}


def test_a_public_set_smaller_than_a_rounds_share_is_used_whole():
    federation = make_federation()
    FedMD(rounds=1, revisit_epochs=1).fit(federation)
    assert len(federation.public) < FedMD().public_samples
    up = {t.bytes for t in federation.channel.ledger if t.direction == "up"}
    assert up == {size("logits", 6, CLASSES)}
