"""Averages of network states, by hand: parameters, BatchNorm's statistics and its counter."""

import weakref

import pytest
import torch
from torch import nn

from federation.shared.averaging import average_states


def state(**entries):
    return {name: torch.tensor(value) for name, value in entries.items()}


def batch_norm(weight, bias, mean, var, batches):
    layer = nn.BatchNorm2d(1)
    layer.load_state_dict(
        state(
            weight=[weight],
            bias=[bias],
            running_mean=[mean],
            running_var=[var],
            num_batches_tracked=batches,
        )
    )
    return layer.state_dict()


def test_the_mean_is_weighted_by_the_clients_sizes():
    averaged = average_states([state(w=[1.0, 2.0]), state(w=[5.0, -2.0])], [30, 10])
    assert averaged["w"].tolist() == [2.0, 1.0]  # (3 x 1 + 5) / 4 and (3 x 2 - 2) / 4


def test_batchnorms_statistics_are_averaged_with_its_parameters_and_its_counter_is_rounded():
    averaged = average_states(
        [batch_norm(1.0, 0.0, 4.0, 1.0, 12), batch_norm(3.0, 2.0, 0.0, 9.0, 13)], [1, 3]
    )
    assert {name: tensor.item() for name, tensor in averaged.items()} == {
        "weight": 2.5,
        "bias": 1.5,
        "running_mean": 1.0,
        "running_var": 7.0,
        "num_batches_tracked": 13,  # 12.75, rounded
    }
    assert nn.BatchNorm2d(1).load_state_dict(averaged)


def test_sums_are_taken_in_double_precision():
    # In single precision a quarter is lost beside 2^22, so that the last two digits of this mean
    # would be.
    states = [state(w=[2.0**24]), state(w=[1.0]), state(w=[1.0]), state(w=[2.0])]
    assert average_states(states, [1, 1, 1, 1])["w"].item() == 2**22 + 1


def test_states_are_looked_at_one_at_a_time():
    handed_out, still_held = [], []

    def states():
        for value in (1.0, 2.0, 6.0, 3.0):
            tensor = torch.tensor([value])
            handed_out.append(weakref.ref(tensor))
            yield {"w": tensor}
            del tensor
            still_held.append(sum(reference() is not None for reference in handed_out))

    assert average_states(states(), [1, 1, 1, 1])["w"].item() == 3  # 12 / 4
    assert (
        max(still_held) <= 1
    )  # when the next is asked for, the last may still be there, but none before it


@pytest.mark.parametrize(
    "other",
    [state(w=[1.0, 2.0]), state(v=[1.0]), state(w=[1.0], v=[1.0]), {}],
    ids=["another shape", "another name", "one more", "none"],
)
def test_states_of_different_networks_are_refused(other):
    with pytest.raises(ValueError, match="different networks cannot be averaged"):
        average_states([state(w=[1.0]), other], [1, 1])


@pytest.mark.parametrize("weights", [[0, 0], [2, -1], [-1, -1]])
def test_weights_that_are_negative_or_all_zero_are_refused(weights):
    with pytest.raises(ValueError, match="at least 0 and not all 0"):
        average_states([state(w=[1.0])] * 2, weights)


@pytest.mark.parametrize(("states", "weights"), [(2, [1]), (1, [1, 1]), (0, [])])
def test_another_number_of_weights_than_of_states_is_refused(states, weights):
    with pytest.raises(ValueError, match=f"got {states} states and {len(weights)} weights"):
        average_states([state(w=[1.0])] * states, weights)
