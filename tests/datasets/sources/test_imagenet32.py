"""ImageNet 32x32: eleven official batches, read one by one, classes in the order of their WordNet
ids.
"""

import pickle

import numpy as np
import pytest

from fedtables.datasets.source import DataError
from fedtables.datasets.sources import imagenet32 as module
from fedtables.datasets.sources.imagenet32 import (
    TRAIN_PARTS,
    WORDNET_PLACE,
    data_source,
    read_batches,
)

SMALL = data_source(train=20, test=3)


def batch(images, labels, *, mean=True, protocol=3):
    """As the release's script pickles it: Python 3, its NumPy's module names, a list of labels from
    1, a mean in training files.
    """
    content = {
        "data": np.asarray(images, np.uint8).reshape(len(labels), 3072),
        "labels": list(labels),
    }
    if mean:
        content["mean"] = np.zeros(3072)
    written = pickle.dumps(content, protocol=protocol)
    return (
        written.replace(b"numpy._core", b"numpy.core") if protocol < 4 else written
    )  # from 4 on, a name has a length


def write_official(home, train="Imagenet32_train", test="Imagenet32_val"):
    """Batch k holds two images of value k, labelled k and 1000; three test images are labelled 449,
    1 and 450.
    """
    (home / train).mkdir(parents=True)
    (home / test).mkdir(exist_ok=True)
    for number, part in enumerate(TRAIN_PARTS, 1):
        (home / train / part).write_bytes(batch(np.full((2, 3072), number), [number, 1000]))
    (home / test / "val_data").write_bytes(batch(np.full((3, 3072), 99), [449, 1, 450], mean=False))
    return home / train


# -- the official set --


@pytest.mark.parametrize(
    "folders", [("Imagenet32_train", "Imagenet32_val"), ("Imagenet32", "Imagenet32")]
)
def test_the_ten_batches_are_joined_in_the_order_of_their_numbers(tmp_path, folders):
    write_official(tmp_path, *folders)
    splits = SMALL.load(tmp_path)
    assert splits["train"].images[:, 2, 31, 31].tolist() == [
        k for k in range(1, 11) for _ in range(2)
    ]
    assert splits["train"].images.shape == (20, 3, 32, 32)
    assert splits["test"].images.shape == (3, 3, 32, 32)
    assert len(SMALL.files(tmp_path)) == 11


def test_labels_are_the_places_of_the_wordnet_ids(tmp_path):
    write_official(tmp_path)
    splits = SMALL.load(tmp_path)
    assert splits["test"].labels.tolist() == [0, 278, 1]  # tench, kit fox, goldfish
    assert splits["train"].labels[:6].tolist() == [
        278,
        543,
        212,
        543,
        250,
        543,
    ]  # English setter, Siberian husky; dumbbell
    assert splits["train"].labels.dtype == np.int64


def test_the_order_of_classes_is_one_of_all_thousand():
    assert sorted(WORDNET_PLACE.tolist()) == list(range(1000))


@pytest.mark.parametrize(
    ("number", "wordnet_id"),
    [
        (1, "n02119789"),
        (200, "n02087394"),
        (449, "n01440764"),
        (622, "n02165456"),
    ],
)
def test_a_class_of_the_release_has_timms_number(number, wordnet_id):
    from timm.data import ImageNetInfo

    assert ImageNetInfo("imagenet-1k").label_names()[WORDNET_PLACE[number - 1]] == wordnet_id


# -- what is not whole --


def test_missing_batches_are_named_with_advice(tmp_path):
    folder = write_official(tmp_path)
    (folder / "train_data_batch_7").unlink()
    (tmp_path / "Imagenet32_val" / "val_data").unlink()
    with pytest.raises(
        DataError, match=r"2 of 11 files are missing, .*Imagenet32_train/train_data_batch_7"
    ):
        SMALL.files(tmp_path)
    for part in folder.iterdir():
        part.unlink()
    (tmp_path / "Imagenet32_val" / "val_data").touch()
    with pytest.raises(DataError, match=r"10 of 11 files are missing, .*train_data_batch_1"):
        SMALL.files(tmp_path)


@pytest.mark.parametrize("length", [0, 1, 100, 5000, -1])
def test_a_truncated_batch_is_named_with_advice(tmp_path, length):
    path = write_official(tmp_path) / "train_data_batch_4"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(
        DataError,
        match=r"train_data_batch_4 is not a whole batch of pickled images .* Get it again",
    ):
        SMALL.load(tmp_path)


@pytest.mark.parametrize("labels", [[0], [1001]])
def test_labels_outside_of_the_thousand_are_refused(tmp_path, labels):
    (tmp_path / "b").write_bytes(batch(np.zeros((1, 3072)), labels))
    with pytest.raises(DataError, match=r"expected 1 to 1000\. Get it again"):
        read_batches([tmp_path / "b"], 1)


@pytest.mark.parametrize(
    "content",
    [
        {"data": np.zeros((2, 3072), np.uint8), "labels": [1]},
        {"data": np.zeros((1, 3072), np.float32), "labels": [1]},
        {"data": np.zeros((0, 3072), np.uint8), "labels": []},
    ],
)
def test_images_that_do_not_fit_their_labels_or_are_no_bytes_are_refused(tmp_path, content):
    (tmp_path / "b").write_bytes(pickle.dumps(content))
    with pytest.raises(
        DataError, match=r"holds (uint8|float32) images \(\d, 3, 32, 32\) and labels"
    ):
        read_batches([tmp_path / "b"], 1)


@pytest.mark.parametrize("size", [1, 3])
def test_more_or_fewer_images_than_expected_are_refused(tmp_path, size):
    (tmp_path / "b").write_bytes(batch(np.zeros((2, 3072)), [1, 2]))
    with pytest.raises(DataError, match=rf"hold 2 images, expected {size}\. Get them again"):
        read_batches([tmp_path / "b"], size)


def test_the_set_is_as_large_as_the_official_one():
    [official] = module.SOURCES
    assert official.sizes == {"train": 1_281_167, "test": 50_000}
    assert (official.classes, official.shape) == (1000, (3, 32, 32))
    assert official.download is None
