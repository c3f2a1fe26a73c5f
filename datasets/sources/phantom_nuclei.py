"""Generated patches of stained tissue with a number for every nucleus: synthetic stand-ins for
histology.

An image is a pink ground with patches, and nuclei: dark ellipses with a rim and grain, half of them
beside another one, so that some touch. A nucleus that would lie more than halfway under others is
left out. Tissues differ in the colours of both stains, in the size of the nuclei and in how many
there are (`TISSUES`; own choices, of no source). `phantom-nuclei` has a tissue for each of
MoNuSeg's organs, its class, in the division of Kumar et al. (2017): four images of each of four to
train, two to test, and two of each of the others. `phantom-nuclei-shifted` and
`phantom-nuclei-third` have two further tissues, and patients with several images. They exercise
every code path of a data set of nuclei; they are no tissue, and every table made from them says so.

Only sums, products and quotients of uniform random numbers are drawn with, so that every machine
draws the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from datasets.annotations import AnnotatedSource, AnnotatedSplit
from datasets.nuclei import NUCLEI, numbered
from datasets.source import SYNTHETIC, Split
from datasets.sources.monuseg import KUMAR, ORGANS, ORGANS_OF

SIDE = 96


@dataclass(frozen=True)
class Tissue:
    """How a tissue looks. Colours are RGB in [0, 255]."""

    ground: tuple[int, int, int]
    nucleus: tuple[int, int, int]
    radius: tuple[float, float]
    """The least and the most half axis of a nucleus in pixels."""
    count: int
    """Nuclei that are tried in an image."""


TISSUES = {
    "breast": Tissue((226, 178, 208), (112, 72, 140), (4, 7), 38),
    "kidney": Tissue((236, 190, 200), (104, 78, 148), (3, 5), 60),
    "liver": Tissue((216, 166, 196), (92, 62, 128), (4, 6), 34),
    "prostate": Tissue((232, 204, 224), (124, 92, 160), (3, 6), 44),
    "bladder": Tissue((222, 184, 188), (98, 66, 118), (5, 8), 26),
    "colon": Tissue((240, 206, 214), (120, 80, 136), (3, 7), 48),
    "stomach": Tissue((214, 188, 216), (88, 70, 138), (3, 4), 80),
}
"""By organ."""
SHIFTED = Tissue((200, 170, 226), (84, 52, 150), (5, 9), 22)
"""A site whose scanner is bluer and whose nuclei are larger."""
THIRD = Tissue((238, 214, 232), (140, 104, 172), (3, 6), 36)
"""A pale one."""


def blurred(values: np.ndarray, reach: int, axes: Sequence[int]) -> np.ndarray:
    """Means over 2 x reach + 1 neighbours along each of the axes, edges repeated; by plain sums, in
    a fixed order.
    """
    for axis in axes:
        padding = [(reach, reach) if other == axis else (0, 0) for other in range(values.ndim)]
        padded = np.moveaxis(np.pad(values, padding, mode="edge"), axis, 0)
        length = values.shape[axis]
        total = padded[:length].copy()
        for shift in range(1, 2 * reach + 1):
            total += padded[shift : shift + length]
        values = np.moveaxis(total / (2 * reach + 1), 0, axis)
    return values


def _patches(rng: np.random.Generator) -> np.ndarray:
    """Smooth random values (SIDE, SIDE) between 0 and 1."""
    coarse = rng.random((SIDE // 8, SIDE // 8))
    return blurred(coarse.repeat(8, axis=0).repeat(8, axis=1), 6, (0, 1))


def _place(tissue: Tissue, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Object numbers int64 (SIDE, SIDE), and how deep inside of its nucleus a pixel lies: 0 at the
    border to 1 in the middle.
    """
    rows, columns = np.indices((SIDE, SIDE)).astype(np.float64)
    objects, depth = np.zeros((SIDE, SIDE), np.int64), np.zeros((SIDE, SIDE))
    centres: list[tuple[float, float, float]] = []
    for number in range(1, tissue.count + 1):
        long, short = rng.uniform(*tissue.radius), rng.uniform(*tissue.radius)
        row, column = rng.uniform(0, SIDE, 2)
        turns, beside = rng.uniform(-1, 1, 2), rng.random() < 0.5
        # Directions by tangents of half angles: quotients are the same on every machine.
        (sine, cosine), (across, along) = (
            (2 * t / (1 + t * t), (1 - t * t) / (1 + t * t)) for t in turns
        )
        if beside and centres:
            other_row, other_column, radius = centres[int(rng.integers(len(centres)))]
            away = radius + 0.9 * (long + short) / 2
            side = 1 if rng.random() < 0.5 else -1
            row, column = other_row + side * away * across, other_column + side * away * along
        x, y = columns - column, rows - row
        inside = 1 - ((x * cosine + y * sine) / long) ** 2 - ((y * cosine - x * sine) / short) ** 2
        own = inside > 0
        free = own & (objects == 0)
        if 2 * free.sum() <= own.sum():
            continue
        objects[free], depth[free] = number, inside[free]
        centres.append((row, column, (long + short) / 2))
    return objects, depth


