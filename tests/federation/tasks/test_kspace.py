"""Undersampled k-space: transforms by hand, and masks by their counts."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedtables.federation.tasks.values import (
    limits,
    random_columns,
    to_images,
    to_kspace,
    zero_filled,
)


def drawn_columns(width, acceleration, centre, rng):
    return random_columns(torch.from_numpy(rng.random(width)), acceleration, centre).numpy()


IMAGES = torch.rand(3, 1, 12, 16, generator=torch.Generator().manual_seed(0))


def test_a_flat_image_has_its_energy_in_the_middle():
    kspace = to_kspace(torch.full((4, 6), 0.5))
    expected = torch.zeros(4, 6, dtype=torch.complex64)
    expected[2, 3] = 0.5 * 24 / 24**0.5
    torch.testing.assert_close(kspace, expected)


def test_there_and_back_is_the_image_and_keeps_its_energy():
    kspace = to_kspace(IMAGES)
    torch.testing.assert_close(to_images(kspace).real, IMAGES)
    assert to_images(kspace).imag.abs().max() < 1e-6
    torch.testing.assert_close(kspace.abs().square().sum(), IMAGES.square().sum())


def test_limits_are_deviations_of_each_image_with_n_minus_one():
    images = torch.tensor([[[0.0, 0.0], [0.0, 4.0]], [[1.0, 1.0], [1.0, 1.0]]])
    low, high = limits(images, deviations=1.5)  # mean 1 and deviation 2, then 1 and 0
    assert low.flatten().tolist() == [-2.0, 1.0]
    assert high.flatten().tolist() == [4.0, 1.0]


@given(
    width=st.integers(16, 400),
    acceleration=st.sampled_from([2.0, 4.0, 8.0]),
    centre=st.sampled_from([0.0, 0.04, 0.08]),
    seed=st.integers(0, 100),
)
def test_the_middle_is_measured_and_the_rest_by_chance(width, acceleration, centre, seed):
    columns = drawn_columns(width, acceleration, centre, np.random.default_rng(seed))
    low = round(width * centre)
    first = (width - low + 1) // 2
    assert columns[first : first + low].all()
    drawn, chance = columns.sum() - low, (width / acceleration - low) / (width - low)
    spread = ((width - low) * chance * (1 - chance)) ** 0.5
    assert abs(drawn - chance * (width - low)) <= 6 * spread + 1


@pytest.mark.parametrize(("acceleration", "centre"), [(4, 0.3), (0.5, 0.08)])
def test_a_centre_that_is_more_than_all_is_refused(acceleration, centre):
    with pytest.raises(ValueError, match="lower the centre's share"):
        random_columns(torch.rand(100), acceleration, centre)


def test_all_columns_give_the_image_and_the_middle_one_the_mean_of_rows():
    every = torch.ones(1, 16)
    torch.testing.assert_close(zero_filled(IMAGES, every), IMAGES)
    middle = torch.zeros(1, 16)
    middle[0, 8] = 1
    means = IMAGES.mean(dim=-1, keepdim=True).expand_as(IMAGES)
    torch.testing.assert_close(zero_filled(IMAGES, middle), means)
