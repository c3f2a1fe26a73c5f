"""RSNA Pneumonia Detection Challenge (2018): 26,684 frontal chest films as DICOM files, each with
or without pneumonia.

The layout is that of the competition's archive: in the folder `rsna_pneumonia`, or
`rsna-pneumonia-detection-challenge` as the archive is called,
`stage_2_train_images/{patientId}.dcm` and `stage_2_train_labels.csv` with the columns patientId, x,
y, width, height and Target, a row for every box and so several for some films. The class is the
target; there is no test split, for the competition's own has no labels. FedAD's public set, of
which it uses no labels (section 4.1.1).

PneumoniaMNIST (`medmnist.py`) stands in for it: 5,856 chest films of children at 28 x 28 pixels.
"""

from pathlib import Path

import numpy as np

from fedtables.datasets import films
from fedtables.datasets.films import FULL
from fedtables.datasets.folders import all_of, inside, read_table
from fedtables.datasets.source import DataError, DataSource, Split, said

FOLDERS = ("rsna_pneumonia", "rsna-pneumonia-detection-challenge")
TABLE, IMAGES = "stage_2_train_labels.csv", "stage_2_train_images"


def read_targets(table: Path) -> dict[str, int]:
    """1 or 0 by patientId, in the order of the table. Raises DataError for other targets, or two of
    one film.
    """
    targets: dict[str, int] = {}
    for row in read_table(table, ("patientId", "Target")):
        name, target = row["patientId"], row["Target"]
        if target not in ("0", "1") or targets.get(name, int(target)) != int(target):
            raise DataError(f"{table}: the targets of {name} are not all 0 or all 1.")
        targets[name] = int(target)
    return targets


@inside(*FOLDERS)
def _files(folder: Path) -> list[Path]:
    """The table, and the films in its order. Raises DataError for some of them."""
    paths = ([folder / IMAGES / f"{name}.dcm"] for name in read_targets(folder / TABLE))
    return all_of([[folder / TABLE], *paths])


def _load(home: Path) -> dict[str, Split]:
    table, *paths = _files(home)
    labels = np.array([*read_targets(table).values()], np.int64)
    # The names are the competition's, one for every film: whoever has two films cannot be told.
    return {"train": Split(films.read_films(paths, FULL), labels, groups=np.arange(len(labels)))}


SOURCES = [
    DataSource(
        **said("rsna-pneumonia"),
        classes=2,
        shape=(1, FULL, FULL),
        sizes={"train": 26_684},
        mean=films.MEAN,
        std=films.STD,
        files=_files,
        load=_load,
        stand_ins=("pneumoniamnist", "phantom-films-public"),
    ),
]
