"""OASIS-3 (LaMontagne et al. 2019): brain MRI of ageing adults, the server's public images in
FedAD's reconstruction.

The layout is that of the download scripts in BIDS form: `OASIS3` of the data home with
`sub-OAS30001/ses-d0129/anat/sub-OAS30001_ses-d0129_T1w.nii.gz`, `_T2w` beside it, at any depth.
FedAD counts 3,388 and 3,598 sessions and does not say which slices: the 120 axial ones around the
middle, as many as FL-MRCM keeps of BraTS. The sessions of the last subject by name are the test
split, since every source has one; nothing is measured on it. A group is a session.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from datasets.folders import below, whole
from datasets.mri import slices_source, splits_of
from datasets.nifti import read_volume, readable
from datasets.source import Split

SESSIONS = {"t1": 3_388, "t2": 3_598}
SLICES = 120
ENDINGS = tuple(f"_t{number}w.nii{packed}" for number in (1, 2) for packed in ("", ".gz"))
_HOW = (
    "Apply at https://sites.wustl.edu/oasisbrains/home/oasis-3/, get the T1w and T2w scans in BIDS"
    " form and put them in OASIS3 of the data home."
)


def _files(modality: str, home: Path) -> list[Path]:
    """The sessions' files, by path, or none. Raises DataError for a folder without any scan."""

    def scans(folder: Path) -> list[Path]:
        return sorted(below(folder, *ENDINGS))

    paths = whole("OASIS-3", home, ["OASIS3"], scans, _HOW) or []
    return [
        *{
            path.name.partition(".")[0]: path  # .nii beside .nii.gz
            for path in paths
            if path.name.lower().startswith("sub-") and f"_{modality}w." in path.name.lower()
        }.values()
    ]


def slices_of(path: Path) -> np.ndarray:
    """The middle axial slices (n, h, w), the front of the head at the top."""
    import nibabel

    volume = read_volume(path).T
    with readable(path):
        directions = nibabel.io_orientation(nibabel.load(path).affine)
        if np.isnan(directions).any():
            raise ValueError("an axis of it has no direction")
    volume = nibabel.apply_orientation(volume, directions)
    first = max(0, (volume.shape[2] - SLICES) // 2)
    return volume[:, ::-1, first : first + SLICES].transpose(2, 1, 0)


def _load(modality: str, home: Path) -> dict[str, Split]:
    subject = {path: path.name.split("_")[0] for path in _files(modality, home)}
    last = max(subject.values(), default="")
    parts = {
        "train": [path for path, name in subject.items() if name != last],
        "test": [path for path, name in subject.items() if name == last],
    }
    return splits_of(parts, slices_of)


SOURCES = [
    slices_source(
        f"oasis3-{modality}",
        f"OASIS-3, {modality.upper()}",
        {"train": (sessions - 1) * SLICES, "test": SLICES},
        functools.partial(_files, modality),
        functools.partial(_load, modality),
        licence="the OASIS-3 data use agreement: for research, after application",
        how_to_get=_HOW,
        stand_ins=(
            f"lgg-mri-fg-{'t1' if modality == 't1' else 'flair'}",
            f"phantom-brains-public-{modality}",
        ),
        note="the middle axial slices of every session",
    )
    for modality, sessions in SESSIONS.items()
]
