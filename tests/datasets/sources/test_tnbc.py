"""TNBC: Zenodo's folders and the packed ones, split by patient."""

import numpy as np
import pytest
from PIL import Image

from fedtables.datasets.source import DataError, Split
from fedtables.datasets.sources import tnbc
from fedtables.datasets.sources.tnbc import PER_PATIENT
from tests.datasets.promises import OF_FOLDERS, promised

SOURCE = tnbc.SOURCES[0]
SIDE = 5
MASK = np.zeros((SIDE, SIDE), np.uint8)
MASK[0, :2], MASK[1, 2], MASK[4, 4] = 255, 255, 255  # the first three touch, one by a corner
OBJECTS = np.zeros((SIDE, SIDE), np.uint16)
OBJECTS[0, 0], OBJECTS[0, 1] = 3, 8


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(tnbc, "SIDES", (SIDE, SIDE))


def image(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def all_images():
    return [
        (patient, number)
        for patient, count in enumerate(PER_PATIENT, 1)
        for number in range(1, count + 1)
    ]


def official(home):
    folder = home / "TNBC_NucleiSegmentation"
    for patient, number in all_images():
        name = f"{patient:02}_{number}.png"
        pixels = np.full((SIDE, SIDE, 4), 10 * patient + number, np.uint8)
        pixels[..., 3] = 255
        image(folder / f"Slide_{patient:02}" / name, pixels)
        image(folder / f"GT_{patient:02}" / name, MASK)
    return folder


def packed(home):
    folder = home / "tnbc_naylor"
    lines = ["id,patient,n_nuclei"]
    for patient, number in all_images():
        name = f"{patient:02}_{number}"
        lines.append(f"{name},{patient},2")
        image(folder / "images" / f"{name}.jpg", np.full((SIDE, SIDE, 3), 7, np.uint8))
        image(folder / "labels" / f"{name}.png", OBJECTS)
    (folder / "index.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_halved_images_are_means_and_a_nucleus_keeps_the_first_of_four_pixels():
    image = np.array([[1, 2, 9, 9], [3, 4, 9, 9], [0, 0, 0, 0], [0, 0, 0, 255]], np.uint8)
    nuclei = np.array([[0, 5, 8, 0], [5, 5, 0, 0], [0, 0, 2, 2], [0, 0, 2, 2]], np.uint16)
    split = Split(
        np.broadcast_to(image, (1, 3, 4, 4)), np.zeros(1, np.int64), {"nuclei": nuclei[None]}
    )
    half = tnbc.halved(split)
    assert half.images.tolist() == [[[[3, 9], [0, 64]]] * 3]  # halves are rounded up
    # The first has no such pixel and is lost; numbers follow one another again.
    assert half.annotations["nuclei"].tolist() == [[[0, 2], [0, 1]]]


def test_the_official_folders_are_read(tmp_path):
    official(tmp_path)
    assert len(SOURCE.files(tmp_path)) == 100
    splits = SOURCE.load(tmp_path)
    assert {name: set(split.groups.tolist()) for name, split in splits.items()} == {
        "train": set(range(1, 9)),
        "test": {9, 10, 11},
    }
    assert {name: len(split) for name, split in splits.items()} == dict(SOURCE.sizes)
    assert splits["train"].images[:3, 0, 0, 0].tolist() == [11, 12, 13]
    nuclei = splits["test"].annotations["nuclei"]
    assert nuclei.dtype == np.uint16
    assert nuclei[0].tolist() == [
        [1, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0] * 5,
        [0] * 5,
        [0, 0, 0, 0, 2],
    ]


def test_the_packed_folder_is_read_with_its_own_numbers(tmp_path):
    packed(tmp_path)
    assert len(SOURCE.files(tmp_path)) == 101
    splits = SOURCE.load(tmp_path)
    assert {name: len(split) for name, split in splits.items()} == dict(SOURCE.sizes)
    assert splits["train"].groups.tolist() == [p for p, _ in all_images() if p < 9]
    assert splits["train"].annotations["nuclei"][0, 0, :3].tolist() == [1, 2, 0]


def test_a_mask_of_another_size_than_its_image_is_refused(tmp_path):
    folder = official(tmp_path)
    image(folder / "GT_04" / "04_2.png", MASK[1:])
    with pytest.raises(DataError, match=r"04_2\.png has 4 x 5 pixels, its image 5 x 5"):
        SOURCE.load(tmp_path)


@pytest.mark.parametrize("tones", [{1: 255, 2: 90}, {0: 255}])
def test_a_picture_or_an_inverted_mask_is_no_mask(tmp_path, tones):
    official(tmp_path)
    pixels = np.zeros((SIDE, SIDE), np.uint8)
    for row, tone in tones.items():
        pixels[row if row else slice(None)] = tone
    image(tmp_path / "TNBC_NucleiSegmentation" / "GT_04" / "04_2.png", pixels)
    with pytest.raises(DataError, match=r"04_2\.png is no mask: it has more than two tones, or"):
        SOURCE.load(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("02_1,2,2", "02_1,3,2", "or another number of one of them"),
        ("02_1,2,2", "02_1,12,2", "50 images of 12 patients, not 50 of 11"),
        ("02_1,2,2\n", "", "49 images of 11 patients, not 50 of 11"),
        ("02_1,2,2", "02_1,two,2", "50 images of 12 patients, not 50 of 11"),
    ],
)
def test_an_index_of_other_patients_is_refused(tmp_path, old, new, message):
    folder = packed(tmp_path)
    text = (folder / "index.csv").read_text()
    (folder / "index.csv").write_text(text.replace(old, new))
    with pytest.raises(DataError, match=message):
        SOURCE.files(tmp_path)


test_what_every_reader_promises = promised(OF_FOLDERS, [(SOURCE, official), (SOURCE, packed)])
