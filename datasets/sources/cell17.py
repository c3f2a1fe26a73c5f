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

from datasets.annotations import AnnotatedSource, AnnotatedSplit
from datasets.folders import all_of, in_part, listed, whole
from datasets.nuclei import NUCLEI, TCGA_MEAN, TCGA_STD, read_all
from datasets.source import Split

SIDES = (600, 600)
COUNT = 32
"""Images of each split."""
_HOW = (
    "Get the folder cpm17 of https://drive.google.com/drive/folders/1l55cv3DuY-f7-JotDN7N5nbNnjbLWchK"
    " (see https://github.com/vqdang/hover_net/issues/5) into the data home."
)


def _wanted(folder: Path) -> list[list[Path]]:
    """Image and annotation in turn, of one of the two layouts, in the order of their names."""
    images, maps, ending = listed(folder / "Images", ".png"), folder / "Labels", ".mat"
    if not images:
        others = ("_poly.png", "_mask.png")
        images = [path for path in listed(folder, ".png") if not path.name.lower().endswith(others)]
        maps, ending = folder, "_mask.txt"
    return [[file] for path in images for file in (path, maps / f"{path.stem}{ending}")]


def _files(home: Path) -> list[Path]:
    """Image and annotation in turn, of both splits, or none. Raises DataError for some of them."""

    def read(folder: Path) -> list[Path]:
        wanted = {folder / split: _wanted(folder / split) for split in ("train", "test")}
        for place, there in wanted.items():
            if len(there) != 2 * COUNT:
                raise in_part(f"{place} has {len(there) // 2} of {COUNT} images", _HOW)
        return all_of("Cell17", [names for there in wanted.values() for names in there], _HOW)

    return whole("Cell17", home, ["cpm17"], read, _HOW) or []


def _load(home: Path) -> dict[str, Split]:
    paths = _files(home)
    pairs = [*zip(paths[::2], paths[1::2], strict=True)]
    splits: dict[str, Split] = {}
    for split, first in (("train", 0), ("test", COUNT)):
        images, objects = read_all(pairs[first : first + COUNT], SIDES, pad=True)
        splits[split] = AnnotatedSplit(
            images,
            np.zeros(COUNT, np.int64),
            {"nuclei": objects},
            groups=np.arange(COUNT) + first,
        )
    return splits


SOURCES = [
    AnnotatedSource(
        name="cell17",
        title="Cell17",
        classes=1,
        shape=(3, *SIDES),
        sizes={"train": COUNT, "test": COUNT},
        mean=TCGA_MEAN,
        std=TCGA_STD,
        licence=(
            "the challenge states none that could be found: for research; cite Vu et al., Frontiers"
            " in Bioengineering and Biotechnology 2019"
        ),
        how_to_get=_HOW,
        files=_files,
        load=_load,
        stand_ins=("dsb2018-stain", "phantom-nuclei-third"),
        note="smaller images are filled up to 600 x 600 pixels with white",
        annotations=NUCLEI,
    )
]
