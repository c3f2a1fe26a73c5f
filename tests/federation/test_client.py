"""A client: public facts for everybody, samples only for what runs on it."""

import torch

from federation.client import Client, Shard

SHARD = Shard(torch.zeros(4, 1, 2, 2, dtype=torch.uint8), torch.tensor([0, 2, 2, 1]))
CLIENT = Client(3, "resnet", "resnet8-narrow", SHARD, (1, 1, 2), "abc")


def test_a_client_states_its_public_facts():
    assert (CLIENT.index, CLIENT.role, CLIENT.network, CLIENT.size, CLIENT.label_counts, CLIENT.digest) == (
        3, "resnet", "resnet8-narrow", 4, (1, 1, 2), "abc",
    )  # fmt: skip


def test_a_function_that_runs_on_the_client_sees_its_samples():
    assert CLIENT.run(lambda shard: shard.targets.tolist()) == [0, 2, 2, 1]


def test_arguments_reach_the_function_that_runs():
    assert CLIENT.run(lambda shard, a, *, b: (len(shard.images), a, b), "x", b="y") == (4, "x", "y")


def test_no_public_attribute_holds_samples():
    public = {name: getattr(CLIENT, name) for name in dir(CLIENT) if not name.startswith("_")}
    assert {"index", "size", "run"} <= set(public)
    assert not [name for name, value in public.items() if isinstance(value, Shard | torch.Tensor)]


def test_a_client_prints_without_its_samples():
    assert repr(CLIENT) == "Client(3, resnet, 4 samples)"
