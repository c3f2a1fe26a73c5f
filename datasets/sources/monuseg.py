"""MoNuSeg 2018 (Kumar et al. 2017, 2020): 30 + 14 H&E images of 1000 x 1000 pixels at 40x, from
TCGA, with an outline for every nucleus.

The layout is the official one, in the folder `monuseg` of the data home or in the data home itself:
`MoNuSeg 2018 Training Data` with `Tissue Images/ID.tif` and `Annotations/ID.xml`, and
`MoNuSegTestData` with `ID.tif` and `ID.xml`. In place of the XML files there may be instance maps,
`Labels/ID.mat` (with `inst_map`) or `Labels/ID.png`, and in the folder of the test data the same
beside the images. Images that `ORGANS_OF` does not name, such as the seven that later copies of the
training data have, are left alone.

`monuseg` has the challenge's 30 training and 14 test images. `monuseg-kumar` has the same 30 in the
division of Kumar et al. (2017), as the authors of HoVer-Net list it: four images each of breast,
kidney, liver and prostate to train, two each of the same organs to test, and six of other organs,
split `other`; the training data are all that it reads. The organs of the 14 test images are not in
the download; they are told from the tissue source sites in their TCGA barcodes.

`monuseg-half` is the 30 images halved, in the folder `monuseg_30`: `index.csv` with the columns
id and organ, `images/ID.png` and `labels/ID.png` of 500 x 500 pixels; divided as `monuseg-kumar`.
`monuseg-half-all` has them all in two splits, for where a site holds all organs: those of
`monuseg-kumar`, and of each other organ the first image by id to train and the second to test.

The class of an image is its organ, by `ORGANS`; its group is the image, for no patient has two.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from fedtables.datasets.folders import all_of, beside, inside, whole
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

ORGANS = (
    *("breast", "kidney", "liver", "prostate", "bladder", "colon", "stomach"),
    *("lung", "brain"),
)
"""By class. The first four are the clients of FedIOD's Table 3; lung and brain are in the test data
only."""
_LINES = [*map(str.split, Path(__file__).with_suffix(".txt").read_text().splitlines())]
PARTS: dict[str, tuple[str, ...]] = {
    part: tuple(
        sorted(f"TCGA-{name}" for own, _, *names in _LINES if own == part for name in names)
    )
    for part in ("train", "test", "other", "challenge")
}
"""Ids by part: `train`, `test` and `other` of Kumar et al. (2017), and `challenge`, the 14 test
images."""
ORGANS_OF = {f"TCGA-{name}": organ for _, organ, *names in _LINES for name in names}
GROUPS = {name: number for number, name in enumerate(ORGANS_OF)}
"""Number of each image, the same in all sets of this file."""
TRAINING, TESTS = "MoNuSeg 2018 Training Data", "MoNuSegTestData"
FULL, HALF = (1000, 1000), (500, 500)
Splits = Mapping[str, tuple[str, ...]]
"""Ids by split."""
KUMAR: Splits = {part: PARTS[part] for part in ("train", "test", "other")}
OFFICIAL: Splits = {
    "train": tuple(sorted({*PARTS["train"], *PARTS["test"], *PARTS["other"]})),
    "test": PARTS["challenge"],
}
_FIRST = {f"TCGA-{names[0]}" for part, _, *names in _LINES if part == "other"}
ALL: Splits = {
    "train": tuple(sorted({*PARTS["train"], *_FIRST})),
    "test": tuple(sorted({*PARTS["test"], *PARTS["other"]} - _FIRST)),
}


def _load(
    splits: Splits,
    names: Sequence[str],
    files: Callable[[Path], list[Path]],
    sides: tuple[int, int],
    home: Path,
) -> dict[str, Split]:
    """Splits of what `files` gives, image and annotation of each of `names` in turn."""
    pairs = dict(zip(names, pairs_of(files(home)), strict=True))
    found = {}
    for split, own in splits.items():
        images, objects = read_all([pairs[name] for name in own], sides)
        found[split] = Split(
            images,
            np.array([ORGANS.index(ORGANS_OF[name]) for name in own], np.int64),
            {"nuclei": objects},
            groups=np.array([GROUPS[name] for name in own], np.int64),
        )
    return found


# -- the official layout --


def _wanted(name: str, training: Path, tests: Path) -> list[list[Path]]:
    """Image and annotation of an id, each under its usual names."""
    if name in PARTS["challenge"]:
        maps = [tests / f"{name}{suffix}" for suffix in (".xml", ".mat", ".png")]
        return [[tests / f"{name}.tif"], maps]
    maps = [training / "Labels" / f"{name}{suffix}" for suffix in (".mat", ".png")]
    image = training / "Tissue Images" / f"{name}.tif"
    return [[image], [training / "Annotations" / f"{name}.xml", *maps]]


def _files(names: Sequence[str], home: Path) -> list[Path]:
    """Image and annotation of each id in turn, or none. Raises DataError for some of them."""

    def read(folder: Path) -> list[Path]:
        training, tests = (beside(home, folder, name) for name in (TRAINING, TESTS))
        return all_of([file for name in names for file in _wanted(name, training, tests)])

    folders = [TRAINING, TESTS] if PARTS["challenge"][0] in names else [TRAINING]
    return whole(home, folders, read) or []


# -- halved, with an index --


@inside("monuseg_30")
def _half_files(folder: Path) -> list[Path]:
    """Raises DataError for an index with other images or organs than MoNuSeg's training data."""
    rows = read_index(folder, "organ")
    stated = {row["id"]: row["organ"].lower() for row in rows}
    wanted = {name: ORGANS_OF[name] for name in OFFICIAL["train"]}
    if stated != wanted:
        first = min(name for name, _ in stated.items() ^ wanted.items())
        raise DataError(
            f"{folder / 'index.csv'} does not name MoNuSeg's 30 training images with their"
            f" organs; the first that differs is {first}."
        )
    return indexed(folder, rows)


def _source(name: str, splits: Splits, stand_ins: tuple[str, ...], half: bool) -> DataSource:
    names = OFFICIAL["train"] if half else tuple(itertools.chain(*splits.values()))
    files, sides = (_half_files, HALF) if half else (partial(_files, names), FULL)
    return DataSource(
        **said(name),
        classes=len(ORGANS),
        class_names=ORGANS,
        class_labels={
            split: tuple(ORGANS.index(ORGANS_OF[name]) for name in names)
            for split, names in splits.items()
        },
        shape=(3, *sides),
        sizes={split: len(names) for split, names in splits.items()},
        mean=TCGA_MEAN,
        std=TCGA_STD,
        files=files,
        load=partial(_load, splits, names, files, sides),
        stand_ins=(*stand_ins, "phantom-nuclei"),
        annotations=NUCLEI,
    )


SOURCES = [
    _source("monuseg", OFFICIAL, ("monuseg-half-all",), half=False),
    _source("monuseg-kumar", KUMAR, ("monuseg-half",), half=False),
    _source("monuseg-half", KUMAR, (), half=True),
    _source("monuseg-half-all", ALL, (), half=True),
]
