"""NIH ChestX-ray14: a small folder in each of its layouts, whole, in part, and as a second site."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from fedtables.datasets import catalogue
from fedtables.datasets.catalogue import check_annotations
from fedtables.datasets.films import FULL
from fedtables.datasets.source import DataError
from fedtables.datasets.sources import nih_cxr
from fedtables.datasets.sources.nih_cxr import NAMES, SHARED, SMALL, as_chexpert, of_test

WHOLE, SAMPLE, SECOND = nih_cxr.SOURCES
HEADER = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],"
)
ROWS = {
    "00000001_000.png": ("Cardiomegaly|Emphysema", 1),
    "00000001_001.png": ("No Finding", 1),
    "00000002_000.png": ("Pleural_Thickening", 2),
    "00000003_000.png": ("Hernia", 3),
    "00000004_000.png": ("No Finding", 4),
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(nih_cxr, "FILMS", len(ROWS))


def folder(home):
    (home / "nih_cxr").mkdir(exist_ok=True)
    return home / "nih_cxr"


def write_table(home, rows=ROWS, name="Data_Entry_2017.csv", view=lambda film: "PA"):
    lines = [
        f"{film},{labels},0,{patient},058,M,{view(film)},2682,2749,0.143,0.143,"
        for film, (labels, patient) in rows.items()
    ]
    (folder(home) / name).write_text("\n".join([HEADER, *lines, ""]))


def write_lists(home, test=("00000003_000.png",)):
    (folder(home) / "train_val_list.txt").write_text(
        "\n".join(name for name in ROWS if name not in test)
    )
    (folder(home) / "test_list.txt").write_text("\n".join(test))


def write_films(home, names=tuple(ROWS), where="images", size=(6, 4)):
    (folder(home) / where).mkdir(parents=True, exist_ok=True)
    for index, name in enumerate(names):
        pixels = np.full(size[::-1], 50, np.uint8)
        pixels[:, index:] = 90
        Image.fromarray(pixels).save(folder(home) / where / name)


def write_official(home):
    write_table(home)
    write_lists(home)
    write_films(home)


def test_films_findings_and_patients_are_read_in_the_official_split(tmp_path):
    write_official(tmp_path)
    splits = WHOLE.load(tmp_path)
    train, test = splits["train"], splits["test"]
    assert train.images.shape == (4, 1, FULL, FULL)
    assert train.labels.tolist() == [1, 0, 1, 0]
    assert train.groups.tolist() == [1, 1, 2, 4]
    found = [
        {name for name, value in zip(NAMES, row, strict=True) if value}
        for row in train.annotations["findings"]
    ]
    assert found == [{"cardiomegaly", "emphysema"}, set(), {"pleural-thickening"}, set()]
    assert test.annotations["findings"].tolist() == [[0] * 13 + [1]]
    for split in splits.values():
        check_annotations(WHOLE, split)
    assert (train.images[0, 0, -1] == 128).all()  # a wide film's filling


def test_the_set_is_used_when_all_films_are_there(tmp_path, monkeypatch):
    write_official(tmp_path)
    data = catalogue.resolve("nih-cxr14", home=tmp_path)
    assert (data.used, data.origin) == ("nih-cxr14", "real")
    assert not catalogue.is_present("nih-cxr14-sample", tmp_path)
    with pytest.raises(DataError, match="not the official ones"):
        catalogue.load("nih-cxr14", tmp_path)
    monkeypatch.setattr(
        catalogue, "source", lambda name: replace(WHOLE, sizes={"train": 4, "test": 1})
    )
    assert {name: len(split) for name, split in catalogue.load("nih-cxr14", tmp_path).items()} == {
        "train": 4,
        "test": 1,
    }
    assert len(WHOLE.files(tmp_path)) == 5 + 3


def test_films_may_lie_in_the_folders_of_the_twelve_archives(tmp_path):
    write_table(tmp_path, name="Data_Entry_2017_v2020.csv")
    write_lists(tmp_path)
    names = list(ROWS)
    write_films(tmp_path, names[:2], "images_001/images")
    write_films(tmp_path, names[2:], "images_012/images")
    assert [len(split) for split in WHOLE.load(tmp_path).values()] == [4, 1]
    assert catalogue.is_present("nih-cxr14", tmp_path)


def test_a_patient_that_is_no_number_is_refused(tmp_path):
    write_official(tmp_path)
    write_table(tmp_path, {**ROWS, "00000004_000.png": ("No Finding", "four")})
    with pytest.raises(DataError, match=r"the patient of 00000004_000\.png is 'four'"):
        WHOLE.files(tmp_path)


def test_a_list_without_the_other_or_that_is_no_text_is_refused(tmp_path):
    write_official(tmp_path)
    (tmp_path / "nih_cxr" / "train_val_list.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"train_val_list\.txt is not a text"):
        WHOLE.load(tmp_path)
    (tmp_path / "nih_cxr" / "train_val_list.txt").unlink()
    with pytest.raises(DataError, match=r"test_list\.txt is there without the other list"):
        SAMPLE.files(tmp_path)


def test_a_set_with_few_gaps_is_no_sample(tmp_path, monkeypatch):
    write_official(tmp_path)
    (tmp_path / "nih_cxr" / "images" / "00000004_000.png").unlink()
    monkeypatch.setattr(nih_cxr, "NEARLY", 0.8)
    with pytest.raises(DataError, match="has 4 of 5 films"):
        WHOLE.files(tmp_path)


def test_a_film_in_both_lists_or_in_none_is_refused(tmp_path):
    write_official(tmp_path)
    (tmp_path / "nih_cxr" / "test_list.txt").write_text("00000003_000.png\n00000004_000.png\n")
    with pytest.raises(
        DataError,
        match=(
            r"00000004_000\.png is not in one of train_val_list\.txt and test_list\.txt, or is in"
            r" both"
        ),
    ):
        WHOLE.load(tmp_path)
    (tmp_path / "nih_cxr" / "train_val_list.txt").write_text("00000001_000.png\n")
    with pytest.raises(DataError, match=r"00000001_001\.png is not in one of"):
        WHOLE.load(tmp_path)


def test_a_finding_beyond_the_fourteen_is_refused(tmp_path):
    write_official(tmp_path)
    write_table(tmp_path, {**ROWS, "00000004_000.png": ("Fracture", 4)})
    with pytest.raises(DataError, match="findings other than the fourteen: Fracture"):
        WHOLE.load(tmp_path)


# -- a sample --


def many(patients=30, films=2):
    return {
        f"{p:08}_{f:03}.png": ("Mass" if p % 2 else "No Finding", p)
        for p in range(patients)
        for f in range(films)
    }


@pytest.fixture
def sample(tmp_path):
    write_table(tmp_path, {**many(), "00000099_000.png": ("Mass", 99)})
    write_films(tmp_path, many(), size=(2 * SMALL, 2 * SMALL))
    return tmp_path


def test_without_all_films_what_is_there_stands_in_and_says_so(sample):
    data = catalogue.resolve("nih-cxr14", home=sample)
    assert (data.used, data.origin) == ("nih-cxr14-sample", "surrogate")
    assert data.label == "nih-cxr14 stand-in: NIH ChestX-ray14, a sample (surrogate)"
    assert "only those that are here" in data.note
    assert catalogue.resolve("nih-cxr14", embedded=True, home=sample).used == "phantom-films"


def test_no_patient_is_in_two_splits_and_about_a_third_is_in_the_test_split(sample):
    splits = catalogue.load("nih-cxr14-sample", sample)
    train, test = (set(splits[name].groups.tolist()) for name in ("train", "test"))
    assert train | test == set(range(30))
    assert not train & test
    assert test == {patient for patient in range(30) if of_test(patient)}
    assert [len(split) for split in splits.values()] == [2 * len(train), 2 * len(test)]
    assert splits["train"].images.shape[1:] == (1, SMALL, SMALL)


def test_a_sample_with_both_official_lists_is_split_by_them(tmp_path):
    write_table(tmp_path)
    write_lists(tmp_path)
    write_films(tmp_path, ("00000001_000.png", "00000003_000.png"))
    splits = SAMPLE.load(tmp_path)
    assert {name: split.groups.tolist() for name, split in splits.items()} == {
        "train": [1],
        "test": [3],
    }


def test_all_films_without_the_lists_are_a_sample(tmp_path, monkeypatch):
    write_table(tmp_path, many())
    write_films(tmp_path, many())
    monkeypatch.setattr(nih_cxr, "FILMS", len(many()))
    assert [catalogue.is_present(entry.name, tmp_path) for entry in nih_cxr.SOURCES] == [
        False,
        True,
        False,
    ]


def test_films_without_a_table_are_refused_and_without_a_test_split_are_no_sample(tmp_path):
    write_table(tmp_path)
    with pytest.raises(DataError, match="nih_cxr lacks films in images"):
        SAMPLE.files(tmp_path)
    write_films(tmp_path)
    (tmp_path / "nih_cxr" / "Data_Entry_2017.csv").unlink()
    for source in nih_cxr.SOURCES:
        with pytest.raises(DataError, match=r"nih_cxr lacks Data_Entry_2017\.csv"):
            source.files(tmp_path)
    write_table(tmp_path, {"99999999_000.png": ("Mass", 99)})
    with pytest.raises(DataError, match=r"Data_Entry_2017\.csv names none of the films in"):
        SAMPLE.files(tmp_path)
    write_table(tmp_path)
    write_lists(tmp_path, test=())
    assert SAMPLE.files(tmp_path) == []
    assert SAMPLE.files(tmp_path / "nowhere") == []


# -- as two sites --


def test_ap_films_are_the_second_site_and_all_others_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(nih_cxr, "FILMS", 99)
    views = {"00000001_000.png": "AP", "00000001_001.png": "PA", "00000002_000.png": ""}
    views |= {"00000003_000.png": "AP", "00000004_000.png": "PA"}
    write_table(tmp_path, view=views.get)
    write_films(tmp_path, ["00000001_000.png", "00000001_001.png", "00000002_000.png"])
    assert not catalogue.is_present("nih-cxr14-sample-ap", tmp_path)  # no test split of its own
    write_films(tmp_path)
    write_lists(tmp_path, test=("00000003_000.png", "00000004_000.png"))
    sites = {entry.name: entry.load(tmp_path) for entry in (SAMPLE, SECOND)}
    found = {
        name: {split: part.groups.tolist() for split, part in splits.items()}
        for name, splits in sites.items()
    }
    assert found == {
        "nih-cxr14-sample": {"train": [1, 2], "test": [4]},
        "nih-cxr14-sample-ap": {"train": [1], "test": [3]},
    }


def test_nih_labels_under_chexperts_names_are_those_that_both_have():
    own = np.zeros((2, len(NAMES)), np.uint8)
    own[0, [NAMES.index("effusion"), NAMES.index("mass")]] = 1
    found = dict(zip(SHARED, as_chexpert(own).T.tolist(), strict=True))
    assert found == {
        "no-finding": [0, 1],
        "cardiomegaly": [0, 0],
        "edema": [0, 0],
        "consolidation": [0, 0],
        "pneumonia": [0, 0],
        "atelectasis": [0, 0],
        "pneumothorax": [0, 0],
        "pleural-effusion": [1, 0],
    }


def test_the_second_site_stands_in_for_chexpert_and_says_what_it_is(tmp_path):
    write_table(tmp_path, many(), view=lambda film: "AP")
    write_films(tmp_path, many())
    data = catalogue.resolve("chexpert", home=tmp_path)
    assert (data.used, data.origin) == ("nih-cxr14-sample-ap", "surrogate")
    assert "from front to back" in data.note
    assert (
        "enlarged-cardiomediastinum, lung-opacity, lung-lesion, pleural-other, fracture,"
        " support-devices are unknown" in data.note
    )
    splits = catalogue.load(data.used, tmp_path)
    assert splits["train"].annotations["findings"].shape[1] == len(SHARED)
