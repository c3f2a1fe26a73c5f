"""CheXpert (Irvin et al. 2019): 223,414 + 234 chest films, frontal and lateral, with fourteen
observations.

The layout is the official one: the folder `CheXpert-v1.0`, or else `CheXpert-v1.0-small`, in the
data home, with `train.csv` and `valid.csv` and the films where the tables' column `Path` says,
which begins with the folder's name. An observation is 1.0, 0.0, -1.0 (uncertain) or blank (not
mentioned), here 1, 0, 255 and 0. All films are read, as FedAD states in section 4.1.1; which of
them it tests on it does not say, and the test split is the official valid set, by assumption. The
original's films are larger than 512 pixels, the small version's 320 or 390, and both are brought to
512 as the reference does.
"""

import re
from pathlib import Path

import numpy as np

from fedtables.datasets import films
from fedtables.datasets.films import FULL
from fedtables.datasets.folders import all_of, inside, read_table, unrepeated
from fedtables.datasets.source import (
    FINDINGS,
    IGNORE,
    Annotation,
    DataError,
    DataSource,
    Split,
    said,
)

_COLUMNS = (
    "No Finding, Enlarged Cardiomediastinum, Cardiomegaly, Lung Opacity, Lung Lesion, Edema,"
    " Consolidation, Pneumonia, Atelectasis, Pneumothorax, Pleural Effusion, Pleural Other,"
    " Fracture, Support Devices"
)
COLUMNS = tuple(_COLUMNS.split(", "))
"""In the order of the tables."""
NAMES = tuple(films.slug(column) for column in COLUMNS)
FOLDERS = ("CheXpert-v1.0", "CheXpert-v1.0-small")
TABLES = {"train": "train.csv", "test": "valid.csv"}
VALUES = {"": 0, "0.0": 0, "1.0": 1, "-1.0": IGNORE}


def read(home: Path, table: str) -> tuple[list[Path], np.ndarray, np.ndarray]:
    """The films of a table of the folder `home`, in its order, their patients int64 (n,), of the
    folders' names, and findings uint8 (n, 14). Raises DataError for values or paths that are not
    the official ones.
    """
    rows = read_table(home / table, ("Path", *COLUMNS))
    try:
        findings = np.array([[VALUES[row[column]] for column in COLUMNS] for row in rows], np.uint8)
    except KeyError as error:
        raise DataError(
            f"{home / table} has a value {error.args[0]!r}, not 1.0, 0.0, -1.0 or blank."
        ) from error
    found = [re.search(r"/patient(\d+)/", row["Path"]) for row in rows]
    patients = np.array([int(patient[1]) for patient in found if patient], np.int64)
    if len(patients) < len(rows):
        raise DataError(f"{home / table} has paths without the folder of a patient.")
    unrepeated(home / table, [row["Path"] for row in rows])
    return [home / row["Path"].split("/", 1)[1] for row in rows], patients, findings


@inside(*FOLDERS)
def _files(folder: Path) -> list[Path]:
    """Both tables, and the films in their order. Raises DataError for some of them."""
    tables = [folder / table for table in TABLES.values()]
    paths = [path for table in TABLES.values() for path in read(folder, table)[0]]
    return all_of([path] for path in (*tables, *paths))


def _load(home: Path) -> dict[str, Split]:
    paths = _files(home)
    tables, rest = paths[: len(TABLES)], paths[len(TABLES) :]
    splits: dict[str, Split] = {}
    for split, table in zip(TABLES, tables, strict=True):
        _, patients, findings = read(table.parent, table.name)
        own, rest = rest[: len(patients)], rest[len(patients) :]
        splits[split] = Split(
            films.read_films(own, FULL),
            films.any_finding(findings, NAMES),
            {"findings": findings},
            groups=patients,
        )
    return splits


_BY = "read from reports by a program, in the test split by radiologists (Irvin et al. 2019)"
SOURCES = [
    DataSource(
        **said("chexpert"),
        classes=2,
        shape=(1, FULL, FULL),
        sizes={"train": 223_414, "test": 234},
        mean=films.MEAN,
        std=films.STD,
        files=_files,
        load=_load,
        stand_ins=("nih-cxr14-sample-ap", "phantom-films-shifted"),
        annotations={"findings": Annotation(FINDINGS, len(NAMES), _BY, NAMES)},
    )
]
