"""PneumoniaMNIST: MedMNIST's arrays, whole or refused."""

import numpy as np
import pytest

from datasets import catalogue
from datasets.films import equalise
from datasets.source import DataError
from datasets.sources import pneumoniamnist
from datasets.sources.pneumoniamnist import SIZE
from tests.datasets.promises import OF_FILES, promised

SOURCE = pneumoniamnist.SOURCES[0]


def arrays(sizes=(4708, 524, 624)):
    found = {}
    for name, size in zip(("train", "val", "test"), sizes, strict=True):
        found[f"{name}_images"] = (
            np.arange(SIZE * SIZE).astype(np.uint8).reshape(1, SIZE, SIZE).repeat(size, axis=0)
        )
        found[f"{name}_labels"] = (np.arange(size) % 2).astype(np.uint8)[:, None]
    return found


def write(home):
    home.mkdir(parents=True, exist_ok=True)
    np.savez(home / "pneumoniamnist.npz", **arrays((1, 1, 1)))


def test_the_three_splits_are_read_as_films_with_or_without_pneumonia(tmp_path):
    np.savez(tmp_path / "pneumoniamnist.npz", **arrays())
    splits = catalogue.load("pneumoniamnist", tmp_path)
    assert {name: len(split) for name, split in splits.items()} == {
        "train": 4708,
        "valid": 524,
        "test": 624,
    }
    valid = splits["valid"]
    assert valid.labels[:3].tolist() == valid.annotations["findings"][:3, 0].tolist() == [0, 1, 0]
    assert np.array_equal(valid.images[0, 0], equalise(arrays()["val_images"][0]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"val_labels": np.array([[0.5]])}, "val_labels has values that are not whole numbers"),
        ({"val_labels": np.array([["1"]])}, "val_labels has values of type <U1, not whole"),
        ({"val_images": np.full((1, SIZE, SIZE), 300)}, "val_images are int64, not uint8"),
    ],
)
def test_labels_and_pixels_are_not_cast_to_what_they_should_be(tmp_path, changes, message):
    np.savez(tmp_path / "pneumoniamnist.npz", **{**arrays((1, 1, 1)), **changes})
    with pytest.raises(DataError, match=message):
        SOURCE.load(tmp_path)


test_what_every_reader_promises = promised(OF_FILES, [(SOURCE, write)])
