"""NIH ChestX-ray14 (Wang et al. 2017): 112,120 frontal chest films of 30,805 patients with fourteen
findings.

The layout is the official one: in the folder `nih_cxr` of the data home the table
`Data_Entry_2017.csv` (or `Data_Entry_2017_v2020.csv`), the films in `images` or, as the twelve
archives may be unpacked, in `images_001/images` to `images_012/images`, and the lists
`train_val_list.txt` and `test_list.txt`, which share no patient.

With fewer films, or without the lists, what is there is a sample, at 128 pixels: AP films, which
are taken of patients in bed, often by a mobile unit, are `nih-cxr14-sample-ap`, with CheXpert's
findings; all others, PA and those of no stated view, are `nih-cxr14-sample`. So two sites have
films that were acquired differently, and no film in common. The first of them is there with all
films too. Where the lists are not there, a third of the patients are the test split of both: those
for whom the SHA-256 of "0 " and the patient's number, as a whole number, is a multiple of 3. Of the
numbers 0, 1, 2, ... in the place of the 0 it is the first that leaves, in the 3,110 films that this
suite was built with, every finding that more than one patient of a site has in both its splits.
"""

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from fedtables.datasets import films
from fedtables.datasets.films import FULL
from fedtables.datasets.folders import (
    Spelling,
    in_part,
    inside,
    listed,
    read_table,
    reading,
    unrepeated,
)
from fedtables.datasets.source import FINDINGS, Annotation, DataError, DataSource, Split, said
from fedtables.datasets.sources.chexpert import NAMES as CHEXPERT_NAMES

FILMS = 112_120
NEARLY = 0.9
"""Share of all films from which a set counts as one with gaps, which is refused, rather than as a
sample."""
SMALL = 128
"""Pixels of the long side in samples: those of the sample that this suite was built with."""
_NAMES = """
atelectasis cardiomegaly effusion infiltration mass nodule pneumonia pneumothorax consolidation
edema emphysema fibrosis pleural-thickening hernia
"""
NAMES = tuple(_NAMES.split())
"""In the order of Table 1 of Wang et al. 2017 and of their later fourteen."""
IN_CHEXPERT = {
    name: {"pleural-effusion": "effusion"}.get(name, name)
    for name in CHEXPERT_NAMES
    if name in {*NAMES, "pleural-effusion"}
}
"""CheXpert's findings that NIH's films are labelled for, and what NIH calls them; beside
`no-finding`."""
SHARED = tuple(name for name in CHEXPERT_NAMES if name in {*IN_CHEXPERT, films.NO_FINDING})
"""Findings of CheXpert's that can be told of NIH's films, in CheXpert's order."""
TABLES = ("Data_Entry_2017.csv", "Data_Entry_2017_v2020.csv")
LISTS = {"train": "train_val_list.txt", "test": "test_list.txt"}
_COLUMNS = ("Image Index", "Finding Labels", "Patient ID")
_VIEW, AP = "View Position", "AP"


@dataclass(frozen=True)
class Film:
    """One row of the table."""

    path: Path
    patient: int
    findings: frozenset[str]
    """Those present, by the names of `NAMES`."""
    view: str = ""
    """PA or AP; empty where the table does not say."""


def _paths(home: Path) -> dict[str, Path]:
    """The films that are there, by file name in lower case."""
    folders = [
        home / "images",
        *(home / f"images_{number:03}" / "images" for number in range(1, 13)),
    ]
    return {path.name.lower(): path for folder in folders for path in listed(folder, ".png")}


def _table(home: Path) -> Path | None:
    return next(filter(None, (Spelling().find(home / name) for name in TABLES)), None)


def _lists(home: Path) -> dict[str, Path]:
    """The lists that are there, by split."""
    found = {split: Spelling().find(home / name) for split, name in LISTS.items()}
    return {split: path for split, path in found.items() if path}


@inside("nih_cxr")
def _folder(folder: Path) -> list[Path]:
    """The set's folder alone. Raises DataError for a table without films, and for films without a
    table.
    """
    lacks = "films in images" if _table(folder) else TABLES[0]
    if not _table(folder) or not _paths(folder):
        raise in_part(f"{folder} lacks {lacks}")
    return [folder]


def read_films_of(home: Path) -> list[Film]:
    """The films that are there and in the table, in its order.

    Raises DataError for a film that is named twice, for findings or patients that the official
    table does not have, and for films of which it names none.
    """
    table, there = _table(home), _paths(home)
    if table is None:
        return []
    rows = read_table(table, _COLUMNS)
    unrepeated(table, [row["Image Index"] for row in rows])
    known = [(row, there.get(row["Image Index"].lower())) for row in rows]
    records = [_film(table, row, path) for row, path in known if path]
    if not records:
        raise DataError(f"{table} names none of the films in {home}.")
    return records


def _film(table: Path, row: dict[str, str], path: Path) -> Film:
    labels, patient = row["Finding Labels"], row["Patient ID"]
    present = frozenset(map(films.slug, labels.split("|"))) - {films.NO_FINDING}
    if not present <= set(NAMES):
        raise DataError(f"{table}: {path.name} has findings other than the fourteen: {labels}.")
    if not patient.isdecimal():
        raise DataError(f"{table}: the patient of {path.name} is {patient!r}, which is no number.")
    return Film(path, int(patient), present, row.get(_VIEW) or "")


