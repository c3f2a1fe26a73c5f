"""Augmentation: nothing by default, and never more than was asked for."""

import pytest
import torch

from fedtables.federation.augmentation import Augmentation, augment_pairs


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def augment(images, how, draws, mean=(0.5,)):
    return augment_pairs(images, None, how, draws, mean)[0]


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


def test_a_flip_mirrors_left_and_right_exactly_or_not_at_all():
    images = torch.rand(40, 3, 7, 7)
    out = augment(images, Augmentation(horizontal_flip=True), generator())
    same = (out - images).abs().amax(dim=(1, 2, 3)) < 1e-5
    mirrored = (out - images.flip(3)).abs().amax(dim=(1, 2, 3)) < 1e-5
    assert bool((same ^ mirrored).all())
    assert 10 <= int(mirrored.sum()) <= 30


def test_a_change_of_scale_moves_points_away_from_the_centre_or_towards_it_within_its_share():
    images = dots(400, 21, 10, 16)  # six pixels right of the centre
    rows, columns = centroids(augment(images, Augmentation(scale=0.25), generator()))
    assert rows.abs().max() < 0.2
    assert 4.4 < columns.min() < 4.8 < 7.2 < columns.max() < 7.6


def test_a_channel_shift_adds_one_constant_per_image_within_the_range():
    out = (
        augment(torch.full((200, 3, 4, 4), 0.5), Augmentation(channel_shift=0.2), generator()) - 0.5
    )
    per_image = out.flatten(1)
    torch.testing.assert_close(per_image, per_image[:, :1].expand_as(per_image))
    assert -0.2 <= per_image.min() < -0.17
    assert 0.17 < per_image.max() <= 0.2 + 1e-6


def test_rotation_keeps_the_centre_and_stays_within_its_angle():
    at_centre = augment(
        dots(1, 9, 4, 4).expand(30, 1, 9, 9), Augmentation(rotation=20), generator()
    )
    assert (at_centre[:, 0, 4, 4] > 0.99).all()
    rows, columns = centroids(
        augment(dots(200, 41, 20, 36), Augmentation(rotation=20), generator())
    )
    angles = torch.atan2(rows, columns).rad2deg()
    assert angles.abs().max() < 20.5
    assert angles.min() < -17
    assert angles.max() > 17
    torch.testing.assert_close(
        torch.hypot(rows, columns), torch.full((200,), 16.0), atol=0.3, rtol=0
    )


def test_a_rotation_of_an_image_that_is_not_square_keeps_distances():
    images = torch.zeros(60, 1, 31, 15)
    images[:, 0, 14:17, 6:9] = 1
    images[:, 0, 4:7, 6:9] = 1  # ten pixels above the other square, which is in the centre
    out = augment(images, Augmentation(rotation=30), generator())[:, 0, :11]
    place = torch.arange(31) - 15.0
    rows = (out.sum(dim=2) * place[:11]).sum(dim=1) / out.sum(dim=(1, 2))
    columns = (out.sum(dim=1) * place[8:23]).sum(dim=1) / out.sum(dim=(1, 2))
    torch.testing.assert_close(
        torch.hypot(rows, columns), torch.full((60,), 10.0), atol=0.1, rtol=0
    )
    assert columns.abs().max() > 3


def test_a_shift_moves_by_at_most_its_share_of_the_side_either_way():
    rows, columns = centroids(augment(dots(300, 20, 10, 10), Augmentation(shift=0.2), generator()))
    for moved in (rows - 0.5, columns - 0.5):
        assert moved.abs().max() < 4.01
        assert moved.min() < -3.5
        assert moved.max() > 3.5
    assert abs(torch.corrcoef(torch.stack([rows, columns]))[0, 1]) < 0.2


@pytest.mark.parametrize(
    "how",
    [Augmentation(rotation=45), Augmentation(shift=0.4), Augmentation(rotation=20, shift=0.2)],
)
def test_points_from_outside_take_the_value_of_the_border(how):
    images = torch.full((20, 2, 8, 8), 0.7)
    torch.testing.assert_close(augment(images, how, generator()), images)


# -- crop and cutout --


def test_a_crop_is_one_of_the_windows_of_the_bordered_image_and_all_occur_alike():
    image = torch.arange(1.0, 10).view(3, 3) / 9
    bordered = torch.zeros(5, 5)
    bordered[1:4, 1:4] = image
    windows = torch.stack(
        [bordered[row : row + 3, column : column + 3] for row in range(3) for column in range(3)]
    )
    out = augment(image.expand(900, 1, 3, 3), Augmentation(crop=1), generator())
    equal = (out == windows).flatten(2).all(dim=2)  # (images, windows)
    assert equal.sum(dim=1).tolist() == [1] * 900
    counts = equal.sum(dim=0)  # 100 each on average, with a deviation of 9.4
    assert 65 < counts.min() <= counts.max() < 135


def test_a_flip_next_to_a_crop_mirrors_exactly():
    image = torch.rand(3, 6, 6)  # on a side of 6, resampling would change the last digits
    bordered = torch.nn.functional.pad(image, (1, 1, 1, 1))
    windows = [
        bordered[:, row : row + 6, column : column + 6] for row in range(3) for column in range(3)
    ]
    bordered = bordered.flip(2)
    windows += [
        bordered[:, row : row + 6, column : column + 6] for row in range(3) for column in range(3)
    ]
    out = augment(
        image.expand(300, 3, 6, 6), Augmentation(crop=1, horizontal_flip=True), generator()
    )
    equal = (out[:, None] == torch.stack(windows)).flatten(2).all(dim=2)
    assert equal.sum(dim=1).tolist() == [1] * 300
    assert equal.any(dim=0).all()
    assert 110 < equal[:, :9].sum() < 190


def holes(side, cutout, count=400):
    """The distinct sets of pixels that cutouts of black images leave grey."""
    out = augment(torch.zeros(count, 1, side, side), Augmentation(cutout=cutout), generator())
    assert set(out.unique().tolist()) == {0, 0.5}
    return {tuple((image[0] == 0.5).int().flatten().tolist()) for image in out}


def test_a_cutout_of_2_by_2_covers_a_pixel_and_those_before_it_clipped_at_the_border():
    expected = set()
    for row in range(4):
        for column in range(4):
            hole = torch.zeros(4, 4, dtype=torch.int)
            hole[max(row - 1, 0) : row + 1, max(column - 1, 0) : column + 1] = 1
            expected.add(tuple(hole.flatten().tolist()))
    assert (
        holes(4, 2) == expected
    )  # 9 whole squares, 3 halves at the upper border, 3 at the left, 1 corner
    assert sorted(map(sum, expected)) == [1] + [2] * 6 + [4] * 9


def test_a_cutout_takes_the_mean_of_each_channel_and_leaves_the_rest():
    images = torch.rand(50, 3, 8, 8)
    out = augment(images, Augmentation(cutout=4), generator(), (0.1, 0.2, 0.3))
    changed = (out != images).any(dim=1)
    assert changed.flatten(1).sum(dim=1).max() == 16
    assert changed.flatten(1).sum(dim=1).min() >= 4  # a corner: half the side each way
    inside = out.permute(0, 2, 3, 1)[changed]
    torch.testing.assert_close(inside, torch.tensor([0.1, 0.2, 0.3]).expand_as(inside))
