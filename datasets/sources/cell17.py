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
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from datasets.folders import all_of, in_part, inside, listed
from datasets.nuclei import NUCLEI, TCGA_MEAN, TCGA_STD, pairs_of, read_all
from datasets.source import DataSource, Split, said

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
    )
]
