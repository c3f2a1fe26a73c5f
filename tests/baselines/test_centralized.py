"""Centralized training: all samples in one place, and the price of bringing them there."""

import torch

from baselines.centralized import Centralized
from federation.channel import encoded_size
from tests.federation.tiny import bright_images, make_federation
from tests.methods.shards import WHOLE_BATCHES, descend, mixed_clients, samples_of, uneven_clients


def test_it_is_training_on_the_shards_put_together():
    clients = uneven_clients()
    federation = make_federation(clients, local=WHOLE_BATCHES)
    model = Centralized().fit(federation)
    images, targets = (torch.cat(part) for part in zip(*map(samples_of, clients), strict=True))
    assert len(images) == 2 + 4 + 6 + 8 + 10
    expected = descend(federation.networks.initial("cnn-small"), images, targets)
    torch.testing.assert_close(model.state, expected.state_dict())


def test_every_client_sends_its_images_and_its_targets_once_to_the_byte():
    federation = make_federation(uneven_clients())
    Centralized().fit(federation)
    expected = []
    for k, size in enumerate((2, 4, 6, 8, 10)):
        images = encoded_size({"images": torch.empty(size, 1, 8, 8, dtype=torch.uint8)})
        targets = encoded_size({"targets": torch.empty(size, dtype=torch.long)})
        expected += [("up", "images", k, images, 1), ("up", "labels", k, targets, 1)]
    assert [
        (t.direction, t.kind, t.client, t.bytes, t.messages) for t in federation.channel.ledger
    ] == expected
    assert {t.kind for t in federation.channel.ledger} == Centralized.sends


def test_clients_networks_do_not_matter():
    model = Centralized().fit(make_federation(mixed_clients(), network="densenet-tiny"))
    assert model.network == "densenet-tiny"


def test_it_learns_and_tracks_every_epoch():
    federation = make_federation(clients=3)
    model = Centralized().fit(federation)
    assert len(model.history["accuracy"]) == federation.local.epochs
    predicted = federation.networks.module(model)(
        (bright_images(torch.tensor([0, 1, 2]), 9) / 255 - 0.5) / 0.25
    ).argmax(dim=1)
    assert predicted.tolist() == [0, 1, 2]
