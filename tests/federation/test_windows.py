"""Windows over samples that are larger than a network takes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fedtables.federation.training.inputs import Normalisation
from fedtables.federation.training.loops import predictions
from fedtables.federation.windows import Window, patches, resize, sides_of, starts
from fedtables.results.files import DataError

PLAIN = Normalisation((0.0,), (1.0,))


class Recorder(nn.Module):
    """Gives back what it sees, and notes its shapes."""

    def __init__(self):
        super().__init__()
        self.shapes = []

    def forward(self, inputs):
        self.shapes.append(tuple(inputs.shape))
        return inputs


@pytest.mark.parametrize(
    ("sides", "window", "overlap"),
    [((20, 13), (8, 8), 0.5), ((5, 20), (8, 8), 0.25), ((6, 9, 7), (4, 4, 4), 0.0)],
)
def test_stitching_is_the_inverse_of_patching(sides, window, overlap):
    samples = torch.rand(3, 1, *sides, generator=torch.Generator().manual_seed(0))
    model = Recorder()
    how = Window(window, overlap)
    whole = torch.cat(list(predictions(model, samples, normalise=PLAIN, window=how)))
    torch.testing.assert_close(whole, samples)
    assert {shape[2:] for shape in model.shapes} == {window}
    assert sum(shape[0] for shape in model.shapes) == 3 * how.count(sides)
    assert how.seen(samples).shape == (3 * how.count(sides), 1, *window)


def test_windows_are_counted_by_hand():
    # Steps of 6 pixels over 20: windows begin at 0, 6 and 12, which is the last that fits.
    assert Window((8, 8), 0.25).count((20, 8)) == 3
    assert Window((8, 8), 0.25).count((21, 8)) == 4
    assert Window((8, 8), 0.25).count((3, 3)) == 1


@pytest.mark.parametrize("wrong", [{"overlap": 1.0}, {"sides": (0, 8)}])
def test_impossible_windows_are_refused(wrong):
    with pytest.raises(ValueError, match="windows"):
        Window(**{"sides": (8, 8), **wrong})


def test_a_larger_image_is_covered_by_more_patches_than_are_asked_for():
    images = torch.arange(100).view(1, 1, 10, 10)
    assert len(patches(images, (4, 4), 2)) == 9
    assert len(patches(images, (4, 4), 4)) == 16


def test_as_few_patches_as_cover_a_side_where_none_are_asked_for():
    assert starts(10, 4, 0) == [0, 3, 6]
    assert starts(4, 4, 0) == starts(4, 4, 3) == [0]


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 70))
def test_patches_cover_a_side_from_end_to_end(length, size, count):
    size = min(size, length)
    begins = starts(length, size, count)
    assert len(begins) <= max(count, -(-length // size))
    assert {begin + pixel for begin in begins for pixel in range(size)} == set(range(length))
    assert begins == sorted(set(begins))


def test_patches_hold_what_lies_where_they_begin():
    images = torch.arange(3 * 4 * 6).view(1, 3, 4, 6)
    cut = patches(images, (3, 3), 2)
    corners = [(0, 0), (1, 0), (0, 3), (1, 3)]
    expected = [images[..., row : row + 3, column : column + 3] for row, column in corners]
    assert torch.equal(cut, torch.cat(expected))


def test_images_smaller_than_a_patch_are_refused():
    with pytest.raises(DataError, match="samples of 3 pixels hold no patches of 4"):
        patches(torch.zeros(1, 1, 8, 3), (4, 4), 2)


STEPS = torch.arange(16.0).view(1, 1, 4, 4)


def test_uint8_images_are_rounded_and_float32_images_are_not():
    assert resize(STEPS, 2).tolist() == [[[[2.5, 4.5], [10.5, 12.5]]]]
    small = resize(STEPS.to(torch.uint8), 2)
    assert small.dtype == torch.uint8
    assert small.tolist() == [[[[2, 4], [10, 12]]]]  # to even, as IEEE has it


def test_sides_may_differ():
    assert resize(STEPS, (2, 4)).tolist() == [[[[2, 3, 4, 5], [10, 11, 12, 13]]]]
    assert resize(STEPS, (4, 2))[0, 0, 0].tolist() == [0.5, 2.5]


def test_volumes_take_the_mean_of_what_a_voxel_covers():
    volume = torch.arange(8.0).view(1, 1, 2, 2, 2)
    assert resize(volume, 1).tolist() == [[[[[3.5]]]]]
    assert resize(volume, (1, 2, 2)).flatten().tolist() == [2, 3, 4, 5]
    assert resize(volume, 4).shape == (1, 1, 4, 4, 4)


def test_samples_of_the_size_are_left_alone():
    assert resize(STEPS, 4) is STEPS
    assert resize(STEPS, (4, 4)) is STEPS


def test_planned_samples_have_the_size_and_no_content():
    planned = resize(torch.empty(2, 3, 4, 5, 6, device="meta"), (4, 2, 2))
    assert planned.is_meta
    assert planned.shape == (2, 3, 4, 2, 2)


def test_as_many_sides_as_dimensions_are_needed():
    assert sides_of(3, 2) == (3, 3)
    with pytest.raises(ValueError, match="3 sides cannot be those of 2 dimensions"):
        resize(STEPS, (2, 2, 2))
