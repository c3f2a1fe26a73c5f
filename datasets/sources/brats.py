"""BraTS (Menze et al. 2015; Bakas et al. 2018): MRI of gliomas in four modalities, of 240 x 240 x
155 voxels of 1 mm, registered and without the skull, with the tumour in three parts.

The layouts are the official ones, in the data home. Of 2018: `MICCAI_BraTS_2018_Data_Training` with
210 folders `HGG/CASE` and 75 `LGG/CASE`, each with `CASE_t1`, `_t1ce`, `_t2`, `_flair` and `_seg`,
`.nii.gz` or `.nii`. Of 2020: `MICCAI_BraTS2020_TrainingData` with 369 cases and `name_mapping.csv`,
and `MICCAI_BraTS2020_ValidationData` with 125 cases without segmentation and, where it is there,
`name_mapping_validation_data.csv`.

The class of a case is the institution that its name, or in 2020 its name of an earlier year, begins
with (`INSTITUTIONS`): 2013, CBICA and the several of TCIA, which is the natural reading of three
clients "according to the originating institution" (FedAD, Gong et al.). Its group is its place
among the names of all cases.

`brats2018` has volumes uint8 (4, 155, 240, 240), a quarter of what float32 would take, of whole
numbers: each modality is scaled so that 255 is what 0.1 % of its voxels other than 0 exceed, and
what exceeds it is cut off; normalising to mean 0 and deviation 1 afterwards gives what it gives
without that, to within a 255th of the range. 10 GB of memory. The test split is the 43 cases of
`TESTED`, the validation list of the example of Li et al. (2019) in NVFlare, whose 242 and 43 FedAD
states. `brats2020` is scaled alike; its test split is the validation data, whose voxels are all
unlabelled (255).

`brats2018-slices` is what FedIOD and AsynDGAN (Chang et al. 2020) take: axial T2 slices of the 210
HGG cases with at least ten voxels of tumour, each scaled so that its maximum is 255 and three times
the same as channels, with the whole tumour; the first 40 cases by name are the test split, as in
the released code. The paper states 11,057 and 2,616 slices.

`brats2020-t1` and `-t2` are a site of FL-MRCM's and FedAD's reconstruction: the 369 training cases
train and the 125 validation cases are tested, which need no segmentation here; of the 155 axial
slices of each, numbers 14 to 133 (FL-MRCM's code keeps 14 to 134).
"""

import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from fedtables.datasets.folders import (
    all_of,
    beside,
    in_part,
    inside,
    listed,
    read_table,
    unrepeated,
    whole,
)
from fedtables.datasets.mri import read_volume, slices, splits_of
from fedtables.datasets.source import (
    IGNORE,
    SEGMENTS,
    Annotation,
    DataError,
    DataSource,
    Split,
    said,
    whole_numbers,
)

INSTITUTIONS = ("2013", "CBICA", "TCIA", "other")
"""By class."""
MODALITIES = ("t1", "t1ce", "t2", "flair")
"""By channel."""
SIDES = (155, 240, 240)
CASES = {"HGG": 210, "LGG": 75}
"""Cases of 2018 by grade."""
CASES_2020 = {"train": 369, "test": 125}
SLICES_TESTED = 40
LEAST = 10
"""Voxels of tumour that a slice must have."""
_TESTED = Path(__file__).with_suffix(".txt").read_text()
TESTED = tuple(f"Brats18_{name}_1" for name in _TESTED.split())
"""Cases of the test split of `brats2018`."""
FOLDER = "MICCAI_BraTS_2018_Data_Training"
FOLDERS_2020 = {
    "train": ("MICCAI_BraTS2020_TrainingData", "name_mapping.csv"),
    "test": ("MICCAI_BraTS2020_ValidationData", "name_mapping_validation_data.csv"),
}
SHOWN = slice(14, 134)
"""Axial slices of 2020 that are taken for reconstruction."""
LABELLED = (*MODALITIES, "seg")


def _cases(folder: Path, counts: Mapping[str, int]) -> list[Path]:
    """The folders of all cases in these folders of a set, by name. Raises DataError for another
    number.
    """
    found = []
    for part, count in counts.items():
        cases = [path for path in listed(folder / part) if path.name.lower().startswith("brats")]
        cases = [path for path in cases if path.is_dir()]
        if len(cases) != count:
            raise in_part(f"{folder / part} has {len(cases)} of {count} cases")
        found += cases
    return sorted(found, key=lambda case: case.name)


def _scans(cases: Sequence[Path], parts: Sequence[str]) -> list[list[Path]]:
    """The files of cases, each under its usual names."""
    return [
        [case / f"{case.name}_{part}{ending}" for ending in (".nii.gz", ".nii")]
        for case in cases
        for part in parts
    ]


def _by_case(paths: Sequence[Path], parts: int) -> list[Sequence[Path]]:
    """The files of each case, of which each has as many parts."""
    return [paths[start : start + parts] for start in range(0, len(paths), parts)]


@inside(FOLDER)
def _files_2018(folder: Path) -> list[Path]:
    """The files of all cases by name. Raises DataError for some of them."""
    return all_of(_scans(_cases(folder, CASES), LABELLED))


