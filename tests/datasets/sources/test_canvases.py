"""Canvases: where their pictures are, and that findings and places are of what they show."""

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedtables.datasets import catalogue
from fedtables.datasets.sources.canvases import (
    FRAGMENT,
    FRAGMENTS,
    NAMES,
    SIDE,
    SOURCES,
    arrange,
    boxes,
    compose,
    fragments,
    place,
    to_tens,
)

BY_NAME = {entry.name: entry for entry in SOURCES}


def ink(count=20, side=14, seed=0):
    """Pictures with some pixels that are not black, and a digit for each."""
    rng = np.random.default_rng(seed)
    pictures = np.where(rng.random((count, side, side)) < 0.1, 200, 0).astype(np.uint8)
    pictures[:, side // 2, side // 2] = 255
    return pictures, np.arange(count) % len(NAMES)


def test_a_box_is_the_smallest_that_holds_all_that_is_not_black():
    picture = np.zeros((2, 4, 4), np.uint8)
    picture[0, 1, 3] = picture[0, 2, 1] = 7
    assert boxes(picture).tolist() == [
        [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 1, 1], [0, 0, 0, 0]],
        [[0] * 4] * 4,
    ]


@given(seed=st.integers(0, 10_000), side=st.integers(8, SIDE // 2), pictures=st.integers(1, 40))
def test_pictures_lie_within_the_canvas_and_never_on_each_other(seed, side, pictures):
    where = arrange(10, pictures, side, np.random.default_rng(seed))
    covered = np.zeros((10, SIDE, SIDE), int)
    for canvas, top, left in zip(where.canvas, where.top, where.left, strict=True):
        assert 0 <= top <= SIDE - side
        assert 0 <= left <= SIDE - side
        covered[canvas, top : top + side, left : left + side] += 1
    assert covered.max() == 1
    numbers = np.bincount(where.canvas, minlength=10)
    assert set(numbers) <= {1, 2, 3, 4}
    times = np.bincount(where.picture, minlength=pictures)
    assert times.max() - times.min() <= 1  # none again before all have been used


@given(seed=st.integers(0, 10_000))
def test_findings_are_the_digits_that_are_shown_and_places_hold_them(seed):
    pictures, labels = ink()
    split = compose(12, pictures, labels, seed)
    rng = np.random.default_rng(seed)
    where = arrange(12, len(pictures), 14, rng)
    bare = np.zeros((12, SIDE, SIDE), np.uint8)
    place(bare, pictures, where)
    places, findings = split.annotations["places"], split.annotations["findings"]
    assert (split.labels == np.bincount(where.canvas) - 1).all()
    for film in range(12):
        shown = set(labels[where.picture[where.canvas == film]])
        assert set(np.flatnonzero(findings[film])) == shown
        assert set(np.unique(places[film])) == {0} | {1 + digit for digit in shown}
    assert ((bare > 0) <= (places > 0)).all()  # a box holds its digit
    assert (split.images[:, 0][bare > 0] == bare[bare > 0]).all()


def test_eight_pixels_become_ten_by_the_means_of_what_each_covers():
    steps = np.repeat(np.arange(8, dtype=np.uint8) * 20, 8).reshape(1, 1, 8, 8)
    brought = to_tens(steps)
    assert brought.shape == (1, 1, 10, 10)
    # The second of the ten covers a fourth of the first of the eight, and three of the second.
    assert brought[0, 0, :, 3].tolist() == [0, 15, 30, 45, 60, 80, 95, 110, 125, 140]


def test_each_site_has_half_of_the_digits_and_stand_ins_replace_both(tmp_path):
    images = np.zeros((2, 28, 28), np.uint8)
    images[0], images[1] = 100, 200
    labels = np.array([3, 8])
    np.savez(tmp_path / "mnist.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    here, there = (
        catalogue.load(name, tmp_path) for name in ("mnist-canvas", "mnist-canvas-second")
    )
    assert set(np.unique(here["train"].images)) == {0, 100}
    assert set(np.unique(there["test"].images)) == {0, 200}
    for site, digit in ((here, 3), (there, 8)):
        for split in site.values():
            assert (split.annotations["findings"] == np.eye(10, dtype=np.uint8)[digit]).all()
    assert catalogue.resolve("mnist-canvas", home=tmp_path).used == "mnist-canvas"
    assert catalogue.resolve("mnist-canvas", home=tmp_path / "absent").used == "digits-canvas"


def content(name):
    """SHA-256 of the test images and their classes."""
    split = BY_NAME[name].load(None)["test"]
    digest = hashlib.sha256(np.ascontiguousarray(split.images).data)
    digest.update(split.labels.astype("<i8").tobytes())
    return digest.hexdigest()


def test_canvases_are_these_on_every_machine():
    assert content("digits-canvas") == (
        "49978397f7ebe1108433037477459faf6d6ac5021900797d56863133ea45e6d1"
    )
    assert content("digits-canvas-second") == (
        "9c4691ba6f4d75a3865e3319a106c06eb28092826c64ca0b959ac2b69b43a1f6"
    )


def test_fragments_are_pieces_of_pictures_and_are_no_findings():
    pictures = np.full((3, 8, 8), 9, np.uint8)
    drawn = fragments(50, pictures, np.random.default_rng(0))
    covered = (drawn == 9).sum(axis=(1, 2))
    assert set(np.unique(drawn)) == {0, 9}
    assert FRAGMENT**2 <= covered.min() <= covered.max() <= FRAGMENTS * FRAGMENT**2
