"""Canvases: several small pictures on one film, so that it is known where a finding is.

A canvas of 40 x 40 pixels has one to four digits, each at a random place of a quarter of its own,
over fragments of others that mean nothing (the clutter of Mnih et al. 2014); a finding is a digit
that it shows, and its place the smallest box around it. Every digit of MNIST, as the means of 2 x 2
pixels, is on one canvas at most: half of them make `mnist-canvas`, the others
`mnist-canvas-second`, a second site. scikit-learn's digits, by other writers, of 8 x 8 pixels
brought to 10 x 10, are on several canvases each: half of them make `digits-canvas-public`, a
quarter each the two stand-ins for MNIST's. All arithmetic is of whole numbers, so that every
machine makes the same canvases.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedtables.datasets.source import FINDINGS, SEGMENTS, SYNTHETIC, Annotation, DataSource, Split
from fedtables.datasets.sources import digits, mnist
from fedtables.datasets.sources.cifar import halved

SIDE = 40
MOST = 4
"""Pictures on a canvas, one for each quarter."""
FRAGMENTS, FRAGMENT = 4, 5
"""Fragments on a canvas, and pixels of their sides."""
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
NOWHERE = "0 where no finding is, else 1 + the finding's number"


@dataclass(frozen=True)
class Arrangement:
    """Which pictures are where on some canvases; all arrays are int64 (m,), one entry a picture."""

    canvas: np.ndarray
    picture: np.ndarray
    top: np.ndarray
    left: np.ndarray


def arrange(canvases: int, pictures: int, side: int, rng: np.random.Generator) -> Arrangement:
    """Pictures of `side` x `side` pixels on canvases, one to four of them on each; none is twice on
    any before all have been used once.
    """
    numbers = rng.integers(1, MOST + 1, canvases)
    total = int(numbers.sum())
    order = [rng.permutation(pictures) for _ in range(-(-total // pictures))]
    shuffled = np.argsort(rng.random((canvases, MOST)), axis=1)
    quarter = shuffled[np.arange(MOST) < numbers[:, None]]
    top, left = rng.integers(0, SIDE // 2 - side + 1, (2, total))
    return Arrangement(
        np.repeat(np.arange(canvases), numbers),
        np.concatenate(order)[:total],
        top + SIDE // 2 * (quarter // 2),
        left + SIDE // 2 * (quarter % 2),
    )


def fragments(canvases: int, pictures: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Canvases uint8 (n, 40, 40) with nothing but fragments of pictures (p, s, s), at random
    places."""
    images, steps = np.zeros((canvases, SIDE, SIDE), np.uint8), np.arange(FRAGMENT)
    for _ in range(FRAGMENTS):
        which = rng.integers(0, len(pictures), canvases)
        cut = rng.integers(0, pictures.shape[1] - FRAGMENT + 1, (2, canvases))
        put = rng.integers(0, SIDE - FRAGMENT + 1, (2, canvases))
        (cut_y, cut_x), (y, x) = (
            (start[0][:, None, None] + steps[:, None], start[1][:, None, None] + steps)
            for start in (cut, put)
        )
        images[np.arange(canvases)[:, None, None], y, x] = pictures[
            which[:, None, None], cut_y, cut_x
        ]
    return images


def place(images: np.ndarray, pictures: np.ndarray, where: Arrangement) -> None:
    """Put pictures uint8 (p, s, s) on canvases uint8 (n, 40, 40), in place, over what is there."""
    steps = np.arange(pictures.shape[1])
    y = where.top[:, None, None] + steps[:, None]
    x = where.left[:, None, None] + steps
    images[where.canvas[:, None, None], y, x] = pictures[where.picture]


def boxes(pictures: np.ndarray) -> np.ndarray:
    """Pictures uint8 (p, s, s) with 1 in the smallest box that holds all that is not black, else
    0.
    """
    found = []
    for along in (2, 1):
        ink = pictures.max(axis=along) > 0
        after, before = np.maximum.accumulate(ink, 1), np.maximum.accumulate(ink[:, ::-1], 1)
        found.append(after & before[:, ::-1])
    rows, columns = found
    return (rows[:, :, None] & columns[:, None]).astype(np.uint8)


def compose(count: int, pictures: np.ndarray, labels: np.ndarray, seed: int) -> Split:
    """So many canvases of pictures uint8 (p, s, s), which show the digits `labels` (p,).

    The class of a canvas is how many pictures it has, less one.
    """
    rng = np.random.default_rng(seed)
    where = arrange(count, len(pictures), pictures.shape[1], rng)
    images = fragments(count, pictures, rng)
    place(images, pictures, where)
    findings, places = np.zeros((count, len(NAMES)), np.uint8), np.zeros_like(images)
    findings[where.canvas, labels[where.picture]] = 1
    place(places, boxes(pictures) * (1 + labels.astype(np.uint8))[:, None, None], where)
    numbers = np.bincount(where.canvas, minlength=count) - 1
    return Split(images[:, None], numbers, {"findings": findings, "places": places})


def to_tens(images: np.ndarray) -> np.ndarray:
    """Images uint8 (n, c, 8, 8) brought to 10 x 10 pixels, each the mean of what it covers."""
    return halved(halved(images.repeat(5, axis=2).repeat(5, axis=3)))


def _source(
    name: str, seed: int, title: str, sizes: tuple[int, int], part: slice, stand_in: str = ""
) -> DataSource:
    """Canvases of a part of the digits: of MNIST's if anything stands in for them. `seed` arranges
    the training split; the test split has the next one.
    """
    of, fit = (_MNIST, halved) if stand_in else (_DIGITS, to_tens)
    by_split = dict(zip(("train", "test"), sizes, strict=True))

    def composed(split: Split, count: int, seed: int) -> Split:
        return compose(count, fit(split.images[part])[:, 0], split.labels[part], seed)

    def load(home: Path) -> dict[str, Split]:
        splits = of.load(home)
        return {
            split: composed(splits[split], count, seed + (split == "test"))
            for split, count in by_split.items()
        }

    return DataSource(
        name=name,
        title=title,
        classes=MOST,
        shape=(1, SIDE, SIDE),
        sizes=by_split,
        mean=(0.05,),
        std=(0.18,),
        licence=f"composed by this suite; {of.licence}",
        how_to_get=of.how_to_get,
        files=of.files if stand_in else lambda home: [],
        load=load,
        stand_ins=(stand_in,) if stand_in else (),
        kind=SYNTHETIC,
        note=f"a synthetic composition of {of.title}, real digits",
        annotations={
            "findings": Annotation(FINDINGS, len(NAMES), "which digits it shows", NAMES),
            "places": Annotation(SEGMENTS, 1 + len(NAMES), NOWHERE),
        },
    )


_MNIST = mnist.SOURCES[0]
_DIGITS = digits.SOURCES[0]
_EVEN, _ODD = slice(0, None, 2), slice(1, None, 2)
_M, _D = "MNIST on canvases", "scikit-learn digits on canvases"
_HERE, _THERE = "digits-canvas", "digits-canvas-second"
_LARGE, _SMALL = (6000, 1000), (1500, 400)

SOURCES = [
    _source("mnist-canvas", 401, _M, _LARGE, _EVEN, _HERE),
    _source("mnist-canvas-second", 403, f"{_M}, another site", _LARGE, _ODD, _THERE),
    _source(_HERE, 405, _D, _SMALL, slice(0, None, 4)),
    _source(_THERE, 407, f"{_D}, another site", _SMALL, slice(2, None, 4)),
    _source("digits-canvas-public", 409, f"{_D}, further ones", (4000, 1000), _ODD),
]
