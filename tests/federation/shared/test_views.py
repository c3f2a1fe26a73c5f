"""Weak and strong views: the run's augmentation, RandAugment on top, and no pixel moved where
targets belong to pixels.
"""

import pytest
import torch

from fedtables.federation.augmentation import Augmentation, RandAugment
from fedtables.federation.shared.views import strong_view, update_ema, weak_view
from fedtables.federation.tasks.pixels import Segmentation
from fedtables.federation.training.inputs import augmented, unit_range
from tests.federation.tiny import make_federation

FLIPS = Augmentation(horizontal_flip=True, crop=1, cutout=2)
GRADED = torch.arange(64, dtype=torch.uint8).mul(4).view(1, 1, 8, 8).repeat(20, 1, 1, 1)


def stream(federation, *names):
    return federation.streams.shuffling("test", *names)


def test_a_weak_view_is_the_runs_augmentation():
    plain = make_federation()
    assert torch.equal(weak_view(plain, GRADED, stream(plain)), unit_range(GRADED))
    federation = make_federation(augmentation=FLIPS)
    expected = augmented(GRADED, FLIPS, stream(federation).generator, (0.5,))
    assert torch.equal(weak_view(federation, GRADED, stream(federation)), expected)


def test_a_strong_view_has_a_hole_of_half_the_side_with_the_datas_mean():
    federation = make_federation()
    images = torch.full((50, 1, 8, 8), 255, dtype=torch.uint8)
    out = strong_view(federation, images, stream(federation), RandAugment(count=0))
    holes = (out == 0.5).flatten(1).sum(dim=1)
    assert 4 <= holes.min() <= holes.max() == 16
    assert (out == 1).flatten(1).sum(dim=1).eq(64 - holes).all()
    whole = strong_view(federation, images, stream(federation), RandAugment(count=0), cutout=0.0)
    assert torch.equal(whole, unit_range(images))


def test_there_is_no_strong_view_of_images_without_pixels():
    federation = make_federation()
    images = torch.zeros(2, 1, 8, 8)
    assert torch.equal(weak_view(federation, images, stream(federation)), images)
    with pytest.raises(ValueError, match="RandAugment changes pixels, and float32 images have"):
        strong_view(federation, images, stream(federation), RandAugment())


def test_views_for_dense_targets_move_no_pixel():
    augmentation = Augmentation(
        rotation=20, shift=0.2, channel_shift=0.2, horizontal_flip=True, crop=1, cutout=2
    )
    federation = make_federation(task=Segmentation(3), augmentation=augmentation)
    images = torch.randint(0, 256, (200, 1, 1, 1), generator=torch.Generator().manual_seed(0)).to(
        torch.uint8
    )
    images = images.expand(200, 1, 8, 8)
    for view in (
        weak_view(federation, images, stream(federation)),
        strong_view(federation, images, stream(federation), RandAugment()),
    ):
        assert torch.equal(view, view[:, :, :1, :1].expand_as(view))
        assert not torch.equal(view, unit_range(images))


def test_an_exponential_moving_average_is_of_the_weights_and_takes_the_buffers():
    ema, model = (torch.nn.BatchNorm1d(2) for _ in range(2))
    torch.nn.init.constant_(model.weight, 3.0)
    model.running_mean.fill_(5.0)
    update_ema(ema, model, 0.75)
    assert ema.weight.tolist() == [1.5, 1.5]  # 0.75 x 1 + 0.25 x 3
    update_ema(ema, model, 0.5)
    assert ema.weight.tolist() == [2.25, 2.25]
    assert ema.running_mean.tolist() == [5, 5]
    assert model.weight.tolist() == [3, 3]
