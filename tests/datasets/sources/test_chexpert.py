"""CheXpert: a small folder in its layout, with every value that its tables have."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from fedtables.datasets import catalogue
from fedtables.datasets.catalogue import check_annotations
from fedtables.datasets.films import FULL
from fedtables.datasets.source import DataError
from fedtables.datasets.sources import chexpert
from fedtables.datasets.sources.chexpert import COLUMNS, NAMES
from tests.datasets.promises import OF_FOLDERS, promised

SOURCE = chexpert.SOURCES[0]
TRAIN = {
    "train/patient00001/study1/view1_frontal.jpg": {"No Finding": "1.0"},
    "train/patient00002/study1/view1_frontal.jpg": {
        "Edema": "1.0",
        "Atelectasis": "-1.0",
        "Cardiomegaly": "0.0",
    },
    "train/patient00002/study1/view2_lateral.jpg": {"Support Devices": "1.0"},
    "train/patient00003/study2/view1_frontal.jpg": {"Pneumonia": "-1.0"},
}
VALID = {
    "valid/patient64541/study1/view1_frontal.jpg": (
        dict.fromkeys(COLUMNS, "0.0") | {"Lung Opacity": "1.0"}
    )
}


def write(home, folder="CheXpert-v1.0-small", train=TRAIN, valid=VALID):
    for table, rows in (("train.csv", train), ("valid.csv", valid)):
        lines = [",".join(("Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", *COLUMNS))]
        for index, (path, values) in enumerate(rows.items()):
            film = home / folder / path
            film.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((39, 32), 100 + index, np.uint8)).save(film)
            view = "Lateral," if "lateral" in path else "Frontal,AP"
            lines.append(
                ",".join(
                    (
                        f"{folder}/{path}",
                        "Female",
                        "68",
                        view,
                        *(values.get(column, "") for column in COLUMNS),
                    )
                )
            )
        (home / folder / table).write_text("\n".join([*lines, ""]))


def found(split):
    return [
        {name: value for name, value in zip(NAMES, row, strict=True) if value}
        for row in split.annotations["findings"].tolist()
    ]


@pytest.mark.parametrize("folder", ["CheXpert-v1.0", "CheXpert-v1.0-small"])
def test_frontal_and_lateral_films_are_read_with_blank_as_absent_and_minus_one_as_uncertain(
    tmp_path, folder
):
    write(tmp_path, folder)
    splits = SOURCE.load(tmp_path)
    assert found(splits["train"]) == [
        {"no-finding": 1},
        {"edema": 1, "atelectasis": 255},
        {"support-devices": 1},
        {"pneumonia": 255},
    ]
    assert splits["train"].labels.tolist() == [0, 1, 1, 0]
    assert splits["train"].groups.tolist() == [1, 2, 2, 3]
    assert found(splits["test"]) == [{"lung-opacity": 1}]
    assert splits["test"].groups.tolist() == [64541]
    for split in splits.values():
        check_annotations(SOURCE, split)
    image = splits["train"].images[0, 0]
    assert image.shape == (FULL, FULL)
    assert (image[:, round(32 * FULL / 39) :] == 128).all()  # a high film's filling
    assert abs(image[:, 0].astype(int) - 100).max() <= 2


def test_the_set_is_used_when_it_is_there_the_original_before_the_small_version(
    tmp_path, monkeypatch
):
    assert catalogue.resolve("chexpert", home=tmp_path).used == "phantom-films-shifted"
    write(tmp_path)
    write(tmp_path, "CheXpert-v1.0", train=dict(list(TRAIN.items())[:2]))
    data = catalogue.resolve("chexpert", home=tmp_path)
    assert (data.used, data.origin) == ("chexpert", "real")
    monkeypatch.setattr(
        catalogue, "source", lambda name: replace(SOURCE, sizes={"train": 2, "test": 1})
    )
    assert [len(split) for split in catalogue.load("chexpert", tmp_path).values()] == [2, 1]


def test_other_values_and_paths_are_refused(tmp_path):
    write(tmp_path, valid={"valid/patient00009/study1/view1_frontal.jpg": {"Edema": "2.0"}})
    with pytest.raises(
        DataError, match=r"valid\.csv has a value '2\.0', not 1\.0, 0\.0, -1\.0 or blank"
    ):
        SOURCE.load(tmp_path)
    write(tmp_path, valid={"valid/someone/study1/view1_frontal.jpg": {}})
    with pytest.raises(DataError, match=r"valid\.csv has paths without the folder of a patient"):
        SOURCE.load(tmp_path)


test_what_every_reader_promises = promised(OF_FOLDERS, [(SOURCE, write)])
