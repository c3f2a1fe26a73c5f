"""Sanitised gradients: one sample's part is bounded whatever it is, and the noise is as stated."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedtables.privacy.releases import GaussianSteps
from fedtables.privacy.sanitising import clip, release, sanitise


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_long_gradient_is_scaled_to_the_norm_and_a_short_one_is_left():
    gradients = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    expected = torch.tensor([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]])
    torch.testing.assert_close(clip(gradients, 1.0), expected)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(width=32), min_size=6, max_size=6), st.floats(1e-3, 1e3))
def test_no_sample_whatever_it_is_passes_the_bound(values, norm):
    gradients = torch.tensor([values, [1e-3] * 6])
    clipped = clip(gradients, norm)
    assert (clipped.double().norm(dim=1) <= norm * (1 + 1e-5)).all()
    assert torch.equal(clipped[1], clip(gradients[1:], norm)[0])  # nor touches another


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_sample_that_is_not_finite_contributes_nothing(bad):
    assert clip(torch.tensor([[1.0, bad], [3.0, 4.0]]), 5.0).tolist() == [[0.0, 0.0], [3.0, 4.0]]


def test_half_precision_is_clipped_though_it_cannot_hold_the_squares():
    clipped = clip(torch.full((1, 4), 6e4, dtype=torch.float16), 2.0)
    assert clipped.dtype == torch.float16
    assert clipped.tolist() == [[1.0, 1.0, 1.0, 1.0]]


def noisy(gradients, norm, seed=0, noise=1.5):
    return sanitise(gradients, norm, noise, 2.0, seeded(seed))


def test_the_noise_has_the_stated_deviation_on_every_value():
    noise, deviation = noisy(torch.zeros(100, 3, 16, 16), 0.2), 1.5 * 2.0 * 0.2
    assert noise.std().item() == pytest.approx(deviation, rel=0.02)
    assert noise.mean().item() == pytest.approx(0.0, abs=0.02 * deviation)


def test_what_is_noisy_is_clipped_and_the_noise_does_not_depend_on_it():
    gradients = torch.randn(4, 6, generator=seeded(3))
    apart = noisy(gradients, 1.0) - noisy(torch.zeros(4, 6), 1.0)
    torch.testing.assert_close(apart, clip(gradients, 1.0), atol=1e-6, rtol=0)
    torch.testing.assert_close(noisy(gradients, 1.0, noise=0.0), clip(gradients, 1.0))
    assert sanitise(gradients.to("meta"), 1.0, 1.5, 2.0, None).is_meta


def test_every_image_is_one_composition():
    assert release(64, 1.07, 0.001) == GaussianSteps(1.07, 0.001, 64)
