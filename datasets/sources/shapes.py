"""Generated colour images of ten shapes, or of ten shapes in ten hues: the synthetic stand-in for
small natural images.

Ten classes of drawn figures with random colours, position, size, rotation and noise, always the
same under the fixed seed. `shapes-shifted` draws the same classes as another site would: darker,
inverted contrast, stronger noise in half of the images. `shapes-100` has a hundred classes: each
figure in each of ten hues. They exercise every code path of a colour data set; they are not natural
images, and every table made from them says so.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from datasets.source import SYNTHETIC, DataSource, Split

SIZE = 16
NAMES = (
    "disk",
    "square",
    "triangle",
    "plus",
    "ring",
    "bars",
    "checks",
    "frame",
    "diamond",
    "wedge",
)
HUES = 10


def _mask(kind: int, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Whether each point of figure coordinates u, v (n, size, size) lies inside figure `kind`."""
    radius = np.hypot(u, v)
    square = np.maximum(np.abs(u), np.abs(v)) < 1
    return (
        radius < 1,
        square,
        (v < 0.8) & (v > 2 * np.abs(u) - 1),
        square & ((np.abs(u) < 0.33) | (np.abs(v) < 0.33)),
        (radius < 1.1) & (radius > 0.6),
        square & (np.sin(7.5 * u) > 0),
        square & (np.sin(5 * u) * np.sin(5 * v) > 0),
        square & (np.maximum(np.abs(u), np.abs(v)) > 0.6),
        np.abs(u) + np.abs(v) < 1.1,
        (radius < 1.1) & (u > 0) & (v > 0),
    )[kind]


def _figures(kinds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Which points (n, size, size) are inside the figures `kinds` (n,), at random places, sizes and
    angles.
    """
    count = len(kinds)
    grid = np.linspace(-1, 1, SIZE)
    y, x = np.meshgrid(grid, grid, indexing="ij")
    shift = rng.uniform(-0.25, 0.25, (2, count, 1, 1))
    size = rng.uniform(0.5, 0.8, (count, 1, 1))
    angle = rng.uniform(-0.4, 0.4, (count, 1, 1))
    dx, dy = (x - shift[0]) / size, (y - shift[1]) / size
    u, v = dx * np.cos(angle) + dy * np.sin(angle), dy * np.cos(angle) - dx * np.sin(angle)
    inside = np.empty((count, SIZE, SIZE), bool)
    for kind in range(len(NAMES)):
        of_kind = kinds == kind
        inside[of_kind] = _mask(kind, u[of_kind], v[of_kind])
    return inside


def _paint(
    inside: np.ndarray,
    ink: np.ndarray,
    paper: np.ndarray,
    noise: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """uint8 images (n, 3, size, size): ink inside the figures, paper outside, normal noise of the
    given strength on both.
    """
    images = (
        np.where(inside[:, None], ink, paper)
        + rng.normal(size=(len(inside), 3, SIZE, SIZE)) * noise
    )
    return (images.clip(0, 1) * 255).astype(np.uint8)


def draw(count: int, seed: int, shifted: bool = False) -> Split:
    """`count` images (3, 16, 16), classes in turn and then shuffled."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(count) % len(NAMES))
    inside = _figures(labels, rng)
    ink, paper = rng.uniform(0.45, 1, (count, 3, 1, 1)), rng.uniform(0, 0.45, (count, 3, 1, 1))
    noise = np.full((count, 1, 1, 1), 0.08)
    if shifted:
        other = rng.random(count) < 0.5
        ink[other], paper[other] = paper[other] * 0.8, ink[other] * 0.8
        noise[other] = 0.16
    return Split(_paint(inside, ink, paper, noise, rng), labels.astype(np.int64))


def rgb(hue: np.ndarray, saturation: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Colours (n, 3) of hue, saturation and value (n,), all in [0, 1] (Smith 1978)."""
    k = (np.array([5, 3, 1]) + 6 * hue[:, None]) % 6
    return value[:, None] * (1 - saturation[:, None] * np.minimum(k, 4 - k).clip(0, 1))


def draw_hundred(count: int, seed: int) -> Split:
    """`count` images (3, 16, 16) of class 10 x figure + hue.

    Hue h is h / 10 of the colour circle, give or take a fifth of the way to the next; the paper is
    dark.
    """
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(count) % (len(NAMES) * HUES))
    inside = _figures(labels // HUES, rng)
    hue = (labels % HUES + rng.uniform(-0.2, 0.2, count)) / HUES
    ink = rgb(hue % 1, rng.uniform(0.6, 1, count), rng.uniform(0.6, 1, count))
    paper = rng.uniform(0, 0.45, (count, 3, 1, 1))
    noise = np.full((count, 1, 1, 1), 0.08)
    return Split(_paint(inside, ink[:, :, None, None], paper, noise, rng), labels.astype(np.int64))


def _load(home: Path) -> dict[str, Split]:
    return {"train": draw(4000, 1), "test": draw(1000, 2), "valid": draw(4000, 3)}


def _load_shifted(home: Path) -> dict[str, Split]:
    return {"train": draw(4000, 1, True), "test": draw(1000, 2, True), "valid": draw(4000, 3, True)}


def _load_hundred(home: Path) -> dict[str, Split]:
    return {"train": draw_hundred(4000, 101), "test": draw_hundred(1000, 102)}


def _source(
    name: str,
    title: str,
    note: str,
    load: Callable[[Path], dict[str, Split]],
    classes: int,
    sizes: dict[str, int],
    mean: float,
    std: float,
) -> DataSource:
    return DataSource(
        name=name,
        title=title,
        classes=classes,
        shape=(3, SIZE, SIZE),
        sizes=sizes,
        mean=(mean,) * 3,
        std=(std,) * 3,
        licence="generated by this suite (Apache-2.0)",
        how_to_get="It is generated.",
        files=lambda home: [],
        load=load,
        kind=SYNTHETIC,
        note=note,
    )


_SIZES = {"train": 4000, "test": 1000, "valid": 4000}

SOURCES = [
    _source(
        "shapes",
        "generated shapes",
        "drawn figures, not natural images",
        _load,
        10,
        _SIZES,
        0.34,
        0.26,
    ),
    _source(
        "shapes-shifted",
        "generated shapes, two sites",
        "drawn figures under a site shift",
        _load_shifted,
        10,
        _SIZES,
        0.34,
        0.26,
    ),
    _source(
        "shapes-100",
        "generated shapes, 100 classes",
        "drawn figures in ten hues, not natural images",
        _load_hundred,
        100,
        {"train": 4000, "test": 1000},
        0.28,
        0.22,
    ),
]
