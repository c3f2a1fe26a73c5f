"""Reinhard's colour normalisation: the space, and the statistics that come out."""

import numpy as np
import pytest
from skimage.color import rgb2gray

from datasets.colour import (
    LMS_TO_LAB,
    LMS_TO_RGB,
    ColourStatistics,
    colour_statistics,
    normalised,
    to_lab,
    to_rgb,
)


def tissue(seed=0, low=90, high=220):
    rng = np.random.default_rng(seed)
    return rng.integers(low, high, (3, 32, 24)).astype(np.uint8)


def test_the_matrices_are_those_of_the_paper():
    published = [[4.4679, -3.5873, 0.1193], [-1.2186, 2.3809, -0.1624], [0.0497, -0.2439, 1.2045]]
    np.testing.assert_allclose(LMS_TO_RGB, published, atol=0.02)
    np.testing.assert_allclose(LMS_TO_LAB @ LMS_TO_LAB.T, np.eye(3), atol=1e-12)


def test_every_colour_comes_back():
    levels = np.arange(0, 256, 15)
    colours = np.stack(np.meshgrid(levels, levels, levels, indexing="ij")).reshape(3, 18, -1)
    image = colours.astype(np.uint8)
    assert np.array_equal(to_rgb(to_lab(image)), image)


def test_grey_has_no_colour_and_lightness_rises_with_it():
    grey = np.repeat(np.arange(256, dtype=np.uint8)[None, None], 3, axis=0)
    lab = to_lab(grey)
    assert abs(lab[1:]).max() < 0.01  # the rows of the matrix add up to one but for rounding
    assert (np.diff(lab[0, 0]) > 0).all()


def test_an_image_takes_the_statistics_of_the_target():
    target = colour_statistics(tissue(1, 140, 200))
    made = normalised(tissue(), target)
    own = colour_statistics(made)
    np.testing.assert_allclose(own.mean, target.mean, atol=2e-3)
    np.testing.assert_allclose(own.std, target.std, rtol=0.02)
    assert (made.shape, made.dtype) == ((3, 32, 24), np.uint8)


def test_an_image_with_the_target_s_own_statistics_stays():
    image = tissue()
    assert np.array_equal(normalised(image, colour_statistics(image)), image)


def test_lighter_stays_lighter():
    image = tissue()
    made = normalised(image, colour_statistics(tissue(1, 140, 200)))
    before, after = (rgb2gray(x.transpose(1, 2, 0)).reshape(-1) for x in (image, made))
    assert np.corrcoef(before, after)[0, 1] > 0.95


def test_an_image_of_one_colour_takes_the_mean_and_stays_of_one_colour():
    target = colour_statistics(tissue())
    made = normalised(np.full((3, 4, 4), 50, np.uint8), target)
    assert (made == made[:, :1, :1]).all()
    np.testing.assert_allclose(to_lab(made)[:, 0, 0], target.mean, atol=5e-3)


def test_black_and_colours_beyond_white_stay_bytes():
    bright = ColourStatistics((0.0, 0.0, 0.0), (1.0, 0.1, 0.1))
    made = normalised(
        np.concatenate([np.zeros((3, 2, 4), np.uint8), tissue()[:, :2, :4]], axis=1), bright
    )
    assert made.dtype == np.uint8
    assert np.isfinite(to_lab(made)).all()


@pytest.mark.parametrize("seed", range(3))
def test_statistics_of_two_sites_become_one(seed):
    pink = tissue(seed) // 2 + np.array([120, 60, 90], np.uint8)[:, None, None]
    target = colour_statistics(tissue(9))
    apart = np.abs(np.array(colour_statistics(pink).mean) - target.mean).max()
    left = np.abs(np.array(colour_statistics(normalised(pink, target)).mean) - target.mean).max()
    assert left < 0.1 * apart
