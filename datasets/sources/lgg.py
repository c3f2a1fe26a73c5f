"""LGG MRI (Buda et al. 2019; TCGA-LGG): 1,808 axial slices of 110 patients of five institutions, at
128 x 128 pixels, with masks of the FLAIR abnormality.

Read from `lgg_mri.npz`: `images` (n, 128, 128, 3) of T1 before contrast, FLAIR and T1 after
contrast, `masks` (n, 128, 128) of 0 and 1, and `patient`, `slice` and `site` of each. It has the
slices with a tumour, all of them next to each other, and about four others of each patient. Nine
patients have no T1 after contrast and six none before it; there, as published, FLAIR takes its
place.

The class of a slice is its institution by `SITES`, its group the patient. No split is published: of
each institution's patients, a quarter is in the test split (`fedtables.datasets.folders.held_out`).

`lgg-mri-volumes` has one volume of each patient, of 16 slices at 64 x 64 pixels: those around the
middle of the tumour that follow one another, at half the width and height (2 x 2 means; masks where
two of four pixels have the tumour). What is missing above and below, 27 % of all slices, is black.
Of longer tumours the ends are cut off. Of each institution's patients that are not in the test
split, three tenths have no volume there: they are the test split of `lgg-mri-volumes-public`, whose
voxels are all unlabelled (255), for a server's public data of no client's patients.

`lgg-mri-du-t1` has T1 before contrast of the patients of the institution DU, `lgg-mri-du-flair`
FLAIR, which is weighted by T2 with fluid suppressed and so the nearest to T2 that there is: real
brains that stand in for a site of reconstruction. Patients without T1 before contrast, where FLAIR
takes its place, are left out of the first. BraTS has patients of TCGA-LGG too, so that beside real
BraTS these sets may show some of its patients.
"""

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedtables.datasets.folders import held_out, one_file
from fedtables.datasets.mri import slices
from fedtables.datasets.npz import read_arrays
from fedtables.datasets.source import (
    IGNORE,
    SEGMENTS,
    SURROGATE,
    Annotation,
    DataError,
    DataSource,
    Split,
    said,
    whole_numbers,
)

SIDE = 128
DEPTH, SMALL = 16, 64
"""Slices of a volume, and pixels of its width and height."""
SITES = ("CS", "DU", "EZ", "FG", "HT")
"""By class: the tissue source sites of the patients' TCGA barcodes."""
SHARE = 0.25
"""Of each site's patients in the test split."""
PUBLIC_SHARE = 0.3
"""Of each site's other patients in the public volumes."""
_ARRAYS = {
    "images": "uint8 (n, 128, 128, 3)",
    "masks": "0 or 1 (n, 128, 128)",
    "patient": "text (n,)",
    "slice": "whole numbers (n,)",
    "site": "CS, DU, EZ, FG or HT (n,)",
}
files = one_file("lgg_mri.npz")


def _read(home: Path) -> dict[str, np.ndarray]:
    """The five arrays, in the order of patients and slices. Raises DataError if they do not fit."""
    path = files(home)[0]
    arrays = read_arrays(path, _ARRAYS)
    arrays["slice"] = whole_numbers(arrays["slice"], f"{path}: slice")
    images, masks = arrays["images"], arrays["masks"]
    count = len(images)
    if images.shape != (count, SIDE, SIDE, 3) or images.dtype != np.uint8:
        raise DataError(f"{path}: images are {images.dtype} {images.shape}.")
    if masks.shape != (count, SIDE, SIDE) or not np.isin(masks, (0, 1)).all():
        raise DataError(f"{path}: masks {masks.shape} are not 0 and 1 of every pixel.")
    if any(len(arrays[name]) != count for name in _ARRAYS):
        raise DataError(f"{path}: there are not as many patients, slices and sites.")
    unknown = set(arrays["site"].tolist()) - set(SITES)
    if unknown:
        raise DataError(f"{path}: unknown sites {', '.join(sorted(unknown))}.")
    order = np.lexsort((arrays["slice"], arrays["patient"]))
    return {name: array[order] for name, array in arrays.items()}


def patients_to_test(patients: np.ndarray, sites: np.ndarray, share: float = SHARE) -> set[str]:
    """The patients of the test split, a quarter or another share of each site's."""
    return {name for site in SITES for name in held_out(patients[sites == site].tolist(), share)}


def _slices(arrays: dict[str, np.ndarray]) -> Split:
    patients = arrays["patient"]
    return Split(
        np.ascontiguousarray(arrays["images"].transpose(0, 3, 1, 2)),
        np.searchsorted(SITES, arrays["site"]).astype(np.int64),
        {"tumour": arrays["masks"].astype(np.uint8)},
        groups=np.unique(patients, return_inverse=True)[1].astype(np.int64),
    )


def load_slices(home: Path) -> dict[str, Split]:
    arrays = _read(home)
    patients = arrays["patient"]
    return _slices(arrays).divided(np.isin(patients, [*patients_to_test(patients, arrays["site"])]))


