"""The catalogue: real data if present, else a stand-in that says so."""

import pytest

from datasets import catalogue
from datasets.annotations import MAP, annotations_of
from datasets.catalogue import data_home, is_present, load, resolve, source, sources
from datasets.source import DataError
from tests.datasets.npz import write_npz

pytestmark = pytest.mark.usefixtures("every_content_known")


@pytest.fixture(autouse=True)
def fresh_loads():
    load.cache_clear()
    yield
    load.cache_clear()


def test_every_source_is_known_by_its_name():
    assert all(entry.name == name for name, entry in sources().items())


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


def test_a_name_like_no_other_is_refused_with_all_names():
    with pytest.raises(DataError, match=r"known: brats2018, .*, tnbc"):
        source("zzzzz")


def test_the_data_home_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path / "elsewhere"))
    assert data_home() == tmp_path / "elsewhere"


def test_bundled_and_generated_sets_are_always_present_and_no_others(tmp_path):
    present = {name for name in sources() if is_present(name, tmp_path)}
    assert present == {name for name in sources() if not source(name).stand_ins}


def test_two_sources_of_one_name_are_refused(monkeypatch):
    from datasets.sources import digits, generated

    monkeypatch.setattr(generated, "SOURCES", [*generated.SOURCES, *digits.SOURCES])
    catalogue._modules.cache_clear()
    try:
        with pytest.raises(ValueError, match="two data sets are called 'digits'"):
            sources()
    finally:
        catalogue._modules.cache_clear()


# -- what stands in --


@pytest.mark.parametrize(
    ("asked", "used", "origin"),
    [
        ("mnist", "digits", "surrogate"),
        ("fashion-mnist", "digits", "surrogate"),
        ("cifar10", "shapes", "synthetic"),
        ("cifar100", "shapes-100", "synthetic"),
        ("cifar100-16", "shapes-100", "synthetic"),
        ("cifar100-grey", "shapes-100-grey", "synthetic"),
        ("caltech100", "shapes-100", "synthetic"),
        ("cinic10", "shapes-shifted", "synthetic"),
        ("imagenet32", "shapes-100-shifted", "synthetic"),
        ("taskonomy", "scenes", "synthetic"),
        ("nih-cxr14", "phantom-films", "synthetic"),
        ("chexpert", "phantom-films-shifted", "synthetic"),
        ("rsna-pneumonia", "phantom-films-public", "synthetic"),
        ("monuseg", "phantom-nuclei", "synthetic"),
        ("monuseg-kumar", "phantom-nuclei", "synthetic"),
        ("monuseg-half", "phantom-nuclei", "synthetic"),
        ("tnbc", "phantom-nuclei-shifted", "synthetic"),
        ("cell17", "phantom-nuclei-third", "synthetic"),
        ("brats2018", "phantom-volumes", "synthetic"),
        ("brats2018-slices", "phantom-tumours", "synthetic"),
        ("brats2020", "phantom-volumes-public", "synthetic"),
        ("lgg-mri", "phantom-tumours", "synthetic"),
        ("lgg-mri-volumes", "phantom-volumes", "synthetic"),
        ("brats2020-t1", "phantom-brains-b-t1", "synthetic"),
        ("brats2020-t2", "phantom-brains-b-t2", "synthetic"),
        ("fastmri-t1", "phantom-brains-f-t1", "synthetic"),
        ("fastmri-t2", "phantom-brains-f-t2", "synthetic"),
        ("ixi-t1", "phantom-brains-i-t1", "synthetic"),
        ("ixi-t2", "phantom-brains-i-t2", "synthetic"),
        ("ixi-hh-t1", "phantom-brains-i-t1", "synthetic"),
        ("oasis3-t1", "phantom-brains-public-t1", "synthetic"),
        ("oasis3-t2", "phantom-brains-public-t2", "synthetic"),
        ("lgg-mri-du-flair", "phantom-brains-b-t2", "synthetic"),
        ("digits", "digits", "real"),
        ("shapes", "shapes", "synthetic"),
    ],
)
def test_without_files_each_set_has_a_stand_in_that_says_what_it_is(tmp_path, asked, used, origin):
    data = resolve(asked, home=tmp_path)
    assert (data.asked, data.used, data.origin) == (asked, used, origin)


def test_the_real_set_is_used_when_it_is_there(tmp_path):
    write_npz(tmp_path, "mnist", 28)
    data = resolve("mnist", home=tmp_path)
    assert (data.used, data.origin, data.label) == ("mnist", "real", "MNIST (real)")