@inside(FOLDER)
def _files_high(folder: Path) -> list[Path]:
    """T2 and tumour of all cases of high grade. Raises DataError for some of them."""
    return all_of(_scans(_cases(folder, {"HGG": CASES["HGG"]}), ("t2", "seg")))


# -- what a file holds --


def of_full_size(path: Path, volume: np.ndarray) -> np.ndarray:
    """The volume of a file. Raises DataError for other sides than 155 x 240 x 240."""
    if volume.shape != SIDES:
        raise DataError(
            f"{path} has {' x '.join(map(str, volume.shape))} voxels, expected"
            f" {' x '.join(map(str, SIDES))}. Get it again."
        )
    return volume


def _volume(path: Path) -> np.ndarray:
    """Whole numbers (155, 240, 240). Raises DataError for other sides, and for larger ones than of
    16 bits.
    """
    volume = of_full_size(path, whole_numbers(read_volume(path), path))
    if abs(volume).max() > 65_535:
        raise DataError(f"{path} has values beyond 16 bits. Get it again.")
    return volume


def _parts(path: Path) -> np.ndarray:
    """Labels uint8 of 0, 1, 2 and 4. Raises DataError for others."""
    labels = _volume(path)
    if not np.isin(labels, (0, 1, 2, 4)).all():
        raise DataError(f"{path} has labels other than 0, 1, 2 and 4. Get it again.")
    return labels.astype(np.uint8)


