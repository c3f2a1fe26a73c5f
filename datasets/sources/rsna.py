"""RSNA Pneumonia Detection Challenge (2018): 26,684 frontal chest films as DICOM files, each with
or without pneumonia.

The layout is that of the competition's archive: in the folder `rsna_pneumonia`, or
`rsna-pneumonia-detection-challenge` as the archive is called,
`stage_2_train_images/{patientId}.dcm` and `stage_2_train_labels.csv` with the columns patientId, x,
y, width, height and Target, a row for every box and so several for some films. The class is the
target; there is no test split, for the competition's own has no labels. FedAD's public set, of
which it uses no labels (section 4.1.1).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from datasets import films
from datasets.annotations import AnnotatedSource, AnnotatedSplit
from datasets.films import FULL
from datasets.folders import all_of, read_table, whole
from datasets.source import DataError, Split

FOLDERS = ("rsna_pneumonia", "rsna-pneumonia-detection-challenge")
TABLE, IMAGES = "stage_2_train_labels.csv", "stage_2_train_images"
_HOW = (
    "Accept the competition's rules at https://www.kaggle.com/c/rsna-pneumonia-detection-challenge,"
    " run `kaggle competitions download -c rsna-pneumonia-detection-challenge`, and unpack it into"
    " the folder rsna_pneumonia of the data home; reading DICOM files needs pydicom: python -m pip"
    " install 'pydicom>=3.0'."
)


def read_targets(table: Path) -> dict[str, int]:
    """1 or 0 by patientId, in the order of the table. Raises DataError for other targets, or two of
    one film.
    """
    targets: dict[str, int] = {}
    for row in read_table(table, ("patientId", "Target"), _HOW):
        name, target = row["patientId"], row["Target"]
        if target not in ("0", "1") or targets.get(name, int(target)) != int(target):
            raise DataError(f"{table}: the targets of {name} are not all 0 or all 1. {_HOW}")
        targets[name] = int(target)
    return targets


def _files(home: Path) -> list[Path]:
    """The table, and the films in its order, or none. Raises DataError for some of them."""

    def read(folder: Path) -> list[Path]:
        names = read_targets(folder / TABLE)
        paths = ([folder / IMAGES / f"{name}.dcm"] for name in names)
        return all_of("RSNA Pneumonia", [[folder / TABLE], *paths], _HOW)

    return whole("RSNA Pneumonia", home, FOLDERS, read, _HOW) or []


def _load(home: Path) -> dict[str, Split]:
    table, *paths = _files(home)
    labels = np.array([*read_targets(table).values()], np.int64)
    # The names are the competition's, one for every film: whoever has two films cannot be told.
    return {
        "train": AnnotatedSplit(
            films.read_films(paths, FULL), labels, groups=np.arange(len(labels))
        )
    }


SOURCES = [
    AnnotatedSource(
        name="rsna-pneumonia",
        title="RSNA Pneumonia",
        classes=2,
        shape=(1, FULL, FULL),
        sizes={"train": 26_684},
        mean=films.MEAN,
        std=films.STD,
        licence=(
            "RSNA's terms of use: any purpose, with its attribution; the films are the NIH Clinical"
            " Center's"
        ),
        how_to_get=_HOW,
        files=_files,
        load=_load,
        stand_ins=("pneumoniamnist", "phantom-films-public"),
        note=(
            "its films were taken from NIH ChestX-ray14: with clients of that set, films that they"
            " hold, or that they are tested on, may be in the public set too; 26,684 films of"
            f" {FULL} x {FULL} bytes are 7 GB of memory"
        ),
    )
]
