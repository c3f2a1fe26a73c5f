"""TNBC (Naylor et al. 2018): 50 H&E images of 512 x 512 pixels at 40x, of eleven patients with
triple-negative breast cancer at the Institut Curie, with a mask of the nuclei.

Two layouts are read. The official one of Zenodo, in the folder `TNBC_NucleiSegmentation` of the
data home, has `Slide_XX/XX_I.png` and `GT_XX/XX_I.png` for each patient XX; a nucleus is a
connected part of the mask, corners included, which gives 4,028 of the published 4,022. The packed
one, in the folder `tnbc_naylor`, has `index.csv` with the columns id and patient, `images/ID.jpg`
or `.png` and `labels/ID.png` with a number for each nucleus.

The paper validates across patients and states no split, and neither does FedIOD (Gong et al. 2024).
Here patients 1 to 8 are the training split, 37 images, and 9 to 11 the test split, 13 images.

`tnbc-half` is the same at half resolution, about 20x, for where it stands beside sites of that
resolution (`monuseg-half`): means of 2 x 2 pixels, and of their annotations the first one's.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from skimage.segmentation import relabel_sequential

from fedtables.datasets.folders import all_of, inside
from fedtables.datasets.nuclei import (
    NUCLEI,
    indexed,
    pairs_of,
    read_all,
    read_index,
    read_objects,
    same_sides,
    separated,
)
from fedtables.datasets.pictures import LOSSLESS, read_rgb
from fedtables.datasets.source import DataError, DataSource, Split, said

SIDES = (512, 512)
PER_PATIENT = (7, 3, 5, 8, 4, 3, 3, 4, 6, 4, 3)
"""Images of patients 1 to 11."""
LAST_OF_TRAIN = 8
"""Patients after this one are the test split."""
OFFICIAL, PACKED = "TNBC_NucleiSegmentation", "tnbc_naylor"


def _official(folder: Path) -> list[Path]:
    """Image and annotation of each image in turn, by patient, or none."""
    wanted = [
        [folder / f"{kind}_{patient:02}" / f"{patient:02}_{number}.png"]
        for patient, count in enumerate(PER_PATIENT, 1)
        for number in range(1, count + 1)
        for kind in ("Slide", "GT")
    ]
    return all_of(wanted)


def _packed(folder: Path) -> list[Path]:
    """The same. Raises DataError for an index with other numbers of images than the set has."""
    rows = read_index(folder, "patient")
    found = sorted(row["patient"].zfill(2) for row in rows)
    counts = enumerate(PER_PATIENT, 1)
    if found != [f"{patient:02}" for patient, count in counts for _ in range(count)]:
        raise DataError(
            f"{folder / 'index.csv'} has {len(rows)} images of {len(set(found))} patients, not"
            f" {sum(PER_PATIENT)} of {len(PER_PATIENT)}, or another number of one of them."
        )
    rows = sorted(rows, key=lambda row: int(row["patient"]))
    return indexed(folder, rows, (".jpg", ".png"))


@inside(OFFICIAL, PACKED)
def _files(folder: Path) -> list[Path]:
    return _packed(folder) if folder.name.lower() == PACKED else _official(folder)


def _from_mask(path: Path, sides: tuple[int, int]) -> np.ndarray:
    """The parts of a mask, of which 0 is background. Raises DataError for a picture of more tones,
    and for one that is mostly bright.
    """
    tones = read_rgb(path, LOSSLESS).max(axis=-1)
    same_sides(path, tones, sides)
    mask = tones > 0
    if len(np.unique(tones[mask])) > 1 or 2 * mask.sum() > mask.size:
        raise DataError(
            f"{path} is no mask: it has more than two tones, or most of it is not 0. Get it again."
        )
    return separated(mask)


def _load(home: Path) -> dict[str, Split]:
    paths = _files(home)
    official = paths[0].suffix.lower() != ".csv"
    images, objects = read_all(pairs_of(paths), SIDES, _from_mask if official else read_objects)
    patients = np.repeat(np.arange(1, len(PER_PATIENT) + 1), PER_PATIENT)
    every = Split(images, np.zeros_like(patients), {"nuclei": objects}, groups=patients)
    return every.divided(patients > LAST_OF_TRAIN)


def halved(split: Split) -> Split:
    """A split of images of even sides and their nuclei, at half resolution."""
    quarters = [
        split.images[..., row::2, column::2].astype(np.uint16)
        for row in (0, 1)
        for column in (0, 1)
    ]
    nuclei = split.annotations["nuclei"][:, ::2, ::2]
    return Split(
        ((np.sum(quarters, axis=0) + 2) // 4).astype(np.uint8),
        split.labels,
        {"nuclei": np.stack([relabel_sequential(objects)[0] for objects in nuclei])},
        groups=split.groups,
    )


def _load_halved(home: Path) -> dict[str, Split]:
    return {name: halved(split) for name, split in _load(home).items()}


_WHOLE = DataSource(
    **said("tnbc"),
    classes=1,
    shape=(3, *SIDES),
    sizes={"train": sum(PER_PATIENT[:LAST_OF_TRAIN]), "test": sum(PER_PATIENT[LAST_OF_TRAIN:])},
    mean=(0.794, 0.721, 0.799),
    std=(0.106, 0.130, 0.088),
    files=_files,
    load=_load,
    stand_ins=("phantom-nuclei-shifted",),
    annotations=NUCLEI,
)
_HALF = (3, SIDES[0] // 2, SIDES[1] // 2)
SOURCES = [_WHOLE, replace(_WHOLE, **said("tnbc-half"), shape=_HALF, load=_load_halved)]
