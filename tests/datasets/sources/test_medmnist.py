"""MedMNIST's 2-D sets: small files in its layout."""

import numpy as np
import pytest

from fedtables.datasets import catalogue
from fedtables.datasets.films import equalise
from fedtables.datasets.source import DataError, annotations_of
from fedtables.datasets.sources import medmnist
from fedtables.datasets.sources.medmnist import CHEST, FACTS, PNEUMONIA, SIZE, SPLITS
from tests.datasets.promises import OF_FILES, promised
from tests.datasets.serving import serve

BY_NAME = {entry.name: entry for entry in medmnist.SOURCES}


def arrays(name, sizes=None):
    """A file's arrays: pixels 0, 1, 2, ..., and all classes in turn."""
    facts, found = FACTS[name], {}
    pixels = (SIZE, SIZE) if facts.channels == 1 else (SIZE, SIZE, 3)
    picture = np.arange(np.prod(pixels)).astype(np.uint8).reshape(1, *pixels)
    for stored, size in zip(SPLITS.values(), sizes or facts.sizes, strict=True):
        numbers = (np.arange(size) % len(facts.names)).astype(np.uint8)[:, None]
        if name == CHEST:
            numbers = (numbers == np.arange(1, 15)).astype(np.uint8)  # none, if it is 0
        found |= {f"{stored}_images": picture.repeat(size, axis=0), f"{stored}_labels": numbers}
    return found


def writing(name):
    def write(home):
        home.mkdir(parents=True, exist_ok=True)
        np.savez(home / f"{name}.npz", **arrays(name, (1, 1, 1)))

    return write


def test_all_twelve_sets_are_there():
    assert len(BY_NAME) == 12
    assert {entry.shape for entry in BY_NAME.values()} == {(1, SIZE, SIZE), (3, SIZE, SIZE)}
    assert all(len(bytes.fromhex(facts.md5)) == 16 for facts in FACTS.values())
    assert len({facts.md5 for facts in FACTS.values()}) == 12


@pytest.mark.parametrize("name", ["retinamnist", "breastmnist"])
def test_images_in_colour_and_grey_are_read_with_their_classes(tmp_path, name):
    given = arrays(name)
    np.savez(tmp_path / f"{name}.npz", **given)
    splits, entry = catalogue.load(name, tmp_path), BY_NAME[name]
    assert {split: len(own) for split, own in splits.items()} == entry.sizes
    test = splits["test"]
    assert test.images.shape[1:] == entry.shape
    assert test.labels.tolist() == given["test_labels"][:, 0].tolist()
    last = given["test_images"][7].reshape(SIZE, SIZE, -1)[:, :, -1]
    assert np.array_equal(test.images[7, -1], last)


def test_the_films_of_pneumoniamnist_are_equalised_and_have_a_finding_or_none(tmp_path):
    np.savez(tmp_path / "pneumoniamnist.npz", **arrays(PNEUMONIA))
    valid = catalogue.load(PNEUMONIA, tmp_path)["valid"]
    assert valid.labels[:3].tolist() == valid.annotations["findings"][:3, 0].tolist() == [0, 1, 0]
    assert np.array_equal(valid.images[0, 0], equalise(arrays(PNEUMONIA)["val_images"][0]))


def test_chestmnist_has_findings_and_a_class_that_says_whether_there_are_any(tmp_path):
    np.savez(tmp_path / "chestmnist.npz", **arrays(CHEST, (3, 3, 3)))
    train = BY_NAME[CHEST].load(tmp_path)["train"]
    assert train.labels.tolist() == [0, 1, 1]
    assert train.annotations["findings"].sum(axis=1).tolist() == [0, 1, 1]
    own, whole = (
        annotations_of(catalogue.source(name))["findings"].names for name in (CHEST, "nih-cxr14")
    )
    assert set(own) == set(whole) - {"no-finding"}


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (PNEUMONIA, {"val_labels": np.array([[0.5]])}, "val_labels has values that are not whole"),
        (PNEUMONIA, {"val_labels": np.array([["1"]])}, "val_labels has values of type <U1, not"),
        (PNEUMONIA, {"val_images": np.full((1, SIZE, SIZE), 300)}, "images are int64, not uint8"),
        ("bloodmnist", {"test_labels": np.array([[1, 2]])}, "as many whole labels"),
        (CHEST, {"test_labels": np.full((1, 14), 2)}, "a finding is neither 0 nor 1"),
    ],
)
def test_labels_and_pixels_are_not_cast_to_what_they_should_be(tmp_path, name, changes, message):
    np.savez(tmp_path / f"{name}.npz", **{**arrays(name, (1, 1, 1)), **changes})
    with pytest.raises(DataError, match=message):
        BY_NAME[name].load(tmp_path)


def test_a_download_of_another_file_is_refused(tmp_path, monkeypatch):
    serve(monkeypatch, {"/records/10519652/files/bloodmnist.npz": b"something else"})
    entry, official = BY_NAME["bloodmnist"], FACTS["bloodmnist"].md5
    with pytest.raises(DataError, match=f"the official one, whose MD5 is {official}"):
        entry.download(tmp_path)
    assert entry.files(tmp_path) == []


CASES = [(BY_NAME[name], writing(name)) for name in (PNEUMONIA, CHEST, "bloodmnist", "octmnist")]
test_what_every_reader_promises = promised(OF_FILES, CASES)
