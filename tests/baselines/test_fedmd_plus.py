"""FedMD+: what teachers agree on, and in which order the target digests it and revisits its own
images.
"""

import pytest
import torch

from fedtables.baselines.fedmd_plus import FedMDPlus
from fedtables.federation.inside.networks import HeterogeneousClientsError
from fedtables.federation.shared.amalgamation import hint_loss
from fedtables.federation.training.loops import predict
from fedtables.models.cut import Encoder, encode
from tests.methods.private_servers import private_server, private_servers
from tests.methods.shards import booked, copied, network_inputs, size

METHOD = FedMDPlus(rounds=3, public_samples=8, digest_epochs=2, revisit_epochs=1)


def spied(monkeypatch, **changes):
    """A federation, and in order what crosses and what is trained: (kind, client, content)."""
    events = []
    federation = private_servers(**changes)
    federation.stages.teachers()

    def deliver(transfer, tensors):
        events.append((transfer.direction, transfer.client, copied(tensors)))
        return tensors

    federation.channel.deliver = deliver
    train = federation.train

    def keep(model, images, targets, loss, plan, *names, **options):
        about = {"images": images, "targets": targets, "loss": loss, "plan": plan, **options}
        events.append((names[0], names[1], about))
        return train(model, images, targets, loss, plan, *names, **options)

    monkeypatch.setattr(federation, "train", keep)
    return federation, events


def test_the_consensus_is_the_mean_of_the_teachers_features_of_the_same_images(monkeypatch):
    federation, events = spied(monkeypatch)
    METHOD.fit(federation)
    teachers = [federation.networks.module(teacher) for teacher in federation.stages.teachers()]
    for number in (1, 2, 3):
        (digest,) = (
            content for kind, when, content in events if (kind, when) == ("digest", number)
        )
        with torch.no_grad():
            features = [
                encode(teacher, network_inputs(digest["images"], federation.clients[0].normalise))
                for teacher in teachers
            ]
        torch.testing.assert_close(digest["targets"], (features[0] + features[1] + features[2]) / 3)
        assert not torch.equal(features[0], features[1])
    position = next(n for n, (kind, *_) in enumerate(events) if kind == "digest")
    sent = [content["features"] for kind, _, content in events[:position] if kind == "up"]
    torch.testing.assert_close(events[position][2]["targets"], (sent[0] + sent[1] + sent[2]) / 3)


def test_a_round_is_communicate_then_digest_then_revisit(monkeypatch):
    federation, events = spied(monkeypatch, clients=2)
    METHOD.fit(federation)
    crossing = [("down", 0), ("up", 0), ("down", 1), ("up", 1)]
    assert [event[:2] for event in events] == [
        event
        for number in (1, 2, 3)
        for event in (*crossing, ("digest", number), ("revisit", number))
    ]
    digest, revisit = events[4][2], events[5][2]
    assert digest["loss"] is hint_loss
    assert (digest["plan"].epochs, digest["plan"].lr, digest["augmented"]) == (2, 1e-3, False)
    assert revisit["images"] is federation.probe().images
    assert (revisit["plan"].epochs, revisit["plan"].lr) == (1, federation.server.lr)


def test_every_round_draws_from_the_unlabelled_and_the_probe_images_without_repeats(monkeypatch):
    federation, events = spied(monkeypatch)
    METHOD.fit(federation)
    whole = torch.cat([federation.public.images, federation.probe().images])
    drawn = []
    for kind, _, content in events:
        if kind == "digest":
            same = (content["images"][:, None] == whole[None]).flatten(2).all(dim=2)
            drawn.append(same.float().argmax(dim=1).tolist())
            assert same.any(dim=1).all()
    assert [len(set(positions)) for positions in drawn] == [8, 8, 8]
    assert len({frozenset(positions) for positions in drawn}) == 3
    downs = [content["public"] for kind, _, content in events if kind == "down"]
    assert all(torch.equal(downs[0], other) for other in downs[:3])  # the same for all teachers


def test_every_byte_is_images_down_and_features_up():
    federation = private_servers(2)
    METHOD.fit(federation)
    down, up = size("public", 8, 1, 8, 8, dtype=torch.uint8), size("features", 8, 16, 2, 2)
    assert booked(federation) == {
        (number, way, kind, client): (bytes_sent, 1)
        for number in (1, 2, 3)
        for client in (0, 1)
        for way, kind, bytes_sent in (("down", "images", down), ("up", "features", up))
    }


def test_teachers_of_several_networks_are_refused_and_a_target_of_another_is_not():
    clients = [private_server(0), private_server(1, "resnet8-narrow")]
    with pytest.raises(
        HeterogeneousClientsError,
        match=r"share one network; here are \['cnn-small', 'resnet8-narrow'\]",
    ):
        METHOD.fit(private_servers(clients))
    federation = private_servers(2, network="resnet8-narrow", teachers="cnn-small")
    model = METHOD.fit(federation)
    assert model.network == "resnet8-narrow"
    assert all(tensor.isfinite().all() for tensor in model.state.values())


def test_the_target_revisits_its_images_with_the_encoder_that_has_digested(monkeypatch):
    federation, encoders = private_servers(2), []
    federation.stages.teachers()
    train = federation.train

    def keep(model, images, *rest, **options):
        encoder = Encoder(getattr(model, "student", model))
        before = predict(encoder, images, normalise=federation.normalise)
        train(model, images, *rest, **options)
        encoders.append(
            (predict(encoder, federation.probe().images, normalise=federation.normalise), before)
        )

    monkeypatch.setattr(federation, "train", keep)
    METHOD.fit(federation)
    for (digested, _), (_, revisited) in zip(encoders[::2], encoders[1::2], strict=True):
        torch.testing.assert_close(revisited, digested)
    assert not any(torch.equal(after, before) for after, before in encoders[1::2])
