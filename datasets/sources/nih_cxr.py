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

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from datasets import films
from datasets.annotations import FINDINGS, AnnotatedSource, AnnotatedSplit, Annotation
from datasets.films import FULL
from datasets.folders import Spelling, in_part, listed, read_table, unrepeated, whole
from datasets.source import DataError, Split
from datasets.sources.chexpert import NAMES as CHEXPERT_NAMES

FILMS = 112_120
NEARLY = 0.9
"""Share of all films from which a set counts as one with gaps, which is refused, rather than as a
sample."""
SMALL = 128
"""Pixels of the long side in samples: those of the sample that this suite was built with."""
NAMES = (
    "atelectasis",
    "cardiomegaly",
    "effusion",
    "infiltration",
    "mass",
    "nodule",
    "pneumonia",
    "pneumothorax",
    "consolidation",
    "edema",
    "emphysema",
    "fibrosis",
    "pleural-thickening",
    "hernia",
)
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
_LICENCE = (
    "the NIH Clinical Center's terms: use is unrestricted, with a link to the download site, an"
    " acknowledgement of the NIH Clinical Center and a citation of Wang et al., CVPR 2017"
)
_HOW = (
    "Download Data_Entry_2017, train_val_list.txt, test_list.txt and the twelve archives of images"
    " from https://nihcc.app.box.com/v/ChestXray-NIHCC (no registration; batch_download_zips.py"
    " there fetches the archives), and unpack them in the folder nih_cxr of the data home."
)


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


def _folder(home: Path) -> Path | None:
    """The set's folder under the data home. Raises DataError for a table without films, and for
    films without a table.
    """

    def read(folder: Path) -> Path:
        lacks = "films in images" if _table(folder) else TABLES[0]
        if not _table(folder) or not _paths(folder):
            raise in_part(f"{folder} lacks {lacks}", _HOW)
        return folder

    return whole("NIH ChestX-ray14", home, ["nih_cxr"], read, _HOW)


def read_films_of(home: Path) -> list[Film]:
    """The films that are there and in the table, in its order.

    Raises DataError for a film that is named twice, for findings or patients that the official
    table does not have, and for films of which it names none.
    """
    table, there = _table(home), _paths(home)
    if table is None:
        return []
    records = []
    rows = read_table(table, _COLUMNS, _HOW)
    unrepeated(table, [row["Image Index"] for row in rows], _HOW)
    for row in rows:
        name = row["Image Index"]
        if name.lower() in there:
            present = frozenset(films.slug(label) for label in row["Finding Labels"].split("|")) - {
                films.NO_FINDING
            }
            if not present <= set(NAMES):
                raise DataError(
                    f"{table}: {name} has findings other than the fourteen:"
                    f" {row['Finding Labels']}. {_HOW}"
                )
            if not row["Patient ID"].isdecimal():
                raise DataError(
                    f"{table}: the patient of {name} is {row['Patient ID']!r}, which is no number."
                    f" {_HOW}"
                )
            view = row.get(_VIEW) or ""
            records.append(Film(there[name.lower()], int(row["Patient ID"]), present, view))
    if not records:
        raise DataError(f"{table} names none of the films in {home}. {_HOW}")
    return records


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
            f" away. {_HOW}"
        )
    try:
        listed_names = {
            split: set(path.read_text(encoding="utf-8").lower().split())
            for split, path in there.items()
        }
    except UnicodeDecodeError as error:
        raise DataError(
            f"{home}: {' or '.join(LISTS.values())} is no text ({error}). {_HOW}"
        ) from error
    for film in records:
        if sum(film.path.name.lower() in names for names in listed_names.values()) != 1:
            raise DataError(
                f"{film.path} is not in one of {' and '.join(LISTS.values())}, or is in both."
                f" {_HOW}"
            )
    return {
        split: [film for film in records if film.path.name.lower() in names]
        for split, names in listed_names.items()
    }


def _used(home: Path) -> list[Path]:
    """The table and the lists that are there."""
    table = _table(home)
    return [*([table] if table else []), *_lists(home).values()]


def _complete(home: Path, records: list[Film]) -> bool:
    return len(records) == FILMS and len(_used(home)) == 1 + len(LISTS)


def _files(home: Path) -> list[Path]:
    folder = _folder(home)
    return _all_files(folder) if folder else []


