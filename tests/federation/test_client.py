"""A client: public facts for everybody, samples only for what runs on it."""

from collections import UserDict

import pytest
import torch

from fedtables.datasets.access import AccessError, while_fitting
from fedtables.federation.client import Client, Shard

SHARD = Shard(torch.zeros(4, 1, 2, 2, dtype=torch.uint8), torch.tensor([0, 2, 2, 1]))
CLIENT = Client(3, "resnet", "resnet8-narrow", SHARD, (1, 1, 2), "abc")


def test_no_public_attribute_holds_samples():
    public = {name: getattr(CLIENT, name) for name in dir(CLIENT) if not name.startswith("_")}
    assert {"index", "size", "run"} <= set(public)
    assert not [name for name, value in public.items() if isinstance(value, Shard | torch.Tensor)]


# -- shards --

IMAGES = torch.arange(24, dtype=torch.uint8).view(6, 1, 2, 2)
TARGETS = torch.tensor([0, 1, 2, 0, 1, 2])


def make_shard(indices):
    return Shard(
        IMAGES.clone(),
        TARGETS.clone(),
        None if indices is None else torch.tensor(indices, dtype=torch.int64),
    )


def test_a_shard_is_the_samples_at_its_indices_in_their_order():
    shard = make_shard([4, 1, 2])
    assert len(shard) == 3
    assert torch.equal(shard.images, IMAGES[[4, 1, 2]])
    assert shard.targets.tolist() == [1, 1, 2]


@pytest.mark.parametrize("indices", [None, [4, 1, 2]], ids=["all", "some"])
def test_what_is_done_to_a_look_at_a_shard_leaves_the_shard_alone(indices):
    shard = make_shard(indices)
    before = shard.images, shard.targets
    shard.images.zero_()
    shard.targets.fill_(9)
    shard.images_at(torch.tensor([0, 1])).zero_()
    shard.targets_at(torch.tensor([0, 1])).fill_(9)
    assert torch.equal(shard.images, before[0])
    assert torch.equal(shard.targets, before[1])


# -- while a method fits --


def two_clients():
    return [Client(k, "x", "x", make_shard([k, k + 2]), (), str(k)) for k in range(2)]


@pytest.mark.parametrize(
    "leaving",
    [
        lambda shard: shard.images,
        lambda shard: {"held": [(1, shard.targets)]},
        lambda shard: {shard.targets},
        lambda shard: UserDict(held=shard.targets),
        lambda shard: shard.images_at(torch.tensor([0]))[:, :, 1:],
        lambda shard: shard,
    ],
)
def test_samples_do_not_leave_by_what_a_function_returns(leaving):
    client, _ = two_clients()
    with while_fitting(), pytest.raises(AccessError, match="samples leave client 0"):
        client.run(leaving)
    client.run(leaving)  # measures may


def test_what_is_computed_of_samples_may_be_returned():
    client, _ = two_clients()
    with while_fitting():
        assert client.run(lambda shard: shard.images.float().mean()).item() == 5.5
        assert client.run(lambda shard: client.run(lambda again: len(again.images))) == 2


def test_a_shard_that_was_kept_shows_nothing_afterwards():
    client, _ = two_clients()
    kept = []
    with while_fitting():
        client.run(kept.append)
        with pytest.raises(AccessError, match="while they run"):
            _ = kept[0].targets
    assert kept[0].targets.tolist() == [0, 2]


def test_one_client_does_not_run_on_another_but_several_may_run_together():
    first, second = two_clients()
    seen = []
    with while_fitting():
        with pytest.raises(AccessError, match="what runs on client 0 cannot run on client 1"):
            first.run(lambda _: second.run(len))
        Client.run_together(
            [first, second], lambda shards: seen.extend(s.targets.tolist() for s in shards)
        )
        second.run(len)
    assert seen == [[0, 2], [1, 0]]


@pytest.mark.parametrize("leaks", [0, 1])
def test_what_is_computed_together_may_be_returned_but_no_samples(leaks):
    clients = two_clients()
    with while_fitting():
        counts = Client.run_together(clients, lambda shards: [len(s.images) for s in shards])
        assert counts == [2, 2]
        with pytest.raises(AccessError, match=f"samples leave client {leaks}"):
            Client.run_together(clients, lambda shards: [1, shards[leaks].targets])
