"""What goes through the two loops of learning: batches, inputs and samples of all kinds."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedtables.federation.augmentation import Augmentation
from fedtables.federation.training.inputs import (
    Inputs,
    Normalisation,
    batches,
    unit_range,
)
from fedtables.federation.training.loops import predict
from tests.federation.training.one_pixel import (
    PLAIN,
    DropsHalf,
    generator,
    pixels,
)

# -- batches --


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(2, 20), st.integers(0, 9))
def test_batches_hold_every_sample_once_but_for_a_lonely_last_one(samples, batch_size, seed):
    drawn = [
        index for batch in batches(samples, batch_size, generator(seed)) for index in batch.tolist()
    ]
    lonely = samples % batch_size == 1 and samples > 1
    assert len(set(drawn)) == len(drawn) == samples - lonely
    assert set(drawn) <= set(range(samples))


# -- inputs and prediction --


def test_unit_range_divides_by_255_and_leaves_the_images():
    images = pixels(0, 51, 255)
    torch.testing.assert_close(unit_range(images).flatten(), torch.tensor([0.0, 0.2, 1.0]))
    assert images.dtype == torch.uint8


def test_stored_samples_are_not_normalised_in_silence():
    with pytest.raises(ValueError, match=r"unit_range\(samples\)"):
        Normalisation((0.5,), (0.25,))(pixels(0, 255))


def test_predictions_are_made_in_evaluation_mode_without_gradients():
    model = DropsHalf()
    first, second = (predict(model, pixels(255, 51), normalise=PLAIN) for _ in range(2))
    torch.testing.assert_close(first, torch.tensor([[3.0], [0.6]]), atol=1e-4, rtol=0)
    assert torch.equal(first, second)
    assert not first.requires_grad
    assert model.norm.num_batches_tracked == 0


# -- samples of other kinds --


def test_float32_samples_are_not_rescaled_and_others_are_refused():
    stored = torch.tensor([-3.0, 500.0]).view(2, 1, 1, 1)
    assert unit_range(stored) is stored
    with pytest.raises(ValueError, match=r"^samples are uint8 or float32, not torch.float64$"):
        unit_range(stored.double())


def test_what_has_no_pixels_or_is_a_volume_is_not_augmented():
    flips = Augmentation(horizontal_flip=True)
    shifted = Augmentation(channel_shift=0.1)
    images, volumes = torch.randn(2, 1, 4, 6), torch.zeros(2, 1, 2, 4, 4, dtype=torch.uint8)
    labels = torch.zeros(2, dtype=torch.int64)
    found, _ = Inputs(PLAIN, flips, generator()).pairs(images, labels)
    for image, own in zip(found, images, strict=True):
        assert any(torch.allclose(image, view, atol=1e-5) for view in (own, own.flip(2)))
    with pytest.raises(ValueError, match="float32 samples have none"):
        Inputs(PLAIN, shifted, generator()).pairs(images, labels)
    with pytest.raises(ValueError, match=r"only images are augmented, not volumes; leave"):
        Inputs(PLAIN, flips, generator()).pairs(volumes, labels)


@pytest.mark.parametrize(
    "how",
    [
        Augmentation(horizontal_flip=True),
        Augmentation(vertical_flip=True, quarter_turns=True),
        Augmentation(horizontal_flip=True, crop=2, cutout=2),
        Augmentation(rotation=20, scale=0.2, horizontal_flip=True),
    ],
)
def test_targets_of_pixels_move_with_their_images(how):
    numbers = torch.arange(1, 65).view(1, 1, 8, 8).repeat(16, 1, 1, 1)
    images, labels = numbers.to(torch.uint8), numbers[:, 0] * (2**18)
    inputs, moved = Inputs(PLAIN, how, generator()).pairs(images, labels)
    assert moved.dtype == torch.int64
    kept = inputs[:, 0] * 255
    exact = not how.rotation
    if exact:
        same = (kept.round() * 2**18 == moved) | (kept == 0)  # a hole, or a crop's border
    else:
        same = (kept - moved / 2**18).abs() < 6  # bilinear beside the nearest, rows differ by 8
    assert same.float().mean() == (1 if exact else pytest.approx(1, abs=0.1))
    assert not torch.equal(moved, labels)
    values = torch.cat([numbers, -numbers], dim=1).float()
    _, both = Inputs(PLAIN, how, generator()).pairs(images, values)
    assert both.shape == values.shape
    assert torch.allclose(both[:, 0], -both[:, 1])


def test_a_quarter_turn_is_of_square_images():
    images, labels = torch.zeros(2, 1, 4, 6), torch.zeros(2, dtype=torch.int64)
    with pytest.raises(ValueError, match="square images"):
        Inputs(PLAIN, Augmentation(quarter_turns=True), generator()).pairs(images, labels)
