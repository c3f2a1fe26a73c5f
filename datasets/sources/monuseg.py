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

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from datasets.annotations import AnnotatedSource, AnnotatedSplit
from datasets.folders import all_of, beside, whole
from datasets.nuclei import (
    NUCLEI,
    TCGA_MEAN,
    TCGA_STD,
    indexed,
    pairs_of,
    read_all,
    read_index,
)
from datasets.source import DataError, Split

ORGANS = (
    "breast",
    "kidney",
    "liver",
    "prostate",
    "bladder",
    "colon",
    "stomach",
    "lung",
    "brain",
)
"""By class. The first four are the clients of FedIOD's Table 3; lung and brain are in the test data
only."""
_IMAGES = """
train breast A7-A13E-01Z-00-DX1 AR-A1AK-01Z-00-DX1 AR-A1AS-01Z-00-DX1 E2-A14V-01Z-00-DX1
train kidney B0-5711-01Z-00-DX1 HE-7128-01Z-00-DX1 HE-7129-01Z-00-DX1 HE-7130-01Z-00-DX1
train liver 18-5592-01Z-00-DX1 21-5784-01Z-00-DX1 38-6178-01Z-00-DX1 50-5931-01Z-00-DX1
train prostate G9-6348-01Z-00-DX1 G9-6356-01Z-00-DX1 G9-6362-01Z-00-DX1 G9-6363-01Z-00-DX1
test breast A7-A13F-01Z-00-DX1 E2-A1B5-01Z-00-DX1
test kidney B0-5698-01Z-00-DX1 B0-5710-01Z-00-DX1
test liver 21-5786-01Z-00-DX1 49-4488-01Z-00-DX1
test prostate CH-5767-01Z-00-DX1 G9-6336-01Z-00-DX1
other bladder DK-A2I6-01A-01-TS1 G2-A2EK-01A-02-TSB
other colon AY-A8YK-01A-01-TS1 NH-A8F7-01A-01-TS1
other stomach KB-A93J-01A-01-TS1 RD-A8N9-01A-01-TS1
challenge bladder CU-A0YN-01A-02-BSB ZF-A9R5-01A-01-TS1
challenge brain FG-A4MU-01B-01-TS1 HT-8564-01Z-00-DX1
challenge breast AC-A2FO-01A-01-TS1 AO-A0J2-01A-01-BSA
challenge colon A6-6782-01A-01-BS1
challenge kidney 2Z-A9J9-01A-01-TS1 GL-6846-01A-01-BS1 IZ-8196-01A-01-BS1
challenge lung 44-2665-01B-06-BS6 69-7764-01A-01-TS1
challenge prostate EJ-A46H-01A-03-TSC HC-7209-01A-01-TS1
"""
_LINES = [line.split() for line in _IMAGES.split("\n") if line]
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
_LICENCE = (
    "CC BY-NC-SA 4.0 (MoNuSeg; images of TCGA): not for commercial use; cite Kumar et al., IEEE TMI"
    " 2017 and 2020"
)
_HOW = (
    "Get the training and the test data from https://monuseg.grand-challenge.org/Data/ and unpack"
    " them in the folder monuseg of the data home."
)
_HOW_HALF = (
    "It is MoNuSeg's training data with 2 x 2 means of the pixels, as index.csv, images/ID.png and"
    " labels/ID.png in the folder monuseg_30 of the data home; without it get MoNuSeg itself."
)

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


def _split(
    names: tuple[str, ...], pairs: Mapping[str, tuple[Path, Path]], sides: tuple[int, int]
) -> Split:
    images, objects = read_all([pairs[name] for name in names], sides)
    return AnnotatedSplit(
        images,
        np.array([ORGANS.index(ORGANS_OF[name]) for name in names], np.int64),
        {"nuclei": objects},
        groups=np.array([GROUPS[name] for name in names], np.int64),
    )


# -- the official layout --


