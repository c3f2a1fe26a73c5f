"""fastMRI brain (Zbontar et al. 2018): multi-coil k-space of 0.7 to 3 T scanners, of which the
root-sum-of-squares images are taken.

The layout is the official one: `multicoil_train` and `multicoil_val` of the data home's
`fastmri_brain`, with files such as `file_brain_AXT1_201_6002725.h5`, whose `reconstruction_rss` is
float32 (slices, h, w). `fastmri-t1` has those whose name has `AXT1`, with or without contrast
(AXT1PRE, AXT1POST), and `fastmri-t2` those with `AXT2`. FedAD states 3,443 and 3,832 subjects, a
quarter of them for testing, and about 15 slices of each; no list is published: of the names in the
order of their SHA-256, the first quarter is the test split.
"""

import functools
import math
from pathlib import Path

import numpy as np

from fedtables.datasets.folders import Spelling, held_out, in_part, inside, listed, reading
from fedtables.datasets.mri import slices, splits_of
from fedtables.datasets.source import DataError, DataSource, Split
from fedtables.results.zips import MOST_PACKED

SUBJECTS = {"t1": (2_583, 860), "t2": (2_874, 958)}
"""For training and testing (FedAD, section 4.3.1)."""
SLICES = 15
FOLDERS = ("multicoil_train", "multicoil_val")


@inside("fastmri_brain")
def _scans(folder: Path) -> list[Path]:
    """All subjects' files, by name. Raises DataError if one of the folders is missing."""
    for name in FOLDERS:
        if Spelling().find(folder / name) is None:
            raise in_part(f"{folder} lacks {name}")
    paths = [path for name in FOLDERS for path in listed(folder / name, ".h5", ".hdf5")]
    return sorted(paths, key=lambda path: path.name)


def _files(modality: str, home: Path) -> list[Path]:
    start = f"file_brain_ax{modality}"
    return [path for path in _scans(home) if path.name.lower().startswith(start)]


def slices_of(path: Path) -> np.ndarray:
    """Slices float32 (n, h, w). Raises DataError for a file that cannot be read or lacks them."""
    import h5py

    with reading(path, "a readable HDF5 file"), h5py.File(path) as content:
        if "reconstruction_rss" not in content:
            raise DataError(
                f"{path} has no reconstruction_rss, as the files of the test set do not."
            )
        stored = content["reconstruction_rss"]
        stated = math.prod(stored.shape) * stored.dtype.itemsize
        there = stored.id.get_storage_size()
        if stated > there * MOST_PACKED:
            raise ValueError(f"it says {stated:,} bytes of slices, and has {there:,}")
        found = np.asarray(stored)
    if found.ndim != 3 or found.dtype.kind != "f" or not found.size:
        raise DataError(f"{path}: reconstruction_rss is {found.dtype} {found.shape}.")
    return found


def _load(modality: str, home: Path) -> dict[str, Split]:
    paths = {path.name: path for path in _files(modality, home)}
    tested = held_out(paths, 0.25)
    subjects = {
        "train": [path for name, path in paths.items() if name not in tested],
        "test": [path for name, path in paths.items() if name in tested],
    }
    return splits_of(subjects, slices_of)


SOURCES = [
    DataSource(
        **slices("fastmri", f"fastmri-{modality}", f"fastMRI brain, {modality.upper()}"),
        sizes={"train": train * SLICES, "test": test * SLICES},
        files=functools.partial(_files, modality),
        load=functools.partial(_load, modality),
        stand_ins=(
            f"lgg-mri-ht-{'t1' if modality == 't1' else 'flair'}",
            f"phantom-brains-f-{modality}",
        ),
    )
    for modality, (train, test) in SUBJECTS.items()
]