def scaled(values: np.ndarray, top: int) -> np.ndarray:
    """Whole numbers as uint8, rounded: 0 and less is 0, `top` and more is 255."""
    if top <= 0:
        return np.zeros(values.shape, np.uint8)
    return ((values.clip(0, top) * 510 + top) // (2 * top)).astype(np.uint8)


def as_bytes(volume: np.ndarray) -> np.ndarray:
    """A modality as uint8, 255 for the value that at most 0.1 % of the voxels above 0 exceed."""
    counts = np.bincount(volume[volume > 0])
    below = np.cumsum(counts)
    top = int(np.searchsorted(below, 0.999 * below[-1])) if len(counts) else 0
    return scaled(volume, top)


def institution(name: str) -> int:
    """Class of a case by its name, such as `Brats18_TCIA02_491_1`."""
    word = name.split("_")[1] if "_" in name else ""
    return next(
        (number for number, start in enumerate(INSTITUTIONS) if word.startswith(start)),
        len(INSTITUTIONS) - 1,
    )


def _read(cases: Sequence[Sequence[Path]], labels: Sequence[int], groups: Sequence[int]) -> Split:
    """Volumes of the files of each case: the modalities and, where it is labelled, the tumour."""
    images = np.empty((len(cases), len(MODALITIES), *SIDES), np.uint8)  # filled in place: large
    parts = np.full((len(cases), *SIDES), IGNORE, np.uint8)

    def read(index: int) -> None:
        for channel, path in enumerate(cases[index][: len(MODALITIES)]):
            images[index, channel] = as_bytes(_volume(path))
        for path in cases[index][len(MODALITIES) :]:
            parts[index] = _parts(path)

    with ThreadPoolExecutor(4) as pool:  # each holds a volume of whole numbers
        list(pool.map(read, range(len(cases))))
    return Split(
        images, np.array(labels, np.int64), {"tumour": parts}, groups=np.array(groups, np.int64)
    )


def _load(home: Path) -> dict[str, Split]:
    cases = _by_case(_files_2018(home), len(LABELLED))
    names = [scan.parent.name for scan, *_ in cases]
    unknown = set(TESTED) - set(names)
    if unknown:
        raise DataError(f"{home / FOLDER} lacks the case {min(unknown)}.")
    splits = {}
    for split in ("train", "test"):
        rows = [row for row, name in enumerate(names) if (name in TESTED) == (split == "test")]
        splits[split] = _read(
            [cases[row] for row in rows], [institution(names[row]) for row in rows], rows
        )
    return splits


def slices_of(scan: Path, parts: Path) -> tuple[np.ndarray, np.ndarray]:
    """T2 slices uint8 (n, 240, 240) with enough of a tumour, and their masks of it."""
    t2, tumour = _volume(scan), _parts(parts) > 0
    shown = np.flatnonzero(tumour.sum(axis=(1, 2)) >= LEAST)
    slices = [scaled(t2[row], int(t2[row].max())) for row in shown]
    return np.array(slices, np.uint8).reshape(-1, *SIDES[1:]), tumour[shown].astype(np.uint8)


def _load_slices(home: Path) -> dict[str, Split]:
    cases = _by_case(_files_high(home), 2)
    with ThreadPoolExecutor(4) as pool:
        shown, masks = zip(*pool.map(lambda case: slices_of(*case), cases), strict=True)
    groups = np.repeat(np.arange(len(cases)), [*map(len, shown)])
    every = Split(
        np.concatenate(shown)[:, None].repeat(3, axis=1),
        np.array([institution(scan.parent.name) for scan, _ in cases], np.int64)[groups],
        {"tumour": np.concatenate(masks)},
        groups=groups,
    )
    return every.divided(groups < SLICES_TESTED)


# -- 2020 --


def _of_2020(home: Path, parts: Sequence[str]) -> dict[str, list[Path]]:
    """The files of these parts of all cases, by split, or none; with `seg`, which the test cases
    lack, after a split's table, which those may lack too. Raises DataError for some of the files.
    """

    def read(folder: Path) -> dict[str, list[Path]]:
        wanted: dict[str, list[list[Path]]] = {}
        for split, (name, _) in FOLDERS_2020.items():
            cases = _cases(beside(home, folder, name), {"": CASES_2020[split]})
            own = [part for part in parts if split == "train" or part != "seg"]
            tables = [cases[0].with_name(FOLDERS_2020[split][1])] if "seg" in parts else []
            needed = [table for table in tables if split == "train" or table.is_file()]
            wanted[split] = [*([table] for table in needed), *_scans(cases, own)]
        paths = all_of(itertools.chain(*wanted.values()))
        first = len(wanted["train"])
        return {"train": paths[:first], "test": paths[first:]} if paths else {}

    return whole(home, [name for name, _ in FOLDERS_2020.values()], read) or {}


def _files_2020(parts: Sequence[str], home: Path) -> list[Path]:
    return [*itertools.chain(*_of_2020(home, parts).values())]


def _earlier_names(table: Path) -> dict[str, str]:
    """The name that each case of 2020 had in 2019, 2018 or 2017, where it had one. Raises DataError
    for a table that names a case twice.
    """
    own = "BraTS_2020_subject_ID"
    known = {}
    rows = read_table(table, (own,))
    unrepeated(table, [row[own] for row in rows])
    for row in rows:
        years = (row.get(f"BraTS_{year}_subject_ID") or "NA" for year in (2019, 2018, 2017))
        known[row[own]] = next((name for name in years if name != "NA"), "")
    return known


def _load_2020(home: Path) -> dict[str, Split]:
    splits: dict[str, Split] = {}
    first = 0
    for split, paths in _of_2020(home, LABELLED).items():
        tables = [path for path in paths if path.suffix.lower() == ".csv"]
        parts = len(LABELLED) if split == "train" else len(MODALITIES)
        cases = _by_case(paths[len(tables) :], parts)
        names = [scan.parent.name for scan, *_ in cases]
        earlier = _earlier_names(tables[0]) if tables else {}
        unnamed = [name for name in names if tables and name not in earlier]
        if unnamed:
            raise DataError(f"{tables[0]} does not name {unnamed[0]}.")
        labels = [institution(earlier.get(name, "")) for name in names]
        splits[split] = _read(cases, labels, range(first, first + len(cases)))
        first += len(cases)
    return splits


# -- slices of one sequence of 2020 --


def middle_slices(path: Path) -> np.ndarray:
    """The middle axial slices (120, 240, 240) of a case. Raises DataError for other sides."""
    return of_full_size(path, read_volume(path))[SHOWN]


def _of_sequence(modality: str) -> DataSource:
    name = f"brats2020-{modality}"
    return DataSource(
        **slices("brats2020-of-one-sequence", name, f"BraTS 2020, {modality.upper()} slices"),
        sizes={split: count * (SHOWN.stop - SHOWN.start) for split, count in CASES_2020.items()},
        files=partial(_files_2020, (modality,)),
        load=lambda home: splits_of(_of_2020(home, (modality,)), middle_slices),
        stand_ins=(
            f"lgg-mri-du-{'t1' if modality == 't1' else 'flair'}",
            f"phantom-brains-b-{modality}",
        ),
    )


_PARTS = {
    "tumour": Annotation(SEGMENTS, 5, "1 necrosis, 2 oedema, 4 enhancing tumour; no voxel has 3")
}
_2018 = DataSource(
    **said("brats2018"),
    classes=len(INSTITUTIONS),
    shape=(len(MODALITIES), *SIDES),
    sizes={"train": sum(CASES.values()) - len(TESTED), "test": len(TESTED)},
    mean=(0.5,) * len(MODALITIES),
    std=(0.5,) * len(MODALITIES),
    files=_files_2018,
    load=_load,
    stand_ins=("lgg-mri-volumes", "phantom-volumes"),
    annotations=_PARTS,
)

SOURCES = [
    _2018,
    replace(
        _2018,
        **said("brats2018-slices"),
        shape=(3, *SIDES[1:]),
        sizes={"train": 11_057, "test": 2_616},
        mean=(0.5,) * 3,
        std=(0.5,) * 3,
        files=_files_high,
        load=_load_slices,
        about=True,
        stand_ins=("lgg-mri", "phantom-tumours"),
        annotations={"tumour": Annotation(SEGMENTS, 2, "1 for the whole tumour")},
    ),
    replace(
        _2018,
        **said("brats2020"),
        sizes=dict(CASES_2020),
        files=partial(_files_2020, LABELLED),
        load=_load_2020,
        stand_ins=("lgg-mri-volumes-public", "phantom-volumes-public"),
    ),
    *map(_of_sequence, ("t1", "t2")),
]