def around_tumour(numbers: np.ndarray, tumour: np.ndarray) -> dict[int, int]:
    """Which slices of a patient a volume holds, by their place in it, 0 to 15.

    `numbers` are those of the slices, ascending, and `tumour` says which show it. The middle of the
    tumour is at place 8; slices follow one another from there up to the first that is missing.
    """
    first, last = numbers[tumour][[0, -1]].tolist()
    middle = (first + last + 1) // 2
    index = {int(number): place for place, number in enumerate(numbers)}
    found = {}
    for steps in (range(DEPTH // 2, DEPTH), range(DEPTH // 2 - 1, -1, -1)):
        for place in steps:
            slice_index = index.get(middle + place - DEPTH // 2)
            if slice_index is None:
                break
            found[place] = slice_index
    return found


def _halved(slices: np.ndarray) -> np.ndarray:
    """Sums over 2 x 2 pixels of uint8 (..., 128, 128)."""
    wide = slices.astype(np.uint16)
    return wide[..., ::2, ::2] + wide[..., 1::2, ::2] + wide[..., ::2, 1::2] + wide[..., 1::2, 1::2]


def stacked(split: Split, numbers: np.ndarray) -> Split:
    """Volumes (patients, 3, 16, 64, 64) of slices (n, 3, 128, 128), `numbers` those of the slices.

    Raises DataError for a patient without a tumour.
    """
    assert split.groups is not None
    patients, starts = np.unique(split.groups, return_index=True)
    images = np.zeros((len(patients), 3, DEPTH, SMALL, SMALL), np.uint8)
    masks = np.zeros((len(patients), DEPTH, SMALL, SMALL), np.uint8)
    for row, patient in enumerate(patients):
        own = np.flatnonzero(split.groups == patient)
        tumours = split.annotations["tumour"][own]
        if not tumours.any():
            raise DataError(f"patient {patient} has no slice with a tumour.")
        places = around_tumour(numbers[own], np.asarray(tumours.any(axis=(1, 2))))
        depths, chosen = [*places], own[[*places.values()]]
        means = (_halved(split.images[chosen]) + 2) // 4
        images[row][:, depths] = means.transpose(1, 0, 2, 3)
        masks[row, depths] = _halved(split.annotations["tumour"][chosen]) >= 2
    return Split(images, split.labels[starts], {"tumour": masks}, groups=patients.astype(np.int64))


def _load_volumes(home: Path, public: bool = False) -> dict[str, Split]:
    arrays = _read(home)
    patients, sites = arrays["patient"], arrays["site"]
    tested = np.isin(patients, [*patients_to_test(patients, sites)])
    shown = np.isin(patients, [*patients_to_test(patients[~tested], sites[~tested], PUBLIC_SHARE)])
    whole = _slices(arrays)

    def volumes(chosen: np.ndarray) -> Split:
        return stacked(whole.taken(chosen), arrays["slice"][chosen])

    private = volumes(~tested & ~shown)
    if not public:
        return {"train": private, "test": volumes(tested)}
    offered = volumes(shown)
    unlabelled = {"tumour": np.full_like(offered.annotations["tumour"], IGNORE)}
    return {"train": private, "test": replace(offered, annotations=unlabelled)}


# -- one sequence at one institution --

SEQUENCES = {"t1": 0, "flair": 1}
"""Channels of `lgg-mri`."""
SLICES = {
    "cs-t1": (143, 42),
    "cs-flair": (143, 42),
    "du-t1": (603, 185),
    "du-flair": (619, 185),
    "fg-t1": (178, 68),
    "fg-flair": (204, 68),
    "ht-t1": (343, 116),
    "ht-flair": (406, 131),
}
"""Training and test slices."""
STAND_IN = {"du": "b", "ht": "f", "cs": "i", "fg": "public"}
"""The generated site that takes an institution's place."""


def _of_sequence(name: str, split: Split) -> Split:
    institution, sequence = name.split("-")
    own = split.taken(split.labels == SITES.index(institution.upper()))
    if sequence == "t1":  # FLAIR stands in its place in every slice of a patient who has none
        own = own.taken((own.images[:, 0] != own.images[:, 1]).any(axis=(1, 2)))
    images = np.ascontiguousarray(own.images[:, SEQUENCES[sequence]][:, None])
    return Split(images, np.zeros_like(own.labels), groups=own.groups)


def _sequence_source(name: str) -> DataSource:
    institution, sequence = name.split("-")
    title = f"LGG MRI, {sequence.upper()} of institution {institution.upper()}"
    stand_in = f"phantom-brains-{STAND_IN[institution]}-{'t1' if sequence == 't1' else 't2'}"
    return DataSource(
        **slices(f"lgg-mri-{sequence}", f"lgg-mri-{name}", title, SIDE),
        sizes=dict(zip(("train", "test"), SLICES[name], strict=True)),
        files=files,
        load=lambda home: {
            part: _of_sequence(name, split) for part, split in load_slices(home).items()
        },
        stand_ins=(stand_in,),
        kind=SURROGATE,
    )


_SLICES = DataSource(
    **said("lgg-mri"),
    classes=len(SITES),
    shape=(3, SIDE, SIDE),
    sizes={"train": 1382, "test": 426},
    mean=(0.10, 0.09, 0.10),
    std=(0.13,) * 3,
    files=files,
    load=load_slices,
    stand_ins=("phantom-tumours",),
    annotations={"tumour": Annotation(SEGMENTS, 2, "1 where FLAIR is abnormal: the whole tumour")},
)
_VOLUMES = replace(
    _SLICES,
    **said("lgg-mri-volumes"),
    shape=(3, DEPTH, SMALL, SMALL),
    sizes={"train": 58, "test": 27},
    mean=(0.07,) * 3,
    std=(0.12,) * 3,
    load=_load_volumes,
    kind=SURROGATE,
    stand_ins=("phantom-volumes",),
)
SOURCES = [
    _SLICES,
    _VOLUMES,
    replace(
        _VOLUMES,
        **said("lgg-mri-volumes-public"),
        sizes={"train": 58, "test": 25},
        load=functools.partial(_load_volumes, public=True),
        stand_ins=("phantom-volumes-public",),
    ),
    *map(_sequence_source, SLICES),
]
