"""A data set of one's own: what its author has wrong is told in one line, with the file."""

import contextlib
import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from fedtables.datasets import catalogue, sources
from fedtables.datasets.folders import places
from fedtables.datasets.source import DataError, DataSource, Split, read_npz
from fedtables.results.files import RefusedError
from fedtables.results.plugins import using

MEDMNIST = ("train_images", "train_labels", "test_images", "test_labels")
GOOD = """
from fedtables.datasets import source
SOURCES = [source.DataSource(check=print)]
"""


def entry(load, **changes):
    fields = {
        "name": "own",
        "title": "Own",
        "classes": 2,
        "shape": (1, 4, 4),
        "sizes": {"train": 3, "test": 2},
        "mean": (0.5,),
        "std": (0.5,),
        "licence": "mine",
        "how_to_get": "Write it.",
        "files": lambda home: places(home, "own.npz")[:1],
        "load": load,
        "stand_ins": ("shapes",),
    }
    return DataSource(**fields | changes)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Puts a source into a plug-in in use, and a file under MedMNIST's names into the data home."""
    arrays = [np.zeros((3, 4, 4), np.uint8), np.zeros((3, 1), int)]
    arrays += [array[:2] for array in arrays]
    np.savez(tmp_path / "own.npz", **dict(zip(MEDMNIST, arrays, strict=True)))
    with contextlib.ExitStack() as stack:

        def listed(source):
            module = ModuleType("fedtables_plugin_own")
            module.__file__, module.SOURCES = __file__, [source]
            monkeypatch.setitem(sys.modules, module.__name__, module)
            stack.enter_context(using(module))
            return tmp_path

        yield listed


def read(home, dtype=np.uint8):
    with np.load(home / "own.npz") as arrays:
        return {
            split: Split(
                arrays[f"{split}_images"][:, None].astype(dtype),
                arrays[f"{split}_labels"].reshape(-1),
            )
            for split in ("train", "test")
        }


def test_a_reader_of_its_own_may_take_any_names(own):
    home = own(entry(read))
    assert catalogue.resolve("own", home=home).origin == "unverified"
    assert len(catalogue.load("own", home)["train"]) == 3


def test_the_usual_reader_says_which_arrays_it_wants(own):
    home = own(entry(lambda home: read_npz(home / "own.npz")))
    with pytest.raises(
        DataError,
        match=(
            r"own\.npz has the arrays train_images, .*\. Wanted are x_train, uint8 \(n, h, w\) or"
            r" \(n, h, w, c\); y_train, whole numbers \(n,\); .* lacks the arrays x_train, y_train"
        ),
    ):
        catalogue.resolve("own", home=home)


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda home: {}["train"], r"own\.npz: it cannot be read: KeyError: 'train'"),
        (lambda home: None, r"own\.npz: it cannot be read: \w+Error"),
        (lambda home: {"train": read(home)["train"]}, r"own\.npz: Own: .* gives no split 'test'"),
        (lambda home: read(home, float), r"own\.npz: expected uint8 or float32 images"),
        (lambda home: read(home) | {"test": read(home)["train"]}, r"own\.npz: Own: images \(3, 1"),
    ],
)
def test_a_reader_that_fails_is_told_with_its_file(own, load, message):
    home = own(entry(load))
    with pytest.raises(DataError, match=message) as caught:
        catalogue.load("own", home)
    assert "\n" not in str(caught.value)


def of_one_group(home):
    return {
        split: Split(part.images, part.labels, groups=np.zeros(len(part), np.int64))
        for split, part in read(home).items()
    }


def test_groups_in_two_splits_are_told_with_their_file(own):
    home = own(entry(of_one_group))
    with pytest.raises(DataError, match=r"own\.npz: Own: group 0 has samples in the splits"):
        catalogue.load("own", home)


def test_a_source_may_say_that_its_groups_are_in_several_splits(own):
    home = own(replace(entry(of_one_group), shared_groups=True))
    splits = catalogue.load("own", home)
    assert set(splits["train"].groups) == set(splits["test"].groups) == {0}


@pytest.mark.parametrize("error", [OSError("no way"), TypeError("no folder"), MemoryError()])
def test_files_that_cannot_be_found_are_no_absent_set(own, error):
    def files(home):
        raise error

    home = own(entry(read, files=files))
    assert catalogue.state("own", home) == "unusable"
    with pytest.raises(DataError, match=rf"Own under .* cannot be found: {type(error).__name__}: "):
        catalogue.resolve("own", home=home)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD, r"imported: TypeError: .*'check' \(own_set\.py, line 3\)"),
        ("SOURCES = [", r"imported: SyntaxError: .*own_set\.py, line 1"),
        ("", "read: AttributeError: .*SOURCES"),
        ("SOURCES = 5", "read: TypeError"),
        ("SOURCES = [5]", "read: AttributeError: .*name"),
    ],
)
def test_a_file_that_lists_no_data_sets_is_refused_in_one_line(
    tmp_path, monkeypatch, text, message
):
    (tmp_path / "own_set.py").write_text(text)
    monkeypatch.setattr(sources, "__path__", [str(tmp_path)])
    catalogue._listed.cache_clear()
    try:
        with pytest.raises(RefusedError, match=f"own_set.* cannot be {message}"):
            catalogue.sources()
    finally:
        catalogue._listed.cache_clear()
        sys.modules.pop("fedtables.datasets.sources.own_set", None)
