"""Averages of network states, by hand: parameters, BatchNorm's statistics and its counter."""

import math
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fedtables.federation.shared.averaging import (
    aligned,
    attention_bounds,
    average_states,
    quantised,
    restored,
)
from fedtables.federation.tasks.images import Classification, MultiLabel


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


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_in_bytes_values_are_within_half_a_step(seed):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(7, 3, 2, 2, generator=generator) * torch.tensor([0.01, 1.0, 100.0]).view(
        3, 1, 1
    )
    values[:, 1, 1, 1] = 0.5
    found = restored(quantised(values))
    by_class = values.transpose(0, 1).flatten(1)
    step = (by_class.amax(dim=1) - by_class.amin(dim=1)) / 255
    assert ((found - values).abs() <= 0.51 * step.view(3, 1, 1)).all()


def test_a_class_of_equal_values_survives_in_bytes():
    values = torch.tensor([[2.5, 0.0], [2.5, 0.0]])
    assert restored(quantised(values)).tolist() == values.tolist()


NAN = math.nan
FIRST, SECOND = [[1.0, 0.2], [0.6, 0.0]], [[0.5, 1.0], [0.7, 0.0]]


def test_bounds_are_the_least_and_the_greatest_of_the_clients_maps():
    maps = torch.tensor([FIRST, SECOND])[:, None, None]
    consensus, diversity = attention_bounds(maps, torch.ones(2, 1, dtype=torch.bool))
    torch.testing.assert_close(consensus, torch.tensor([[[[0.5, 0.2], [0.6, 0.0]]]]))
    torch.testing.assert_close(diversity, torch.tensor([[[[1.0, 1.0], [0.7, 0.0]]]]))


def test_only_clients_that_hold_a_class_bound_its_attention():
    maps = torch.tensor([[[FIRST, FIRST, FIRST]], [[SECOND, SECOND, [[NAN, NAN], [NAN, NAN]]]]])
    consensus, diversity = attention_bounds(
        maps, torch.tensor([[False, False, True], [True, False, False]])
    )
    for bound in (consensus, diversity):
        torch.testing.assert_close(bound, torch.tensor([[SECOND, [[0.0, 0.0], [0.0, 0.0]], FIRST]]))


def test_maps_are_enlarged_bilinearly_and_put_at_the_places_of_their_classes():
    maps = torch.tensor([[[[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]]])
    torch.testing.assert_close(aligned(maps, (2, 2), None, Classification(2)), maps)
    # The second of four positions lies a quarter of the way: 2 * 0.25 * 0.75.
    assert aligned(maps, (4, 4), None, Classification(2))[0, 0, 1, 1].item() == pytest.approx(0.375)
    own, task = MultiLabel(("c", "a")), MultiLabel(("a", "b", "c"))
    placed = aligned(maps, (2, 2), own, task)
    torch.testing.assert_close(placed[:, [0, 2]], maps[:, [1, 0]])
    assert placed[:, 1].isnan().all()
