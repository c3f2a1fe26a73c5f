"""The pointing game, by hand."""

import pytest
import torch

from metrics.pointing import pointing_hits


def places(row, column, sides):
    """One image of `sides` with a single pixel of what is looked for."""
    there = torch.zeros(1, *sides, dtype=torch.bool)
    there[0, row, column] = True
    return there


def test_a_map_points_at_the_centre_of_its_greatest_position():
    # Of 2 x 2 positions on 8 x 8 pixels the second of the first row has its centre at row 2, column
    # 6.
    maps = torch.tensor([[[0.2, 0.9], [0.3, 0.8]]])
    assert pointing_hits(maps, places(2, 6, (8, 8))).tolist() == [True]
    assert not any(
        pointing_hits(maps, places(row, column, (8, 8)))[0]
        for row in range(8)
        for column in range(8)
        if (row, column) != (2, 6)
    )


@pytest.mark.parametrize(
    ("sides", "row", "column"), [((1, 1), 0, 0), ((2, 3), 1, 1), ((4, 4), 3, 2), ((40, 10), 30, 5)]
)
def test_grids_may_differ_in_both_sides(sides, row, column):
    # Centre of the last row and the middle of three columns.
    maps = torch.tensor([[[0.0, 0.1, 0.2], [0.0, 1.0, 0.2]]])
    assert pointing_hits(maps, places(row, column, sides)).tolist() == [True]


def test_of_equal_positions_the_first_counts_and_an_empty_map_points_nowhere():
    maps = torch.tensor([[[1.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]])
    everywhere = torch.ones(2, 2, 2, dtype=torch.bool)
    assert pointing_hits(maps, everywhere).tolist() == [True, False]
    assert pointing_hits(maps[:1], places(0, 0, (2, 2))).tolist() == [True]
    assert pointing_hits(maps[:1], places(1, 1, (2, 2))).tolist() == [False]
