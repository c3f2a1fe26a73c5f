"""Centralized training: all samples in one place, and the price of bringing them there."""

import torch

from fedtables.baselines.centralized import Centralized
from tests.federation.tiny import make_federation
from tests.methods.shards import (
    WHOLE_BATCHES,
    booked,
    descend,
    samples_of,
    size,
    uneven_clients,
)


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
    expected = {}
    for k, held in enumerate((2, 4, 6, 8, 10)):
        images = size("images", held, 1, 8, 8, dtype=torch.uint8)
        expected[0, "up", "images", k] = (images, 1)
        expected[0, "up", "labels", k] = (size("targets", held, dtype=torch.long), 1)
    assert booked(federation) == expected