def test_a_surrogate_of_real_images_comes_before_a_synthetic_one(tmp_path):
    write_npz(tmp_path, "cifar10", 32, channels=3)
    data = resolve("cinic10", home=tmp_path)
    assert (data.used, data.origin) == ("cinic10-cifar", "surrogate")
    assert "no ImageNet images" in data.note


def test_a_stand_in_is_labelled_as_one(tmp_path):
    assert (
        resolve("mnist", home=tmp_path).label == "mnist stand-in: scikit-learn digits (surrogate)"
    )


def test_the_smoke_profile_uses_embedded_data_even_if_the_real_are_there(tmp_path):
    write_npz(tmp_path, "mnist", 28)
    write_npz(tmp_path, "cifar10", 32, channels=3)
    assert resolve("mnist", embedded=True, home=tmp_path).used == "digits"
    assert resolve("cinic10", embedded=True, home=tmp_path).used == "shapes-shifted"


def test_caltech_stands_in_for_cifar100_and_says_so(tmp_path):
    write_npz(tmp_path, "caltech100_32", 32, channels=3)
    data = resolve("cifar100", home=tmp_path)
    assert (data.asked, data.used, data.origin) == ("cifar100", "caltech100", "surrogate")
    assert data.label == "cifar100 stand-in: Caltech-101, 100 classes (surrogate)"
    assert resolve("cifar100", embedded=True, home=tmp_path).used == "shapes-100"


def test_cifar100_itself_comes_before_caltech(tmp_path):
    write_npz(tmp_path, "caltech100_32", 32, channels=3)
    write_npz(tmp_path, "cifar100", 32, channels=3)
    data = resolve("cifar100", home=tmp_path)
    assert (data.used, data.origin) == ("cifar100", "real")


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


def test_caltech_asked_for_by_its_name_is_real(tmp_path):
    write_npz(tmp_path, "caltech100_32", 32, channels=3)
    data = resolve("caltech100", require_real=True, home=tmp_path)
    assert (data.used, data.origin) == ("caltech100", "real")


def test_caltech_stands_in_for_imagenet32_and_smoke_uses_another_set_than_for_its_targets(
    tmp_path,
):
    write_npz(tmp_path, "caltech100_32", 32, channels=3)
    data = resolve("imagenet32", home=tmp_path)
    assert (data.used, data.origin) == ("caltech100", "surrogate")
    embedded = {
        name: resolve(name, embedded=True, home=tmp_path)
        for name in ("imagenet32", "cifar10", "cifar100")
    }
    assert {name: data.used for name, data in embedded.items()} == {
        "imagenet32": "shapes-100-shifted",
        "cifar10": "shapes",
        "cifar100": "shapes-100",
    }
    assert len({data.digest for data in embedded.values()}) == 3


def test_require_real_asks_for_imagenet32_itself(tmp_path):
    write_npz(tmp_path, "caltech100_32", 32, channels=3)
    with pytest.raises(
        DataError,
        match=(
            r"ImageNet 32x32 is needed, but it is not under .* Register at https://image-net\.org"
        ),
    ):
        resolve("imagenet32", require_real=True, home=tmp_path)


def test_imagenet32_has_stand_ins_of_a_tenth_of_its_classes():
    entry = source("imagenet32")
    assert (entry.classes, [source(s).classes for s in entry.stand_ins]) == (1000, [100] * 4)


OTHER_SITES = {
    "brats2018",
    "brats2018-slices",
    "brats2020",
    "lgg-mri",
    "lgg-mri-volumes",
    "lgg-mri-volumes-public",
}
"""Whose classes are where a sample comes from."""


@pytest.mark.parametrize("name", sorted(set(sources()) - {"imagenet32", "taskonomy"} - OTHER_SITES))
def test_a_stand_in_has_as_many_classes_as_the_set_it_stands_for(name):
    entry = source(name)
    assert {source(s).classes for s in (*entry.stand_ins, entry.embedded or name)} == {
        entry.classes
    }


def test_the_stand_in_for_taskonomy_has_fewer_classes_but_the_same_annotations():
    real, stand_in = (annotations_of(source(name)) for name in ("taskonomy", "scenes"))
    assert real["class"].size > stand_in["class"].size
    assert {name: entry.kind for name, entry in real.items()} == {
        name: entry.kind for name, entry in stand_in.items()
    }
    assert all(
        real[name].size == entry.size for name, entry in stand_in.items() if entry.kind == MAP
    )


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
