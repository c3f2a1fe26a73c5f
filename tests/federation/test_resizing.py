"""Samples at another size: rounded or not, of two and of three dimensions, of sides that differ."""

import pytest
import torch

from federation.windows import resize, sides_of

STEPS = torch.arange(16.0).view(1, 1, 4, 4)


def test_uint8_images_are_rounded_and_float32_images_are_not():
    assert resize(STEPS, 2).tolist() == [[[[2.5, 4.5], [10.5, 12.5]]]]
    small = resize(STEPS.to(torch.uint8), 2)
    assert small.dtype == torch.uint8
    assert small.tolist() == [[[[2, 4], [10, 12]]]]  # to even, as IEEE has it


def test_sides_may_differ():
    assert resize(STEPS, (2, 4)).tolist() == [[[[2, 3, 4, 5], [10, 11, 12, 13]]]]
    assert resize(STEPS, (4, 2))[0, 0, 0].tolist() == [0.5, 2.5]


def test_volumes_take_the_mean_of_what_a_voxel_covers():
    volume = torch.arange(8.0).view(1, 1, 2, 2, 2)
    assert resize(volume, 1).tolist() == [[[[[3.5]]]]]
    assert resize(volume, (1, 2, 2)).flatten().tolist() == [2, 3, 4, 5]
    assert resize(volume, 4).shape == (1, 1, 4, 4, 4)


def test_samples_of_the_size_are_left_alone():
    assert resize(STEPS, 4) is STEPS
    assert resize(STEPS, (4, 4)) is STEPS


def test_planned_samples_have_the_size_and_no_content():
    planned = resize(torch.empty(2, 3, 4, 5, 6, device="meta"), (4, 2, 2))
    assert planned.is_meta
    assert planned.shape == (2, 3, 4, 2, 2)


def test_as_many_sides_as_dimensions_are_needed():
    assert sides_of(3, 2) == (3, 3)
    with pytest.raises(ValueError, match="3 sides cannot be those of 2 dimensions"):
        resize(STEPS, (2, 2, 2))
