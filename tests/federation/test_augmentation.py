"""Augmentation: nothing by default, and never more than was asked for."""

import math

import pytest
import torch

from federation.augmentation import Augmentation, augment


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def dots(count, side, row, column):
    images = torch.zeros(count, 1, side, side)
    images[:, 0, row, column] = 1
    return images


def centroids(images):
    """Mean row and column of the light in each image, relative to the centre."""
    side = images.shape[-1]
    place = torch.arange(side) - (side - 1) / 2
    light = images.sum(dim=(1, 2, 3))
    rows = (images.sum(dim=(1, 3)) * place).sum(1) / light
    columns = (images.sum(dim=(1, 2)) * place).sum(1) / light
    return rows, columns


def test_an_augmentation_of_nothing_returns_the_images():
    images = torch.rand(4, 3, 6, 6)
    assert torch.equal(augment(images, Augmentation(), generator()), images)


def test_a_flip_mirrors_left_and_right_exactly_or_not_at_all():
    images = torch.rand(40, 3, 7, 7)
    out = augment(images, Augmentation(horizontal_flip=True), generator())
    same = (out - images).abs().amax(dim=(1, 2, 3)) < 1e-5
    mirrored = (out - images.flip(3)).abs().amax(dim=(1, 2, 3)) < 1e-5
    assert bool((same ^ mirrored).all())
    assert 10 <= int(mirrored.sum()) <= 30


def test_a_channel_shift_adds_one_constant_per_image_within_the_range():
    out = augment(torch.full((200, 3, 4, 4), 0.5), Augmentation(channel_shift=0.2), generator()) - 0.5
    per_image = out.flatten(1)
    torch.testing.assert_close(per_image, per_image[:, :1].expand_as(per_image))
    assert -0.2 <= per_image.min() < -0.17
    assert 0.17 < per_image.max() <= 0.2 + 1e-6


def test_a_channel_shift_clips_to_the_unit_range():
    images = torch.stack([torch.zeros(1, 2, 2), torch.ones(1, 2, 2)] * 20)
    out = augment(images, Augmentation(channel_shift=0.5), generator())
    assert (out.min().item(), out.max().item()) == (0.0, 1.0)
    assert len(out.unique()) > 10


def test_rotation_keeps_the_centre_and_stays_within_its_angle():
    at_centre = augment(dots(1, 9, 4, 4).expand(30, 1, 9, 9), Augmentation(rotation=20), generator())
    assert (at_centre[:, 0, 4, 4] > 0.99).all()
    rows, columns = centroids(augment(dots(200, 41, 20, 36), Augmentation(rotation=20), generator()))
    angles = torch.atan2(rows, columns).rad2deg()
    assert angles.abs().max() < 20.5
    assert angles.min() < -17
    assert angles.max() > 17
    torch.testing.assert_close(torch.hypot(rows, columns), torch.full((200,), 16.0), atol=0.3, rtol=0)


def test_a_shift_moves_by_at_most_its_share_of_the_side_either_way():
    rows, columns = centroids(augment(dots(300, 20, 10, 10), Augmentation(shift=0.2), generator()))
    for moved in (rows - 0.5, columns - 0.5):
        assert moved.abs().max() < 4.01
        assert moved.min() < -3.5
        assert moved.max() > 3.5
    assert abs(torch.corrcoef(torch.stack([rows, columns]))[0, 1]) < 0.2


@pytest.mark.parametrize("how", [Augmentation(rotation=45), Augmentation(shift=0.4), Augmentation(rotation=20, shift=0.2)])
def test_points_from_outside_take_the_value_of_the_border(how):
    images = torch.full((20, 2, 8, 8), 0.7)
    torch.testing.assert_close(augment(images, how, generator()), images)


ALL = Augmentation(rotation=20, shift=0.2, channel_shift=0.2, horizontal_flip=True)


def test_the_same_generator_state_gives_the_same_images_and_another_state_others():
    images = torch.rand(5, 3, 8, 8)
    assert torch.equal(augment(images, ALL, generator(1)), augment(images, ALL, generator(1)))
    assert not torch.equal(augment(images, ALL, generator(1)), augment(images, ALL, generator(2)))


def test_equal_images_are_changed_independently():
    out = augment(torch.rand(1, 1, 8, 8).expand(10, 1, 8, 8), ALL, generator())
    assert len({tuple(image.flatten().tolist()) for image in out}) == 10


def test_the_given_images_are_left_alone():
    images = torch.rand(5, 3, 8, 8)
    before = images.clone()
    augment(images, ALL, generator())
    assert torch.equal(images, before)


def test_shape_type_and_range_are_kept():
    out = augment(torch.rand(6, 3, 9, 9), ALL, generator())
    assert (out.shape, out.dtype) == ((6, 3, 9, 9), torch.float32)
    assert 0 <= out.min() <= out.max() <= 1


def test_a_quarter_turn_moves_a_dot_by_a_quarter_turn():
    rows, columns = centroids(augment(dots(400, 41, 20, 36), Augmentation(rotation=90), generator()))
    angles = torch.atan2(rows, columns).abs()
    assert math.radians(85) < angles.max() < math.radians(90.5)
