"""MoNuSeg: the official folders and the halved ones, divided as published."""

import csv

import numpy as np
import pytest
from PIL import Image

from fedtables.datasets.nuclei import read_all
from fedtables.datasets.source import DataError
from fedtables.datasets.sources import monuseg
from fedtables.datasets.sources.monuseg import ALL, KUMAR, OFFICIAL, ORGANS, ORGANS_OF, PARTS
from tests.datasets.promises import OF_FOLDERS, promised

SOURCES = {entry.name: entry for entry in monuseg.SOURCES}
SIDE = 6
XML = (
    "<Annotations><Annotation><Regions><Region><Vertices>"
    + "".join(f'<Vertex X="{x}" Y="{y}"/>' for x, y in [(0, 0), (2, 0), (2, 1), (0, 1)])
    + "</Vertices></Region></Regions></Annotation></Annotations>"
)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(monuseg, "read_all", lambda pairs, sides: read_all(pairs, (SIDE, SIDE)))


def image(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((SIDE, SIDE, 3), value, np.uint8)).save(path)


def official(home, tests=True):
    """Every image has the value of its place among the ids, and one object of six pixels."""
    training = home / "MoNuSeg 2018 Training Data"
    (training / "Annotations").mkdir(parents=True)
    for value, name in enumerate(OFFICIAL["train"]):
        image(training / "Tissue Images" / f"{name}.tif", value)
        (training / "Annotations" / f"{name}.xml").write_text(XML)
    for name in PARTS["challenge"] if tests else ():
        image(home / "MoNuSegTestData" / f"{name}.tif", 99)
        (home / "MoNuSegTestData" / f"{name}.xml").write_text(XML)
    return training


def halved(home):
    folder = home / "monuseg_30"
    objects = np.zeros((SIDE, SIDE), np.uint16)
    objects[0, :2], objects[3] = 4, 9
    (folder / "labels").mkdir(parents=True)
    with (folder / "index.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "organ", "n_nuclei"])
        for value, name in enumerate(OFFICIAL["train"]):
            rows.writerow([name, ORGANS_OF[name].title(), 2])
            image(folder / "images" / f"{name}.png", value)
            Image.fromarray(objects).save(folder / "labels" / f"{name}.png")
    return folder


# -- who is where --


def test_no_image_is_in_two_parts_and_no_two_are_of_one_patient():
    names = [name for part in PARTS.values() for name in part]
    assert len(set(names)) == len({name[:12] for name in names}) == 44


def test_the_division_of_all_has_every_organ_in_both_splits():
    assert [len(names) for names in ALL.values()] == [19, 11]
    assert set(ALL["train"]) | set(ALL["test"]) == set(OFFICIAL["train"])
    for names in ALL.values():
        assert {ORGANS_OF[name] for name in names} == {*ORGANS[:7]}
    assert set(KUMAR["train"]) < set(ALL["train"])
    assert set(KUMAR["test"]) < set(ALL["test"])


# -- the official layout --


@pytest.mark.parametrize("inside", ["", "monuseg"])
def test_the_official_folders_are_read(tmp_path, inside):
    official(tmp_path / inside)
    assert len(SOURCES["monuseg"].files(tmp_path)) == 88
    assert len(SOURCES["monuseg-kumar"].files(tmp_path)) == 60
    splits = SOURCES["monuseg"].load(tmp_path)
    assert {name: split.images.shape for name, split in splits.items()} == {
        "train": (30, 3, SIDE, SIDE),
        "test": (14, 3, SIDE, SIDE),
    }
    train = splits["train"]
    assert train.images[:, 0, 0, 0].tolist() == [*range(30)]
    assert [ORGANS[label] for label in train.labels] == [
        ORGANS_OF[name] for name in OFFICIAL["train"]
    ]
    objects = train.annotations["nuclei"]
    assert objects.dtype == np.uint16
    assert objects[:, :2, :3].min() == objects.max() == 1
    assert objects.sum() == 30 * 6
    together = [*train.groups, *splits["test"].groups]
    assert len(set(together)) == 44


def test_kumar_s_division_needs_the_training_data_only(tmp_path):
    official(tmp_path, tests=False)
    assert SOURCES["monuseg-kumar"].files(tmp_path)
    splits = SOURCES["monuseg-kumar"].load(tmp_path)
    assert [len(split) for split in splits.values()] == [16, 8, 6]
    assert {ORGANS[label] for label in splits["other"].labels} == {"bladder", "colon", "stomach"}
    with pytest.raises(DataError, match="28 of 88 files are missing"):
        SOURCES["monuseg"].files(tmp_path)


def test_maps_may_take_the_place_of_outlines(tmp_path):
    training = official(tmp_path)
    name = OFFICIAL["train"][0]
    (training / "Annotations" / f"{name}.xml").unlink()
    (training / "Labels").mkdir()
    objects = np.zeros((SIDE, SIDE), np.uint16)
    objects[:2] = 5
    Image.fromarray(objects).save(training / "Labels" / f"{name}.png")
    assert training / "Labels" / f"{name}.png" in SOURCES["monuseg"].files(tmp_path)
    found = SOURCES["monuseg"].load(tmp_path)["train"].annotations["nuclei"]
    assert np.array_equal(found[0], objects == 5)


# -- halved --


def test_the_halved_images_are_read_in_both_divisions(tmp_path):
    halved(tmp_path)
    for name, division in (("monuseg-half", KUMAR), ("monuseg-half-all", ALL)):
        assert len(SOURCES[name].files(tmp_path)) == 61
        splits = SOURCES[name].load(tmp_path)
        for split, names in division.items():
            places = [OFFICIAL["train"].index(own) for own in names]
            assert splits[split].images[:, 1, 2, 3].tolist() == places
            assert np.unique(splits[split].annotations["nuclei"]).tolist() == [0, 1, 2]
            assert splits[split].labels.tolist() == [ORGANS.index(ORGANS_OF[own]) for own in names]


@pytest.mark.parametrize(("old", "new"), [("Liver", "Lung"), ("TCGA-18-5592", "TCGA-18-5593")])
def test_an_index_of_other_images_or_organs_is_refused(tmp_path, old, new):
    folder = halved(tmp_path)
    text = (folder / "index.csv").read_text()
    (folder / "index.csv").write_text(text.replace(old, new, 1))
    with pytest.raises(DataError, match="the first that differs is TCGA-18-5592"):
        SOURCES["monuseg-half"].files(tmp_path)


test_what_every_reader_promises = promised(
    OF_FOLDERS,
    [
        (SOURCES["monuseg"], official),
        (SOURCES["monuseg-kumar"], official),
        (SOURCES["monuseg-half"], halved),
    ],
)


def test_kumar_has_four_images_of_four_organs_and_two_to_test():
    organs = {part: [ORGANS_OF[name] for name in names] for part, names in PARTS.items()}
    assert {organ: organs["train"].count(organ) for organ in ORGANS[:4]} == dict.fromkeys(
        ORGANS[:4], 4
    )
    assert {organ: organs["test"].count(organ) for organ in ORGANS[:4]} == dict.fromkeys(
        ORGANS[:4], 2
    )
    assert {organ: organs["other"].count(organ) for organ in ORGANS[4:7]} == dict.fromkeys(
        ORGANS[4:7], 2
    )
    assert [len(organs[part]) for part in PARTS] == [16, 8, 6, 14]
    assert set(organs["challenge"]) == {*ORGANS} - {"liver", "stomach"}
