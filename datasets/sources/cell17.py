"""Cell17, or CPM-17: the nuclei of the MICCAI 2017 Digital Pathology Challenge (Vu et al. 2019), 32
training and 32 test images of four kinds of tumour, of 500 to 600 pixels a side, at 20x or 40x.

Two layouts are read from the folder `cpm17` of the data home. That of the copy which the organisers
passed on and most papers use has `train` and `test`, each with `Images/NAME.png` and
`Labels/NAME.mat`, a MATLAB file with `inst_map`. That of the challenge's own archives, of which the
training archive's README is all that could be had, has `NAME.png` and `NAME_mask.txt` in `train`
and in `test`: a width, a height and a number for each pixel, row by row.

All images are filled up to 600 x 600 pixels at the right and below, with white and without nuclei,
so that none loses any. The files do not say which tumour or which patient an image is of: there is
one class, and each image is a group.

What stands in for it: purple-stained tissue of the Data Science Bowl 2018 (Caicedo et al. 2019),
with the corrected masks: 107 images of 256 x 320 pixels with a number for every nucleus. It is read
from the folder `nuclei_dsb2018` of the data home: `index.csv` with the columns id and group,
`images/ID.png` and `labels/ID.png`; the images are those of the group `stain_colour_256x320`.

Most of them are quarters of larger images, whose neighbours would else be in both splits. So a
group is what belongs together: two images touch where the pixels along an edge of one and the
opposite edge of the other differ by less than one and a half times what the two outermost lines
differ by inside of the one, on average. In this set the ratio is below 1.3 or above 1.9.
A group is in the test split if it is among the first of `fedtables.datasets.folders.hashed`, by its
smallest id, that hold at least 32 images, as many as the test split of Cell17; they hold 35.
"""

from pathlib import Path

import numpy as np

from fedtables.datasets.folders import all_of, hashed, in_part, inside, listed
from fedtables.datasets.nuclei import (
    NUCLEI,
    TCGA_MEAN,
    TCGA_STD,
    indexed,
    pairs_of,
    read_all,
    read_index,
)
from fedtables.datasets.source import DataError, DataSource, Split, said

SIDES = (600, 600)
COUNT = 32
"""Images of each split."""


def _wanted(folder: Path) -> list[list[Path]]:
    """Image and annotation in turn, of one of the two layouts, in the order of their names."""
    images, maps, ending = listed(folder / "Images", ".png"), folder / "Labels", ".mat"
    if not images:
        others = ("_poly.png", "_mask.png")
        images = [path for path in listed(folder, ".png") if not path.name.lower().endswith(others)]
        maps, ending = folder, "_mask.txt"
    return [[file] for path in images for file in (path, maps / f"{path.stem}{ending}")]


@inside("cpm17")
def _files(folder: Path) -> list[Path]:
    """Image and annotation in turn, of both splits. Raises DataError for some of them."""
    wanted = {folder / split: _wanted(folder / split) for split in ("train", "test")}
    for place, there in wanted.items():
        if len(there) != 2 * COUNT:
            raise in_part(f"{place} has {len(there) // 2} of {COUNT} images")
    return all_of([names for there in wanted.values() for names in there])


def _load(home: Path) -> dict[str, Split]:
    images, objects = read_all(pairs_of(_files(home)), SIDES, pad=True)
    number = np.arange(2 * COUNT)
    every = Split(images, np.zeros_like(number), {"nuclei": objects}, groups=number)
    return every.divided(number >= COUNT)


# -- DSB 2018 --

DSB_SIDES = (256, 320)
DSB_COUNT = 107
GROUP = "stain_colour_256x320"
TESTED = 32
"""Images of the test split, at least."""


def touching(images: np.ndarray) -> np.ndarray:
    """Numbers int64 (n,) of what belongs together among images uint8 (n, c, h, w): the index of the
    first of those that continue one another; see above.
    """
    from scipy.sparse.csgraph import connected_components  # takes long, and listing needs none

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
    _, parts = connected_components(joined, directed=False)
    _, first, places = np.unique(parts, return_index=True, return_inverse=True)
    return np.asarray(first[places], np.int64)


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
    if len(rows) != DSB_COUNT:
        raise DataError(
            f"{folder / 'index.csv'} has {len(rows)} images of the group {GROUP}, not {DSB_COUNT}."
        )
    return rows


@inside("nuclei_dsb2018")
def _dsb_files(folder: Path) -> list[Path]:
    return indexed(folder, _rows(folder))


def _load_dsb(home: Path) -> dict[str, Split]:
    paths = _dsb_files(home)
    names = [row["id"] for row in _rows(paths[0].parent)]
    images, objects = read_all(pairs_of(paths), DSB_SIDES)
    groups = touching(images)
    every = Split(images, np.zeros_like(groups), {"nuclei": objects}, groups=groups)
    return every.divided(of_test(names, groups))


SOURCES = [
    DataSource(
        **said("cell17"),
        classes=1,
        shape=(3, *SIDES),
        sizes={"train": COUNT, "test": COUNT},
        mean=TCGA_MEAN,
        std=TCGA_STD,
        files=_files,
        load=_load,
        stand_ins=("dsb2018-stain", "phantom-nuclei-third"),
        annotations=NUCLEI,
    ),
    DataSource(
        **said("dsb2018-stain"),
        classes=1,
        shape=(3, *DSB_SIDES),
        sizes={"train": 72, "test": 35},
        mean=(0.667, 0.579, 0.791),
        std=(0.126, 0.195, 0.052),
        files=_dsb_files,
        load=_load_dsb,
        stand_ins=("phantom-nuclei-third",),
        annotations=NUCLEI,
    ),
]
