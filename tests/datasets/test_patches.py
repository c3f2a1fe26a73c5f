"""Patches cover an image, and hold what it has there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.patches import cut, positions, starts


def test_four_patches_along_each_side_of_a_slide():
    assert starts(1000, 256, 4) == [0, 248, 496, 744]
    assert len(positions((1000, 1000), 256, 4)) == 16
    assert positions((1000, 1000), 256, 4)[:5] == [
        (0, 0),
        (0, 248),
        (0, 496),
        (0, 744),
        (248, 0),
    ]


def test_a_step_and_as_few_as_cover_by_default():
    assert starts(10, 4, step=3) == [0, 3, 6]
    assert starts(11, 4, step=3) == [0, 3, 6, 7]
    assert starts(10, 4) == [0, 3, 6]
    assert starts(4, 4) == starts(4, 4, step=1) == starts(4, 4, 3) == [0]
    assert positions((4, 6), 4) == [(0, 0), (0, 2)]


@given(
    st.integers(1, 60), st.integers(1, 60), st.none() | st.integers(1, 9), st.data(), st.booleans()
)
def test_patches_cover_a_side_from_end_to_end(length, size, more, data, stepped):
    size = min(size, length)
    fewest = -(-length // size)
    if stepped:
        begins = starts(length, size, step=data.draw(st.integers(1, size)))
    else:
        count = None if more is None else fewest + more
        begins = starts(length, size, count)
        assert len(begins) <= (count or fewest)
    covered = np.zeros(length, bool)
    for begin in begins:
        covered[begin : begin + size] = True
    assert covered.all()
    assert begins == sorted(set(begins))
    assert (begins[0], begins[-1]) == (0, length - size)


def test_an_image_and_its_map_are_cut_alike():
    image = np.arange(3 * 4 * 6).reshape(3, 4, 6)
    corners = positions((4, 6), 3, step=2)
    assert corners == [(0, 0), (0, 2), (0, 3), (1, 0), (1, 2), (1, 3)]
    patches, maps = cut(image, 3, corners), cut(image[0], 3, corners)
    assert (patches.shape, maps.shape) == ((6, 3, 3, 3), (6, 3, 3))
    assert np.array_equal(patches[4], image[:, 1:4, 2:5])
    assert np.array_equal(maps, patches[:, 0])
    assert not np.shares_memory(patches, image)


@pytest.mark.parametrize(
    ("length", "size", "how", "message"),
    [
        (5, 6, {}, "do not fit into 5"),
        (5, 0, {}, "do not fit"),
        (10, 4, {"count": 2}, "2 patches of 4 pixels do not cover 10"),
        (10, 4, {"step": 5}, "leaves gaps"),
        (10, 4, {"step": 0}, "leaves gaps"),
        (10, 4, {"count": 3, "step": 2}, "not both"),
    ],
)
def test_patches_that_leave_gaps_are_refused(length, size, how, message):
    with pytest.raises(ValueError, match=message):
        starts(length, size, **how)
