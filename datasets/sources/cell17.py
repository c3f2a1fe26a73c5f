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
from datasets.folders import all_there
from datasets.nuclei import NUCLEI, TCGA_MEAN, TCGA_STD, read_all
from datasets.source import DataError, Split

SIDES = (600, 600)
COUNT = 32
"""Images of each split."""
_HOW = (
    "Get the folder cpm17 of https://drive.google.com/drive/folders/1l55cv3DuY-f7-JotDN7N5nbNnjbLWchK"
    " (see https://github.com/vqdang/hover_net/issues/5) into the data home."
)


def _pairs(folder: Path) -> list[tuple[Path, Path]]:
    """Image and annotation, of one of the two layouts, in the order of their names."""
    if (folder / "Images").is_dir():
        return [
            (path, folder / "Labels" / f"{path.stem}.mat")
            for path in sorted((folder / "Images").glob("*.png"))
        ]
    return [
        (path, folder / f"{path.stem}_mask.txt")
        for path in sorted(folder.glob("*.png"))
        if not path.stem.endswith(("_poly", "_mask"))
    ]


def _files(home: Path) -> list[Path]:
    pairs = {split: _pairs(home / "cpm17" / split) for split in ("train", "test")}
    if not any(pairs.values()):
        return []
    for split, there in pairs.items():
        if len(there) != COUNT:
            raise DataError(
                f"{home / 'cpm17' / split} has {len(there)} of {COUNT} images. Complete it, or take"
                f" the folder cpm17 away for another set to stand in. {_HOW}"
            )
    paths = [path for there in pairs.values() for pair in there for path in pair]
    return paths if all_there("Cell17", paths, _HOW) else []


def _load(home: Path) -> dict[str, Split]:
    splits: dict[str, Split] = {}
    for number, split in enumerate(("train", "test")):
        images, objects = read_all(_pairs(home / "cpm17" / split), SIDES, pad=True)
        count = len(images)
        splits[split] = AnnotatedSplit(
            images,
            np.zeros(count, np.int64),
            {"nuclei": objects},
            groups=np.arange(count) + number * COUNT,
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
        embedded="phantom-nuclei-third",
        note="smaller images are filled up to 600 x 600 pixels with white",
        annotations=NUCLEI,
    )
]
