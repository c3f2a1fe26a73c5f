"""Training on the public labels alone: the oracle it needs, and that no client has a part in it."""

import torch

from fedtables.baselines.public_only import PublicOnly
from tests.federation.tiny import make_federation
from tests.methods.shards import WHOLE_BATCHES, descend

LABELS = torch.tensor([0, 1, 2] * 2)


def with_labels(labels=LABELS, **changes):
    return make_federation(oracle_labels=labels, oracle_allowed=PublicOnly.oracle, **changes)


def test_it_is_supervised_training_on_the_public_set_by_the_servers_plan():
    federation = with_labels(server=WHOLE_BATCHES)
    model = PublicOnly().fit(federation)
    expected = descend(federation.networks.initial("cnn-small"), federation.public.images, LABELS)
    torch.testing.assert_close(model.state, expected.state_dict())
    assert len(model.history["accuracy"]) == WHOLE_BATCHES.epochs
