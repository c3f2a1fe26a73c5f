"""Attention maps on one grid, and what they bound together, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from federation.shared.averaging import aligned, attention_bounds
from federation.tasks.images import Classification, MultiLabel

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
