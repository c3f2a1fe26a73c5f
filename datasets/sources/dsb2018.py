"""The purple-stained tissue of the Data Science Bowl 2018 (Caicedo et al. 2019), with the corrected
masks: 107 images of 256 x 320 pixels with a number for every nucleus.

Read from the folder `nuclei_dsb2018` of the data home: `index.csv` with the columns id and group,
`images/ID.png` and `labels/ID.png`; the images are those of the group `stain_colour_256x320`.

Most of them are quarters of larger images, whose neighbours would else be in both splits. So a
group is what belongs together: two images touch where the pixels along an edge of one and the
opposite edge of the other differ by less than one and a half times what the two outermost lines
differ by inside of the one, on average. In this set the ratio is below 1.3 or above 1.9.
A group is in the test split if it is among the first of `datasets.folders.hashed`, by its smallest
id, that hold at least 32 images, as many as the test split of Cell17, for which this set stands in;
they hold 35.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from datasets.folders import hashed, inside
from datasets.nuclei import NUCLEI, indexed, pairs_of, read_all, read_index
from datasets.source import DataError, DataSource, Split, said

SIDES = (256, 320)
COUNT = 107
GROUP = "stain_colour_256x320"
TESTED = 32
"""Images of the test split, at least."""


def touching(images: np.ndarray) -> np.ndarray:
    """Numbers int64 (n,) of what belongs together among images uint8 (n, c, h, w): the index of the
    first of those that continue one another; see above.
    """
    pixels = images.astype(np.int64)
    count = len(images)
    joined = np.eye(count, dtype=bool)
    for own, next_to_it, other in (
        (pixels[..., -1], pixels[..., -2], pixels[..., 0]),
        (pixels[:, :, -1], pixels[:, :, -2], pixels[:, :, 0]),
    ):
        inside = abs(own - next_to_it).sum(axis=(1, 2))
        for index in range(count):
            across = abs(own[index] - other).sum(axis=(1, 2))
            joined[index] |= 2 * across < 3 * inside[index]
    joined |= joined.T
    first = np.arange(count)
    while True:  # the smallest index spreads over what is joined
        spread = np.where(joined, first, count).min(axis=1)
        if (spread == first).all():
            return first
        first = spread


def of_test(names: list[str], groups: np.ndarray) -> np.ndarray:
    """Whether each image is in the test split, from its name and its group; see above."""
    first = {int(group): min(np.array(names)[groups == group]) for group in np.unique(groups)}
    of_name = {name: group for group, name in first.items()}
    tested = np.zeros(len(names), bool)
    for name in hashed(of_name):
        if tested.sum() >= TESTED:
            break
        tested |= groups == of_name[name]
    return tested


def _rows(folder: Path) -> list[dict[str, str]]:
    """Of the stained images. Raises DataError for another number than there are."""
    rows = [row for row in read_index(folder, "group") if row["group"] == GROUP]
    if len(rows) != COUNT:
        raise DataError(
            f"{folder / 'index.csv'} has {len(rows)} images of the group {GROUP}, not {COUNT}."
        )
    return rows


@inside("nuclei_dsb2018")
def _files(folder: Path) -> list[Path]:
    return indexed(folder, _rows(folder))


def _load(home: Path) -> dict[str, Split]:
    paths = _files(home)
    names = [row["id"] for row in _rows(paths[0].parent)]
    images, objects = read_all(pairs_of(paths), SIDES)
    groups = touching(images).astype(np.int64)
    every = Split(images, np.zeros_like(groups), {"nuclei": objects}, groups=groups)
    return every.divided(of_test(names, groups))


SOURCES = [
    DataSource(
        **said("dsb2018-stain"),
        classes=1,
        shape=(3, *SIDES),
        sizes={"train": 72, "test": 35},
        mean=(0.667, 0.579, 0.791),
        std=(0.126, 0.195, 0.052),
        files=_files,
        load=_load,
        stand_ins=("phantom-nuclei-third",),
        annotations=NUCLEI,
    )
]
