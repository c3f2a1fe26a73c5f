"""RandAugment in batches: the same images as torchvision's operations give one at a time, and
nothing drawn elsewhere.
"""

import math

import pytest
import torch
from torchvision.transforms.v2 import functional

from federation.augmentation import RandAugment, rand_augment

SIDE = 20  # 0.15 of it are three whole pixels, and it has pixels enough to be equalised


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def picture(channels, side=SIDE):
    """A smooth image with noise, of few very dark and very bright pixels."""
    ramp = torch.linspace(60, 160, side).expand(channels, side, side) + 15 * torch.arange(
        channels
    ).view(-1, 1, 1)
    noise = torch.randint(-25, 25, (channels, side, side), generator=generator(1))
    return (ramp + noise).to(torch.uint8)[None]


def expected(image):
    """By operation, what torchvision makes of an image (1, c, h, w) with magnitude 5 of 10, either
    way.
    """
    blends = {
        "brightness": functional.adjust_brightness,
        "colour": functional.adjust_saturation,
        "contrast": functional.adjust_contrast,
        "sharpness": functional.adjust_sharpness,
    }
    shear = math.degrees(math.atan(0.15))

    def affine(translate=(0, 0), shear=(0.0, 0.0)):
        return functional.affine(image, 0.0, list(translate), 1.0, list(shear))

    return {
        "identity": [image],
        "autocontrast": [functional.autocontrast(image)],
        "equalize": [functional.equalize(image)],
        "posterize": [functional.posterize(image, 6)],
        "solarize": [functional.solarize(image, 128)],
        **{
            name: [blend(image, factor) for factor in (0.55, 1.45)]
            for name, blend in blends.items()
        },
        "rotate": [functional.rotate(image, angle) for angle in (-15, 15)],
        "shear-x": [affine(shear=(by, 0.0)) for by in (-shear, shear)],
        "shear-y": [affine(shear=(0.0, by)) for by in (-shear, shear)],
        "translate-x": [affine(translate=(by, 0)) for by in (-3, 3)],
        "translate-y": [affine(translate=(0, by)) for by in (-3, 3)],
    }


def test_every_image_is_one_of_torchvisions_and_all_operations_and_signs_occur_alike():
    image = picture(3)
    out = rand_augment(
        image.expand(2800, -1, -1, -1),
        RandAugment(count=1, magnitude=5, sampled=False),
        generator(),
    )
    counts = {}
    explained = torch.zeros(len(out), dtype=torch.int)
    for name, results in expected(image).items():
        for sign, result in enumerate(results):
            # Up to a level for rounding, and up to a few pixels that lie between two neighbours.
            same = ((out.int() - result.int()).abs() <= 1).float().mean(dim=(1, 2, 3)) > 0.97
            explained += same
            counts[name, sign] = int(same.sum())
    assert explained.tolist() == [1] * len(out)
    for name, results in expected(
        image
    ).items():  # 200 of each on average, with a deviation of 13.6
        assert 140 < sum(counts[name, sign] for sign in range(len(results))) < 260, name
        if len(results) == 2:
            assert min(counts[name, 0], counts[name, 1]) > 55, name


def test_without_geometry_a_grey_image_of_one_level_stays_one():
    images = (
        torch.randint(0, 256, (300, 1, 1, 1), generator=generator())
        .to(torch.uint8)
        .expand(300, 1, 8, 8)
    )
    still = rand_augment(images, RandAugment(geometric=False), generator())
    assert torch.equal(still, still[:, :, :1, :1].expand_as(still))
    assert not torch.equal(still, images)
    moved = rand_augment(images, RandAugment(), generator())
    assert not torch.equal(moved, moved[:, :, :1, :1].expand_as(moved))


def test_strengths_are_drawn_up_to_the_magnitude():
    images = torch.full((400, 3, 4, 4), 100, dtype=torch.uint8)
    fixed = rand_augment(
        images, RandAugment(count=1, magnitude=5, sampled=False, geometric=False), generator()
    )
    drawn = rand_augment(images, RandAugment(count=1, magnitude=5, geometric=False), generator())
    assert set(fixed.unique().tolist()) == {55, 100, 145}  # brightness by half of 0.9 either way
    levels = drawn.unique()
    assert len(levels) > 20
    assert 55 <= levels.min() < 65
    assert 135 < levels.max() <= 145


@pytest.mark.parametrize(("channels", "side"), [(1, 16), (3, 16), (3, 32), (1, 5), (3, 2)])
def test_shape_type_and_range_are_kept_and_images_in_the_unit_range_are_the_same_ones(
    channels, side
):
    images = torch.randint(0, 256, (60, channels, side, side), generator=generator(2)).to(
        torch.uint8
    )
    whole, floats = (
        rand_augment(images, RandAugment(), generator()),
        rand_augment(images / 255, RandAugment(), generator()),
    )
    assert (whole.shape, whole.dtype, floats.dtype) == (images.shape, torch.uint8, torch.float32)
    torch.testing.assert_close(floats, whole / 255)


def test_a_batch_may_lack_any_operation():
    image = picture(3)
    results = {
        tuple(rand_augment(image, RandAugment(count=1), generator(seed)).flatten().tolist())
        for seed in range(60)
    }
    assert len(results) > 30


def test_it_repeats_under_a_seed_draws_from_nowhere_else_and_leaves_its_input_alone():
    images = torch.randint(0, 256, (50, 3, 8, 8), generator=generator(4)).to(torch.uint8)
    before, elsewhere = images.clone(), torch.get_rng_state()
    first, same, other = (
        rand_augment(images, RandAugment(), generator(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert torch.equal(images, before)
    assert torch.equal(torch.get_rng_state(), elsewhere)
