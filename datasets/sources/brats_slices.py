"""T1 and T2 slices of BraTS 2020 (`brats.py`): a site of FL-MRCM's and FedAD's reconstruction.

The 369 training cases train and the 125 validation cases are tested, which have no segmentation but
need none here; of the 155 axial slices of each, numbers 14 to 133 (FL-MRCM's code keeps 14 to 134).
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from datasets.mri import slices_source, splits_of
from datasets.nifti import read_volume
from datasets.source import DataError, Split
from datasets.sources import brats

SHOWN = slice(14, 134)


def _files(modality: str, home: Path) -> list[Path]:
    cases = [case for of_split in brats.cases_2020(home).values() for case in of_split]
    return brats.files_of(cases, (modality,), brats.HOW_2020)


def slices_of(path: Path) -> np.ndarray:
    """The middle axial slices (120, 240, 240) of a case. Raises DataError for other sides."""
    volume = read_volume(path)
    if volume.shape != brats.SIDES:
        raise DataError(
            f"{path} has {' x '.join(map(str, volume.shape))} voxels, expected"
            f" {' x '.join(map(str, brats.SIDES))}. Get it again."
        )
    return volume[SHOWN]


def _load(modality: str, home: Path) -> dict[str, Split]:
    subjects = {
        split: brats.files_of(cases, (modality,), brats.HOW_2020)
        for split, cases in brats.cases_2020(home).items()
    }
    return splits_of(subjects, slices_of)


SOURCES = [
    slices_source(
        f"brats2020-{modality}",
        f"BraTS 2020, {modality.upper()} slices",
        {split: count * (SHOWN.stop - SHOWN.start) for split, count in brats.CASES_2020.items()},
        functools.partial(_files, modality),
        functools.partial(_load, modality),
        licence=brats.LICENCE,
        how_to_get=brats.HOW_2020,
        stand_ins=(
            f"lgg-mri-du-{'t1' if modality == 't1' else 'flair'}",
            f"phantom-brains-b-{modality}",
        ),
        note="its unlabelled validation cases are the test split",
    )
    for modality in ("t1", "t2")
]
