"""The catalogue: real data if present, else a stand-in that says so."""

import pytest

from fedtables.datasets import catalogue
from fedtables.datasets.catalogue import is_present, resolve, source, sources
from fedtables.datasets.source import REAL, SYNTHETIC, DataError, annotations_of
from fedtables.results.files import RefusedError
from tests.datasets.npz import write_npz

pytestmark = pytest.mark.usefixtures("every_content_known")


@pytest.mark.parametrize("name", sorted(sources()))
def test_every_source_states_what_a_reader_needs(name):
    entry = source(name)
    assert entry.licence
    assert entry.how_to_get.endswith(".")
    assert len(entry.mean) == len(entry.std) == entry.shape[0]
    assert ({"train"} if name == "rsna-pneumonia" else {"train", "test"}) <= set(
        entry.sizes
    )  # whose test set has no labels


@pytest.mark.parametrize("name", sorted(sources()))
def test_every_stand_in_exists_and_the_embedded_one_needs_no_files(name):
    entry = source(name)
    assert all(stand_in in sources() for stand_in in entry.stand_ins)
    assert not entry.embedded or source(entry.embedded).embedded == ""
    assert not entry.embedded or not entry.stand_ins or source(entry.stand_ins[-1]).embedded == ""


def test_an_unknown_name_is_refused_with_near_ones():
    with pytest.raises(DataError, match=r"unknown data set 'cifar1'; did you mean .*cifar10"):
        source("cifar1")


def test_bundled_and_generated_sets_are_always_present_and_no_others(tmp_path):
    present = {name for name in sources() if is_present(name, tmp_path)}
    assert present == {name for name in sources() if not source(name).stand_ins}


def test_two_sources_of_one_name_are_refused(monkeypatch):
    from fedtables.datasets.sources import digits, generated

    monkeypatch.setattr(generated, "SOURCES", [*generated.SOURCES, *digits.SOURCES])
    catalogue._listed.cache_clear()
    try:
        with pytest.raises(RefusedError, match="two entries of SOURCES are called 'digits'"):
            sources()
    finally:
        catalogue._listed.cache_clear()


# -- what stands in --


def test_without_files_each_set_has_a_stand_in_that_says_what_it_is(tmp_path):
    for name, entry in sources().items():
        data, used = resolve(name, home=tmp_path), source(entry.embedded or name)
        real = "real" if used is entry and used.kind == REAL else "surrogate"
        assert data.used == used.name
        assert data.origin == ("synthetic" if used.kind == SYNTHETIC else real)


@pytest.mark.parametrize(
    ("there", "asked", "used", "origin"),
    [
        ({"mnist": 28}, "mnist", "mnist", "real"),
        ({"cifar10": 32}, "cinic10", "cinic10-cifar", "surrogate"),
        ({"caltech100_32": 32}, "cifar100", "caltech100", "surrogate"),
        ({"caltech100_32": 32, "cifar100": 32}, "cifar100", "cifar100", "real"),
        ({"caltech100_32": 32}, "caltech100", "caltech100", "real"),
        ({"caltech100_32": 32}, "imagenet32", "caltech100", "surrogate"),
    ],
)
def test_the_set_itself_comes_before_a_surrogate_and_that_before_a_synthetic_one(
    tmp_path, there, asked, used, origin
):
    for name, side in there.items():
        write_npz(tmp_path, name, side, channels=None if name == "mnist" else 3)
    data = resolve(asked, home=tmp_path)
    assert (data.used, data.origin) == (used, origin)
    assert resolve(asked, embedded=True, home=tmp_path).used == source(asked).embedded


def test_fewer_pixels_of_the_same_images_are_the_set_itself_where_no_more_are_asked_for(tmp_path):
    write_npz(tmp_path, "caltech100_32", 32, channels=3)
    write_npz(tmp_path, "cifar100_16", 16, channels=3)
    for side, used, origin in (
        (8, "cifar100-16", "real"),
        (16, "cifar100-16", "real"),
        (17, "caltech100", "surrogate"),
        (0, "caltech100", "surrogate"),
    ):
        data = resolve("cifar100", home=tmp_path, side=side)
        assert (data.used, data.origin) == (used, origin)
    label = "CIFAR-100 at 16 x 16 pixels (real)"
    assert resolve("cifar100", home=tmp_path, side=16, require_real=True).label == label
    with pytest.raises(DataError, match="--require-real: CIFAR-100 is needed"):
        resolve("cifar100", home=tmp_path, side=32, require_real=True)
    write_npz(tmp_path, "cifar100", 32, channels=3)
    assert resolve("cifar100", home=tmp_path, side=16).used == "cifar100"


def test_a_set_does_not_stand_in_beside_itself_with_fewer_pixels(tmp_path):
    write_npz(tmp_path, "caltech100_32", 32, channels=3)
    write_npz(tmp_path, "cifar100_16", 16, channels=3)
    data = resolve("imagenet32", home=tmp_path, side=16)
    assert (data.used, data.origin) == ("cifar100-16", "surrogate")
    for taken in ("cifar100", "cifar100-16"):
        data = resolve("imagenet32", home=tmp_path, side=16, but_not=taken)
        assert (data.used, data.origin) == ("caltech100", "surrogate")


OTHER_SITES = {
    "brats2018",
    "brats2018-slices",
    "brats2020",
    "lgg-mri",
    "lgg-mri-volumes",
    "lgg-mri-volumes-public",
}
"""Whose classes are where a sample comes from."""
OTHER_CLASSES = {"imagenet32", "taskonomy", "femnist"}
"""In whose place are sets of fewer or other classes."""


@pytest.mark.parametrize("name", sorted(set(sources()) - OTHER_CLASSES - OTHER_SITES))
def test_a_stand_in_has_as_many_classes_as_the_set_it_stands_for(name):
    entry = source(name)
    assert {source(s).classes for s in (*entry.stand_ins, entry.embedded or name)} == {
        entry.classes
    }


def test_what_stands_in_for_a_segmented_set_is_annotated_by_the_same_names():
    for name in (*OTHER_SITES, "monuseg", "monuseg-kumar", "tnbc", "cell17"):
        entry = source(name)
        kinds = {key: a.kind for key, a in annotations_of(entry).items()}
        for used in (*entry.stand_ins, entry.embedded):
            assert {key: a.kind for key, a in annotations_of(source(used)).items()} == kinds


def test_the_data_home_of_the_environment_is_searched_by_default(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path))
    assert resolve("fashion-mnist").used == "digits"
    write_npz(tmp_path, "fashion-mnist", 28)
    assert resolve("fashion-mnist").used == "fashion-mnist"


def test_what_stands_in_for_films_has_their_findings():
    for name in ("nih-cxr14", "chexpert"):
        entry = source(name)
        own, *others = (
            set(annotations_of(source(used))["findings"].names) for used in (name, *entry.stand_ins)
        )
        assert all(found <= own for found in others)
