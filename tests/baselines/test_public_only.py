"""Training on the public labels alone: the oracle it needs, and that no client has a part in it."""

import pytest
import torch

from baselines.public_only import PublicOnly
from federation.inside.evaluation import OracleError
from tests.federation.tiny import make_federation
from tests.methods.shards import WHOLE_BATCHES, client_with, descend, same_bits

LABELS = torch.tensor([0, 1, 2] * 2)


def with_labels(labels=LABELS, **changes):
    return make_federation(oracle_labels=labels, oracle_allowed=PublicOnly.oracle, **changes)


def test_without_the_oracle_there_is_no_upper_bound():
    with pytest.raises(OracleError, match="public-labels"):
        PublicOnly().fit(make_federation())
    with pytest.raises(OracleError):
        PublicOnly().fit(make_federation(oracle_labels=LABELS))


def test_it_is_supervised_training_on_the_public_set_by_the_servers_plan():
    federation = with_labels(server=WHOLE_BATCHES)
    model = PublicOnly().fit(federation)
    expected = descend(federation.networks.initial("cnn-small"), federation.public.images, LABELS)
    torch.testing.assert_close(model.state, expected.state_dict())
    assert len(model.history["accuracy"]) == WHOLE_BATCHES.epochs


def test_it_learns_what_the_labels_say():
    # Labels turned by one: the test set's own accuracy is then that of a model that is wrong
    # everywhere.
    plan = type(WHOLE_BATCHES)(epochs=30, batch_size=3, lr=0.01)
    right = PublicOnly().fit(with_labels(server=plan))
    turned = PublicOnly().fit(with_labels((LABELS + 1) % 3, server=plan))
    assert right.history["accuracy"][-1] == 1
    assert turned.history["accuracy"][-1] == 0


def test_nothing_crosses_and_no_client_matters():
    federation, other = with_labels(), with_labels()
    other.clients = (client_with(0, [2] * 5),)
    assert same_bits(PublicOnly().fit(federation).state, PublicOnly().fit(other).state)
    assert federation.channel.ledger == []
    assert PublicOnly.sends == frozenset()