def _all_files(home: Path) -> list[Path]:
    # Counting names is quicker than reading the table, and a table may well name films that are not
    # there.
    there = len(_paths(home))
    if NEARLY * FILMS <= there < FILMS:
        raise DataError(
            f"{home} has {there:,} of {FILMS:,} films. Get the others, or leave few enough for a"
            f" sample. {_HOW}"
        )
    records = read_films_of(home) if there >= FILMS else []
    return [*_used(home), *(film.path for film in records)] if _complete(home, records) else []


def _site(records: list[Film], ap: bool) -> list[Film]:
    """The AP films, or all others."""
    return [film for film in records if (film.view == AP) == ap]


def _site_files(home: Path, ap: bool) -> list[Path]:
    """The table, the lists and a site's films; none if the set is complete, for the first site, or
    if a split has no film.
    """
    folder = _folder(home)
    if folder is None:
        return []
    films_there = read_films_of(folder)
    records = _site(films_there, ap)
    if (not ap and _complete(folder, films_there)) or not all(divide(folder, records).values()):
        return []
    return [*_used(folder), *(film.path for film in records)]


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


def _load(home: Path, ap: bool | None = None) -> dict[str, Split]:
    """The splits of all films, or of a sample's AP films or its others."""
    home = _folder(home) or home
    splits: dict[str, Split] = {}
    films_there = read_films_of(home)
    side, most = (FULL, 0) if ap is None else (SMALL, SMALL)
    records_of = divide(home, films_there if ap is None else _site(films_there, ap))
    for split, records in records_of.items():
        images = films.read_films([film.path for film in records], side, most)
        findings = findings_of(records)
        patients = np.array([film.patient for film in records], np.int64)
        stated = as_chexpert(findings) if ap else findings
        splits[split] = AnnotatedSplit(
            images, films.any_finding(findings, NAMES), {"findings": stated}, groups=patients
        )
    return splits


_FINDINGS = {
    "findings": Annotation(
        FINDINGS, len(NAMES), "read from reports by a program (Wang et al. 2017)", NAMES
    )
}
_CANNOT = [name for name in CHEXPERT_NAMES if name not in SHARED]

SOURCES = [
    AnnotatedSource(
        name="nih-cxr14",
        title="NIH ChestX-ray14",
        classes=2,
        shape=(1, FULL, FULL),
        sizes={"train": 86_524, "test": 25_596},
        mean=films.MEAN,
        std=films.STD,
        licence=_LICENCE,
        how_to_get=_HOW,
        files=_files,
        load=_load,
        stand_ins=("nih-cxr14-sample", "phantom-films"),
        note=(
            f"the official split by patient; {FILMS:,} films of {FULL} x {FULL} bytes are 29 GB of"
            " memory"
        ),
        annotations=_FINDINGS,
    ),
    AnnotatedSource(
        name="nih-cxr14-sample",
        title="NIH ChestX-ray14, a sample",
        classes=2,
        shape=(1, SMALL, SMALL),
        sizes={"train": FILMS, "test": FILMS},
        up_to=True,
        mean=films.MEAN,
        std=films.STD,
        licence=_LICENCE,
        how_to_get=_HOW,
        files=lambda home: _site_files(home, ap=False),
        load=lambda home: _load(home, ap=False),
        stand_ins=("phantom-films",),
        note=(
            "real films of NIH ChestX-ray14 and their labels, but only those that are here and are"
            f" not AP, at {SMALL} x {SMALL} pixels and, without the official lists, in a split by"
            " patient of this suite's own; not a random part of the set"
        ),
        annotations=_FINDINGS,
    ),
    AnnotatedSource(
        name="nih-cxr14-sample-ap",
        title="NIH ChestX-ray14, AP films",
        classes=2,
        shape=(1, SMALL, SMALL),
        sizes={"train": FILMS, "test": FILMS},
        up_to=True,
        mean=films.MEAN,
        std=films.STD,
        licence=_LICENCE,
        how_to_get=_HOW,
        files=lambda home: _site_files(home, ap=True),
        load=lambda home: _load(home, ap=True),
        stand_ins=("phantom-films-shifted",),
        note=(
            "real films of NIH ChestX-ray14 that were taken from front to back, of patients in bed,"
            f" at {SMALL} x {SMALL} pixels; a site of one hospital with another acquisition than"
            " its PA films. CheXpert's"
            f" {', '.join(_CANNOT)} are unknown for all of them, and what is 'not mentioned' is"
            " NIH's"
        ),
        annotations={
            "findings": Annotation(
                FINDINGS, len(SHARED), "NIH's labels by CheXpert's names", SHARED
            )
        },
    ),
]