def of_test(patient: int) -> bool:
    """Whether a patient is in the test split where there are no official lists; see above."""
    return int(hashlib.sha256(f"0 {patient}".encode()).hexdigest(), 16) % 3 == 0


def divide(home: Path, records: list[Film]) -> dict[str, list[Film]]:
    """The films of each split, in order: by the official lists if both are there, else by patient.

    Raises DataError for a list without the other, for one that is no text, and for a film that is
    in neither or in both.
    """
    there = _lists(home)
    if not there:
        return {
            split: [film for film in records if of_test(film.patient) == (split == "test")]
            for split in LISTS
        }
    if len(there) < len(LISTS):
        raise DataError(
            f"{next(iter(there.values()))} is there without the other list; get both, or take it"
            " away."
        )
    names = {}
    for split, path in there.items():
        with reading(path, "a text"):
            names[split] = set(path.read_text(encoding="utf-8").lower().split())
    for film in records:
        if sum(film.path.name.lower() in of_split for of_split in names.values()) != 1:
            raise DataError(
                f"{film.path} is not in one of {' and '.join(LISTS.values())}, or is in both."
            )
    return {
        split: [film for film in records if film.path.name.lower() in of_split]
        for split, of_split in names.items()
    }


def _used(home: Path) -> list[Path]:
    """The table and the lists that are there."""
    table = _table(home)
    return [*([table] if table else []), *_lists(home).values()]


def _wanted(ap: bool | None, home: Path) -> list[Film]:
    """The AP films, or all others, if each split has some; all films for None. Of a complete set
    the others are no set of their own, and of a sample all are none.
    """
    records = read_films_of(home)
    complete = len(records) == FILMS and len(_used(home)) == 1 + len(LISTS)
    if ap is None:
        return records if complete else []
    own = [film for film in records if (film.view == AP) == ap and (ap or not complete)]
    return own if all(divide(home, own).values()) else []


def _files(ap: bool | None, home: Path) -> list[Path]:
    """The table, the lists and the films of a set. Raises DataError for nearly all films."""
    for folder in _folder(home):
        there = len(_paths(folder))
        if ap is None and NEARLY * FILMS <= there < FILMS:
            raise DataError(
                f"{folder} has {there:,} of {FILMS:,} films. Get the others, or leave few enough"
                " for a sample."
            )
        if records := _wanted(ap, folder):
            return [*_used(folder), *(film.path for film in records)]
    return []


def findings_of(records: list[Film]) -> np.ndarray:
    """Which of `NAMES` each film has, uint8 (n, 14)."""
    return np.array([[name in film.findings for name in NAMES] for film in records], np.uint8)


def as_chexpert(findings: np.ndarray) -> np.ndarray:
    """Findings uint8 (n, 14) of NIH's as those of CheXpert's that NIH's films are labelled for,
    `SHARED`; uint8 (n, SHARED).
    """
    columns = [
        (
            findings[:, NAMES.index(IN_CHEXPERT[name])]
            if name in IN_CHEXPERT
            else ~findings.any(axis=1)
        )
        for name in SHARED
    ]
    return np.stack(columns, axis=1).astype(np.uint8)


def _load(ap: bool | None, home: Path) -> dict[str, Split]:
    [folder] = _folder(home)
    splits: dict[str, Split] = {}
    side, most = (FULL, 0) if ap is None else (SMALL, SMALL)
    for split, records in divide(folder, _wanted(ap, folder)).items():
        findings = findings_of(records)
        splits[split] = Split(
            films.read_films([film.path for film in records], side, most),
            films.any_finding(findings, NAMES),
            {"findings": as_chexpert(findings) if ap else findings},
            groups=np.array([film.patient for film in records], np.int64),
        )
    return splits


_BY = "read from reports by a program (Wang et al. 2017)"
_ALL = DataSource(
    **said("nih-cxr14"),
    classes=2,
    shape=(1, FULL, FULL),
    sizes={"train": 86_524, "test": 25_596},
    mean=films.MEAN,
    std=films.STD,
    files=partial(_files, None),
    load=partial(_load, None),
    stand_ins=("nih-cxr14-sample", "phantom-films"),
    annotations={"findings": Annotation(FINDINGS, len(NAMES), _BY, NAMES)},
)
_SAMPLE = replace(
    _ALL,
    **said("nih-cxr14-sample"),
    shape=(1, SMALL, SMALL),
    sizes={"train": FILMS, "test": FILMS},
    up_to=True,
    files=partial(_files, False),
    load=partial(_load, False),
    stand_ins=("phantom-films",),
)
_SHARED = Annotation(FINDINGS, len(SHARED), "NIH's labels by CheXpert's names", SHARED)
SOURCES = [
    _ALL,
    _SAMPLE,
    replace(
        _SAMPLE,
        **said("nih-cxr14-sample-ap"),
        files=partial(_files, True),
        load=partial(_load, True),
        stand_ins=("phantom-films-shifted",),
        annotations={"findings": _SHARED},
    ),
]