def draw_image(tissue: Tissue, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """An image uint8 (3, SIDE, SIDE) and its instance map uint16 (SIDE, SIDE)."""
    objects, depth = _place(tissue, rng)
    stain = rng.uniform(0.75, 1.0, tissue.count + 1)[objects]
    dark = np.where(objects > 0, stain * (1.0 - 0.35 * depth), 0.0)  # the rim is darkest
    dark = dark + np.where(objects > 0, rng.uniform(-0.15, 0.15, dark.shape), 0.0)
    dark = blurred(dark, 1, (0, 1))
    ground = np.array(tissue.ground, float)[:, None, None]
    nucleus = np.array(tissue.nucleus, float)[:, None, None]
    paper = ground + (255 - ground) * (0.8 * _patches(rng) - 0.2)
    pixels = paper + dark * (nucleus - paper) + rng.uniform(-6, 6, (3, SIDE, SIDE))
    return np.rint(pixels.clip(0, 255)).astype(np.uint8), numbered(objects)


def draw(
    tissues: Sequence[Tissue], labels: Sequence[int], groups: Sequence[int], seed: int
) -> AnnotatedSplit:
    """An image of each of the tissues, with these classes and groups."""
    rng = np.random.default_rng(seed)
    drawn = [draw_image(tissue, rng) for tissue in tissues]
    return AnnotatedSplit(
        np.stack([image for image, _ in drawn]),
        np.array(labels, np.int64),
        {"nuclei": np.stack([objects for _, objects in drawn])},
        groups=np.array(groups, np.int64),
    )


def _load(home: Path) -> dict[str, Split]:
    splits: dict[str, Split] = {}
    for number, (split, names) in enumerate(KUMAR.items()):
        organs = [ORGANS_OF[name] for name in names]
        groups = [1000 * number + index for index in range(len(names))]
        splits[split] = draw(
            [TISSUES[organ] for organ in organs],
            [ORGANS.index(organ) for organ in organs],
            groups,
            601 + number,
        )
    return splits


def _load_patients(tissue: Tissue, seed: int) -> dict[str, Split]:
    """Five patients with three images each to train, two patients to test."""
    return {
        split: draw([tissue] * count, [0] * count, [first + i // 3 for i in range(count)], seed + n)
        for n, (split, count, first) in enumerate((("train", 15, 1), ("test", 6, 6)))
    }


def _source(
    name: str,
    title: str,
    note: str,
    load: Callable[[Path], dict[str, Split]],
    classes: int,
    sizes: dict[str, int],
) -> AnnotatedSource:
    return AnnotatedSource(
        name=name,
        title=title,
        classes=classes,
        class_names=ORGANS[:classes] if classes > 1 else (),
        shape=(3, SIDE, SIDE),
        sizes=sizes,
        mean=(0.83, 0.70, 0.84),
        std=(0.13, 0.14, 0.08),
        licence="generated by this suite (Apache-2.0)",
        how_to_get="It is generated.",
        files=lambda home: [],
        load=load,
        kind=SYNTHETIC,
        note=note,
        annotations=NUCLEI,
    )


_PATIENTS = {"train": 15, "test": 6}
SOURCES = [
    _source(
        "phantom-nuclei",
        "generated nuclei",
        "drawn ellipses in seven colours, not tissue of anyone",
        _load,
        len(ORGANS),
        {split: len(names) for split, names in KUMAR.items()},
    ),
    _source(
        "phantom-nuclei-shifted",
        "generated nuclei, another site",
        "drawn ellipses, bluer and larger, of drawn patients; not tissue of anyone",
        lambda home: _load_patients(SHIFTED, 611),
        1,
        _PATIENTS,
    ),
    _source(
        "phantom-nuclei-third",
        "generated nuclei, a third site",
        "drawn ellipses, pale, of drawn patients; not tissue of anyone",
        lambda home: _load_patients(THIRD, 621),
        1,
        _PATIENTS,
    ),
]
