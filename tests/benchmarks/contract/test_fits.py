"""What of a payload is a pixel, by the same payload of inverted images."""

import pytest
import torch
import torch.nn.functional as F

from fedtables.benchmarks.contract.fits import inverted, pixels_in

X = torch.rand(4, 1, 6, 6, generator=torch.Generator().manual_seed(0))
ORDER = torch.randperm(144, generator=torch.Generator().manual_seed(5))
DRAWN = torch.Generator().manual_seed(1)


def test_samples_are_inverted():
    assert torch.allclose(inverted(X), 1 - X)
    assert inverted(torch.tensor([3], dtype=torch.uint8)).item() == 252


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x: x, 144),
        (lambda x: 5 - 2 * x.transpose(2, 3), 144),
        (lambda x: x.half(), 144),
        (lambda x: (15 * x).round(), 16),  # as many values
        (lambda x: x[0], 36),
        (lambda x: x.flatten()[ORDER], 144),
        (lambda x: F.interpolate(x, size=(3, 3), mode="area"), 36),
        (lambda x: F.interpolate(x, size=(11, 11), mode="bilinear"), 484),
        (lambda x: x.mean(dim=0), 36),
        (lambda x: torch.cat([torch.rand(1000, generator=DRAWN), x.flatten()]), 144),
        (lambda x: x.square(), 0),
        (lambda x: x.flatten(1) @ x.flatten(1).T, 0),
        (lambda x: (x > 0.5).long(), 0),  # as votes are
        (lambda x: x[x[:, 0, 0, 0] > 0.5], 0),  # of another shape
        (lambda x: torch.full((50,), 3.0), 0),
    ],
)
def test_values_that_are_pixels_are_counted(function, told):
    assert pixels_in(function(X), function(inverted(X))) == pytest.approx(told, rel=0.2)


def test_classes_and_weights_after_one_step_are_no_pixels():
    draw = torch.Generator().manual_seed(2)
    one, other = (torch.randint(10, (500,), generator=draw) for _ in range(2))
    assert pixels_in(one, other) == 0
    signs = [torch.randint(2, (500,), generator=draw) * 2 - 1 for _ in range(2)]
    assert pixels_in(1 + 0.01 * signs[0], 1 + 0.01 * signs[1]) == 0


def test_a_few_values_tell_nothing():
    few, some = X.flatten()[:6], X.flatten()[:24]
    assert pixels_in(few, inverted(few)) == 0
    assert pixels_in(some, inverted(some)) == 24
