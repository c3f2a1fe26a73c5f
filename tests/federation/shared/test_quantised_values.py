"""Answers as bytes: there and back."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.shared.averaging import quantised, restored


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_in_bytes_values_are_within_half_a_step(seed):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(7, 3, 2, 2, generator=generator) * torch.tensor([0.01, 1.0, 100.0]).view(
        3, 1, 1
    )
    values[:, 1, 1, 1] = 0.5
    found = restored(quantised(values))
    by_class = values.transpose(0, 1).flatten(1)
    step = (by_class.amax(dim=1) - by_class.amin(dim=1)) / 255
    assert ((found - values).abs() <= 0.51 * step.view(3, 1, 1)).all()


def test_a_class_of_equal_values_survives_in_bytes():
    values = torch.tensor([[2.5, 0.0], [2.5, 0.0]])
    assert restored(quantised(values)).tolist() == values.tolist()
