"""BatchNorm of a single value takes the running statistics."""

import pytest
import torch
from torch import nn

from fedtables.federation.execution import DEFAULT
from fedtables.federation.training.loops import forward_pass
from fedtables.methods.fedavg import FedAvg
from tests.federation.tiny import make_federation
from tests.methods.shards import client_with


def running(mean, variance):
    norm = nn.BatchNorm1d(2, eps=1e-12).train()
    norm.running_mean, norm.running_var = torch.tensor(mean), torch.tensor(variance)
    return norm


def test_one_value_per_channel_is_normalised_by_the_running_statistics_which_stay():
    norm, sample = running([1.0, 2.0], [4.0, 9.0]), torch.tensor([[5.0, -1.0]])
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        norm(sample)
    outputs = forward_pass(DEFAULT, torch.device("cpu"))(norm, sample)
    assert outputs.tolist() == [pytest.approx([2.0, -1.0])]  # (5 - 1) / 2 and (-1 - 2) / 3
    assert norm.running_mean.tolist() == [1.0, 2.0]


def test_a_client_of_one_sample_trains_where_the_last_map_is_one_pixel():
    clients = [client_with(0, [1], "resnet10-slim"), client_with(1, [0], "resnet10-slim")]
    federation = make_federation(clients, network="resnet10-slim")
    before = federation.networks.initial("resnet10-slim").state_dict()
    fitted = FedAvg(rounds=1, participation=1.0).fit(federation)
    moved = [name for name, tensor in before.items() if not torch.equal(tensor, fitted.state[name])]
    assert any(name.endswith("weight") for name in moved)
    assert all(tensor.isfinite().all() for tensor in fitted.state.values())
