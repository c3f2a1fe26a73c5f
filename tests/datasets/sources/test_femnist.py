"""FEMNIST: small files in LEAF's layout."""

import json

import numpy as np
import pytest

from fedtables.datasets import catalogue
from fedtables.datasets.source import DataError
from fedtables.datasets.sources import femnist
from tests.datasets.promises import OF_FOLDERS, promised

[SOURCE] = femnist.SOURCES
TRAIN = {"f3": [0, 61], "f1": [10], "f2": []}
TEST = {"f1": [35, 36], "f3": [9]}


def user(labels, tone=255):
    """Images of one tone each, the byte `tone` less the number of the sample."""
    images = [[(tone - number) / 255] * 784 for number in range(len(labels))]
    return {"x": images, "y": labels}


def content(classes):
    return {
        "users": [*classes],
        "num_samples": [len(labels) for labels in classes.values()],
        "user_data": {name: user(labels) for name, labels in classes.items()},
    }


def put(home, split, *files, folder="femnist"):
    place = home / folder / split
    place.mkdir(parents=True, exist_ok=True)
    for number, classes in enumerate(files):
        (place / f"all_data_{number}_niid_0_keep_0_{split}_9.json").write_text(
            json.dumps(content(classes) if "users" not in classes else classes)
        )


def write(home, folder="femnist"):
    put(home, "train", TRAIN, folder=folder)
    put(home, "test", TEST, folder=folder)


@pytest.mark.parametrize("folder", ["femnist", "FEMNIST/data", "leaf/femnist"])
def test_users_are_read_in_the_order_of_their_names_with_a_number_each(tmp_path, folder):
    write(tmp_path, folder)
    splits = catalogue.load("femnist", tmp_path)
    assert splits["train"].labels.tolist() == [10, 0, 61]
    assert splits["train"].groups.tolist() == [0, 2, 2]
    assert splits["test"].labels.tolist() == [35, 36, 9]
    assert splits["test"].groups.tolist() == [0, 0, 2]  # the same users, the same numbers
    assert splits["train"].images.shape == (3, 1, 28, 28)
    assert splits["train"].images[:, 0, 0, 0].tolist() == [255, 255, 254]  # paper is white


def test_files_may_share_the_users_in_any_way(tmp_path):
    write(tmp_path / "one")
    put(tmp_path / "many", "train", {"f3": TRAIN["f3"]}, {"f1": TRAIN["f1"]})
    put(tmp_path / "many", "test", TEST)
    one, many = (SOURCE.load(tmp_path / home) for home in ("one", "many"))
    assert np.array_equal(one["train"].labels, many["train"].labels)
    assert np.array_equal(one["train"].images, many["train"].images)


def test_every_byte_comes_back(tmp_path):
    shades = {"users": ["a"], "num_samples": [1]}
    shades["user_data"] = {"a": {"x": [[n % 256 / 255 for n in range(784)]], "y": [0]}}
    put(tmp_path, "train", shades)
    put(tmp_path, "test", {"a": [1]})
    image = SOURCE.load(tmp_path)["train"].images[0].ravel()
    assert image.tolist() == [n % 256 for n in range(784)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"users": ["f1", "f9"]}, r"train_9\.json is not a file of LEAF's"),
        ({"num_samples": [2]}, "other numbers of samples than num_samples says"),
        ({"user_data": {"f1": {"x": [[0.5] * 783], "y": [1]}}}, "is not a file of LEAF's"),
        ({"user_data": {"f1": {"x": [[1.5] * 784], "y": [1]}}}, "x of f1 is not all from 0 to 1"),
        ({"user_data": {"f1": {"x": [[0.5] * 784], "y": [0.5]}}}, "y of f1 has values that are"),
        ({"user_data": {"f1": {"x": [[0.5] * 784], "y": [62]}}}, "labels 62 to 62"),
    ],
)
def test_what_is_none_of_leafs_is_refused(tmp_path, change, message):
    put(tmp_path, "train", {**content({"f1": [1]}), **change})
    put(tmp_path, "test", {"f1": [1]})
    with pytest.raises(DataError, match=message):
        catalogue.load("femnist", tmp_path)


def test_a_user_of_two_files_of_a_split_is_refused(tmp_path):
    put(tmp_path, "train", {"f1": [1]}, {"f1": [2]})
    put(tmp_path, "test", {"f1": [1]})
    with pytest.raises(DataError, match="has the user f1, whom another file has too"):
        SOURCE.load(tmp_path)


test_what_every_reader_promises = promised(OF_FOLDERS, [(SOURCE, write)])