def _files_of(splits: Splits) -> Callable[[Path], list[Path]]:
    """Image and annotation of each id in turn, or none. Raises DataError for some of them."""
    names = [name for names in splits.values() for name in names]

    def read(home: Path, folder: Path) -> list[Path]:
        training, tests = (beside(home, folder, name) for name in (TRAINING, TESTS))
        wanted = []
        for name in names:
            if name in PARTS["challenge"]:
                wanted.append([tests / f"{name}.tif"])
                wanted.append([tests / f"{name}{suffix}" for suffix in (".xml", ".mat", ".png")])
            else:
                maps = (training / "Labels" / f"{name}{suffix}" for suffix in (".mat", ".png"))
                wanted.append([training / "Tissue Images" / f"{name}.tif"])
                wanted.append([training / "Annotations" / f"{name}.xml", *maps])
        return all_of("MoNuSeg", wanted, _HOW)

    def files(home: Path) -> list[Path]:
        folders = [TRAINING, TESTS] if PARTS["challenge"][0] in names else [TRAINING]
        return whole("MoNuSeg", home, folders, partial(read, home), _HOW) or []

    return files


def _load_of(splits: Splits) -> Callable[[Path], dict[str, Split]]:
    def load(home: Path) -> dict[str, Split]:
        paths, names = _files_of(splits)(home), [name for ids in splits.values() for name in ids]
        pairs = dict(zip(names, zip(paths[::2], paths[1::2], strict=True), strict=True))
        return {split: _split(names, pairs, FULL) for split, names in splits.items()}

    return load


# -- halved, with an index --


def _half_files(home: Path) -> list[Path]:
    """Raises DataError for an index with other images or organs than MoNuSeg's training data."""
    title = "MoNuSeg at half resolution"

    def read(folder: Path) -> list[Path]:
        rows = read_index(folder, ("organ",), _HOW_HALF)
        stated = {row["id"]: row["organ"].lower() for row in rows}
        wanted = {name: ORGANS_OF[name] for name in OFFICIAL["train"]}
        if stated != wanted:
            first = min(name for name, _ in stated.items() ^ wanted.items())
            raise DataError(
                f"{folder / 'index.csv'} does not name MoNuSeg's 30 training images with their"
                f" organs; the first that differs is {first}. {_HOW_HALF}"
            )
        return indexed(title, folder, rows, _HOW_HALF)

    return whole(title, home, ["monuseg_30"], read, _HOW_HALF) or []


def _half_load_of(splits: Splits) -> Callable[[Path], dict[str, Split]]:
    def load(home: Path) -> dict[str, Split]:
        # In the order of the ids, as the index is read.
        pairs = dict(zip(OFFICIAL["train"], pairs_of(_half_files(home)), strict=True))
        return {split: _split(names, pairs, HALF) for split, names in splits.items()}

    return load


def _source(
    name: str,
    title: str,
    splits: Splits,
    note: str,
    stand_ins: tuple[str, ...],
    half: bool = False,
) -> AnnotatedSource:
    return AnnotatedSource(
        name=name,
        title=title,
        classes=len(ORGANS),
        class_names=ORGANS,
        class_labels={
            split: tuple(ORGANS.index(ORGANS_OF[name]) for name in names)
            for split, names in splits.items()
        },
        shape=(3, *(HALF if half else FULL)),
        sizes={split: len(names) for split, names in splits.items()},
        mean=TCGA_MEAN,
        std=TCGA_STD,
        licence=_LICENCE,
        how_to_get=_HOW_HALF if half else _HOW,
        files=_half_files if half else _files_of(splits),
        load=_half_load_of(splits) if half else _load_of(splits),
        stand_ins=stand_ins,
        note=note,
        annotations=NUCLEI,
    )


SOURCES = [
    _source(
        "monuseg",
        "MoNuSeg 2018",
        OFFICIAL,
        "the challenge's 30 training and 14 test images",
        ("monuseg-half-all", "phantom-nuclei"),
    ),
    _source(
        "monuseg-kumar",
        "MoNuSeg 2018, Kumar's division",
        KUMAR,
        "16 images of four organs to train, 8 of the same to test, 6 of others",
        ("monuseg-half", "phantom-nuclei"),
    ),
    _source(
        "monuseg-half",
        "MoNuSeg 2018 at half resolution",
        KUMAR,
        "at half resolution, about 20x; in Kumar's division: 16 images of four organs to train, 8"
        " of the same to test, 6 of others; 16,958 nuclei, where the challenge states about 22,000",
        ("phantom-nuclei",),
        half=True,
    ),
    _source(
        "monuseg-half-all",
        "MoNuSeg 2018 at half resolution, all organs",
        ALL,
        "the 30 training images at half resolution, about 20x, in a division of this suite's own:"
        " 19 to train and 11 to test, with every organ in both",
        ("phantom-nuclei",),
        half=True,
    ),
]
