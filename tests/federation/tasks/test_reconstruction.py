"""Reconstruction: its loss by hand, what networks see, what a generator is told, and what it is
measured by.
"""

import torch

from fedtables.federation.tasks.base import conditioned
from fedtables.federation.tasks.values import DARK, Reconstruction
from fedtables.metrics.running import measured

TASK = Reconstruction()


def test_it_is_measured_by_ssim_first():
    images = torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    found = measured(Reconstruction().metrics(), images + 0.1, images)
    assert tuple(found)[:2] == Reconstruction().metric_names == ("ssim", "psnr")


# -- what networks see --


def test_draws_decide_on_the_columns_of_each_image():
    # Of 8 columns 8/4 - 1 are drawn beside the middle one: those with draws below 1/7.
    task = Reconstruction(acceleration=4.0, centre=1 / 8)
    images = torch.rand(3, 1, 4, 8, generator=torch.Generator().manual_seed(0))
    draws = torch.full((3, 8), 0.9)
    draws[1] = 0.0
    draws[2, 3] = 0.1
    seen = task.seen(images, draws)
    # The middle column alone is the mean of every row; all columns are the image.
    means = images.mean(dim=-1, keepdim=True).expand_as(images)
    torch.testing.assert_close(seen[0], means[0])
    torch.testing.assert_close(seen[1], images[1])
    # The column before the middle adds the row's turn by one column in eight.
    turns = torch.exp(2j * torch.pi * torch.arange(8) / 8)
    turned = (images[2] * turns).mean(dim=-1, keepdim=True) * turns.conj()
    torch.testing.assert_close(seen[2], (means[2] + turned).abs())


# -- what a generator is told --


def square():
    """A bright square of 3 x 3 pixels in the middle of a dark image of 13 x 13."""
    image = torch.zeros(1, 1, 13, 13)
    image[..., 5:8, 5:8] = 1
    return image


def test_the_foreground_is_what_is_bright_once_smoothed():
    expected = torch.zeros(1, 13, 13, dtype=torch.int64)
    expected[:, 4:9, 4:9] = 1  # with one bright pixel of nine the mean is 0.11
    found = TASK.label_maps(square())
    assert found.dtype == torch.int64
    assert torch.equal(found, expected)
    assert TASK.label_maps(square() * DARK * 0.9).sum() == 0
    # At twice the threshold five pixels of nine have to be bright: of the square itself only the
    # middle and those above, below and beside it.
    assert TASK.label_maps(square() * DARK * 2).sum() == 5


def test_dark_parts_of_a_few_pixels_are_closed_and_larger_ones_are_not():
    image = torch.ones(1, 1, 24, 24)
    image[..., 4:10, 4:10] = 0  # 6 x 6 pixels, of which smoothing leaves 4 x 4
    image[..., 12:19, 12:19] = 0  # 7 x 7 pixels, of which smoothing leaves 5 x 5
    expected = torch.ones(1, 24, 24, dtype=torch.int64)
    expected[:, 13:18, 13:18] = 0
    assert torch.equal(TASK.label_maps(image), expected)


def test_the_contour_is_where_the_foreground_touches_the_background():
    filled = torch.zeros(1, 7, 7, dtype=torch.int64)
    filled[:, 1:6, 1:6] = 1
    assert TASK.condition(filled)[0, 0].tolist() == [
        [-1, -1, -1, -1, -1, -1, -1],
        [-1, 1, 1, 1, 1, 1, -1],
        [-1, 1, -1, -1, -1, 1, -1],
        [-1, 1, -1, -1, -1, 1, -1],
        [-1, 1, -1, -1, -1, 1, -1],
        [-1, 1, 1, 1, 1, 1, -1],
        [-1, -1, -1, -1, -1, -1, -1],
    ]
    assert TASK.condition(filled).shape == (1, TASK.condition_channels, 7, 7)
    assert TASK.condition(torch.ones_like(filled)).unique().tolist() == [-1]  # of no border


def test_a_generator_imitates_the_whole_image_and_not_what_a_network_sees():
    seen, whole = torch.zeros(2, 1, 4, 4), torch.ones(2, 1, 4, 4)
    assert conditioned(TASK).pictured(seen, whole) is whole


def test_pixels_are_counted_without_classes():
    assert TASK.pixel_counts(torch.zeros(3, 4, 5, dtype=torch.int64)).tolist() == [60]
