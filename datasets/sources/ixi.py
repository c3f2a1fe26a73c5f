"""IXI: brain MRI of healthy subjects of three London hospitals, and a part of it at 2 mm.

`ixi-t1` and `ixi-t2` read the official archives unpacked in the data home: `IXI-T1` and `IXI-T2`
with `IXI002-Guys-0828-T1.nii.gz` and so on. Slices are those along a file's last axis, of which
there are about 150 (T1, which were measured sagittally) and 130 (T2, axial), the numbers that
FL-MRCM (Guo et al. 2021) and FedAD state; both use 581 and 578 subjects: the first of that number
are taken, by name. No list of theirs is published: of the names in the order of their SHA-256 the
first 90 and 89 subjects are the test split, the next 55 are left aside as their validation set, the
others train.

`ixi-hh-t1` has six axial T1 slices each of 143 subjects of Hammersmith Hospital at 2 mm without the
skull, from `ixi_hh.npz` (`slices_t1` (143, 6, 96, 80), `subject`), each volume scaled to its own
greatest value; a quarter of the subjects is the test split.
"""

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fedtables.datasets.folders import hashed, held_out, in_part, inside, listed, one_file
from fedtables.datasets.mri import fitted, read_volume, slices, splits_of
from fedtables.datasets.npz import read_arrays
from fedtables.datasets.source import SURROGATE, DataError, DataSource, Split

SUBJECTS = {"t1": (436, 55, 90), "t2": (434, 55, 89)}
"""For training, validation and testing (FedAD, section 4.3.1)."""
SLICES = {"t1": 150, "t2": 130}
SIDE_HH = 96


def _volumes(modality: str) -> Callable[[Path], list[Path]]:
    """The subjects' files, by name, or none. Raises DataError for some of them."""

    @inside(f"IXI-{modality.upper()}")
    def subjects(folder: Path) -> list[Path]:
        found = [
            path for path in listed(folder, ".nii", ".nii.gz") if path.name[:3].upper() == "IXI"
        ]
        paths = [*{path.name.partition(".")[0]: path for path in found}.values()]  # one is enough
        wanted = sum(SUBJECTS[modality])
        if paths and len(paths) < wanted - 5:  # as downloaded there are 581 and 578
            raise in_part(f"{folder} has {len(paths)} of {wanted} subjects")
        return paths[:wanted]

    return subjects


def splits(names: list[str], modality: str) -> dict[str, list[str]]:
    """Which subjects train and which are tested."""
    _, aside, tested = SUBJECTS[modality]
    order = hashed(names)
    return {"train": sorted(order[tested + aside :]), "test": sorted(order[:tested])}


def slices_of(path: Path) -> np.ndarray:
    """Slices (n, h, w) along the file's last axis, without those that are black."""
    volume = read_volume(path)
    return volume[volume.reshape(len(volume), -1).any(axis=1)]


def _load(modality: str, home: Path) -> dict[str, Split]:
    # By subject, so that one who has both modalities is tested, or trains, in both.
    paths = {path.name.rpartition("-")[0]: path for path in _volumes(modality)(home)}
    parts = splits([*paths], modality)
    return splits_of({s: [paths[name] for name in names] for s, names in parts.items()}, slices_of)


_file_hh = one_file("ixi_hh.npz")
_ARRAYS_HH = {"slices_t1": "uint8 (143, 6, 96, 80)", "subject": "a name or number (143,)"}


def _load_hh(home: Path) -> dict[str, Split]:
    path = _file_hh(home)[0]
    arrays = read_arrays(path, _ARRAYS_HH)
    volumes, subjects = arrays["slices_t1"], [*map(str, arrays["subject"].reshape(-1))]
    if volumes.ndim != 4 or volumes.dtype != np.uint8 or not volumes.size:
        raise DataError(f"{path}: slices_t1 are {volumes.dtype} {volumes.shape}.")
    tested = held_out(subjects, 0.25)
    if not tested or not len(volumes) == len(subjects) == len(set(subjects)):
        raise DataError(f"{path} has {len(volumes)} volumes of {len(set(subjects))} subjects.")
    count, each = volumes.shape[:2]
    every = Split(
        fitted(np.concatenate(volumes), SIDE_HH)[:, None],
        np.zeros(each * count, np.int64),
        groups=np.arange(count).repeat(each),
    )
    return every.divided(np.isin(subjects, [*tested]).repeat(each))


SOURCES = [
    *(
        DataSource(
            **slices("ixi", f"ixi-{modality}", f"IXI, {modality.upper()}"),
            sizes={"train": train * SLICES[modality], "test": test * SLICES[modality]},
            files=_volumes(modality),
            load=functools.partial(_load, modality),
            stand_ins=(
                *(("ixi-hh-t1", "lgg-mri-cs-t1") if modality == "t1" else ("lgg-mri-cs-flair",)),
                f"phantom-brains-i-{modality}",
            ),
        )
        for modality, (train, _, test) in SUBJECTS.items()
    ),
    DataSource(
        **slices("ixi-hh-t1", "ixi-hh-t1", "IXI of Hammersmith Hospital, T1", SIDE_HH),
        sizes={"train": 642, "test": 216},
        files=_file_hh,
        load=_load_hh,
        stand_ins=("phantom-brains-i-t1",),
        kind=SURROGATE,
    ),
]
