"""OASIS-3 (LaMontagne et al. 2019): brain MRI of ageing adults, the server's public images in
FedAD's reconstruction.

The layout is that of the download scripts in BIDS form: `OASIS3` of the data home with
`sub-OAS30001/ses-d0129/anat/sub-OAS30001_ses-d0129_T1w.nii.gz`, `_T2w` beside it, at any depth.
FedAD counts 3,388 and 3,598 sessions and does not say which slices: the 120 axial ones around the
middle, as many as FL-MRCM keeps of BraTS. The sessions of the last subject by name are the test
split, since every source has one; nothing is measured on it. A group is a session.
"""

import functools
from pathlib import Path

import numpy as np

from fedtables.datasets.folders import below, inside, reading
from fedtables.datasets.mri import VOLUME, read_volume, slices, splits_of
from fedtables.datasets.source import DataSource, Split

SESSIONS = {"t1": 3_388, "t2": 3_598}
SLICES = 120
ENDINGS = tuple(f"_t{number}w.nii{packed}" for number in (1, 2) for packed in ("", ".gz"))


@inside("OASIS3")
def _scans(folder: Path) -> list[Path]:
    """All sessions' files, by path."""
    return sorted(below(folder, *ENDINGS))


def _files(modality: str, home: Path) -> list[Path]:
    return [
        *{
            path.name.partition(".")[0]: path  # .nii beside .nii.gz
            for path in _scans(home)
            if path.name.lower().startswith("sub-") and f"_{modality}w." in path.name.lower()
        }.values()
    ]


def slices_of(path: Path) -> np.ndarray:
    """The middle axial slices (n, h, w), the front of the head at the top."""
    import nibabel

    volume = read_volume(path).T
    with reading(path, VOLUME):
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
    DataSource(
        **slices("oasis3", f"oasis3-{modality}", f"OASIS-3, {modality.upper()}"),
        sizes={"train": (sessions - 1) * SLICES, "test": SLICES},
        files=functools.partial(_files, modality),
        load=functools.partial(_load, modality),
        stand_ins=(
            f"lgg-mri-fg-{'t1' if modality == 't1' else 'flair'}",
            f"phantom-brains-public-{modality}",
        ),
    )
    for modality, sessions in SESSIONS.items()
]
