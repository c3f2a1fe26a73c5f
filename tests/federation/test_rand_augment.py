"""RandAugment in batches: the same images as torchvision's operations give one at a time, and
nothing drawn elsewhere.
"""

import math

import torch
from torchvision.transforms.v2 import functional

from fedtables.federation.augmentation import RandAugment, rand_augment

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
