"""One sequence of one institution's LGG MRI, which stands in for a site."""

import numpy as np
import pytest

from datasets import catalogue
from datasets.source import DataError, check_groups
from datasets.sources import lgg_slices
from datasets.sources.lgg import SIDE, SITES
from datasets.sources.lgg_slices import SLICES
from tests.datasets.promises import OF_FILES

pytestmark = pytest.mark.usefixtures("every_content_known")

SOURCES = {entry.name: entry for entry in lgg_slices.SOURCES}
WITHOUT_T1 = ("TCGA_DU_1", "TCGA_DU_2", "TCGA_HT_0")


@pytest.fixture(autouse=True)
def fresh_loads():
    catalogue.load.cache_clear()
    yield
    catalogue.load.cache_clear()


def write(home):
    """Of each institution four patients with two slices: T1 of 1, 2, ... in every slice, FLAIR 100
    brighter, the same in a corner; of three patients FLAIR in T1's place.
    """
    rows = [
        (f"TCGA_{site}_{number}", slice_number, site)
        for site in SITES
        for number in range(4)
        for slice_number in (5, 6)
    ]
    images = np.zeros((len(rows), SIDE, SIDE, 3), np.uint8)
    images[..., 0] = np.arange(1, len(rows) + 1)[:, None, None]
    images[..., 1] = images[..., 0] + 100
    images[..., 2] = 255
    images[:, 0, 0, :2] = 7
    without = np.isin([name for name, _, _ in rows], WITHOUT_T1)
    images[without, ..., 0] = images[without, ..., 1]
    patient, numbers, site = (np.array(column) for column in zip(*rows, strict=True))
    home.mkdir(parents=True, exist_ok=True)
    np.savez(
        home / "lgg_mri.npz",
        images=images,
        masks=np.ones((len(rows), SIDE, SIDE), np.uint8),
        patient=patient,
        slice=numbers,
        site=site,
    )
    return home


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return write(tmp_path_factory.mktemp("lgg") / "data")


def tones(splits):
    """Of all slices, in the middle."""
    return sorted(tone for split in splits.values() for tone in split.images[:, 0, 64, 64].tolist())


def test_the_slices_of_each_institution_but_one_are_all_there():
    flair = [sizes for name, sizes in SLICES.items() if name.endswith("flair")]
    # LGG MRI has 1,382 and 426; the one patient of EZ, with ten slices, trains.
    assert [sum(column) for column in zip(*flair, strict=True)] == [1_382 - 10, 426]
    assert all(
        dict(source.sizes) == dict(zip(("train", "test"), SLICES[name[8:]], strict=True))
        for name, source in SOURCES.items()
    )


def test_a_source_has_its_institution_and_its_sequence_only(home):
    # CS comes first: rows 1 to 8; FG's are 25 to 32, and all of its patients have T1.
    assert tones(SOURCES["lgg-mri-cs-t1"].load(home)) == [*range(1, 9)]
    assert tones(SOURCES["lgg-mri-cs-flair"].load(home)) == [*range(101, 109)]
    assert tones(SOURCES["lgg-mri-fg-t1"].load(home)) == [*range(25, 33)]
    assert tones(SOURCES["lgg-mri-fg-flair"].load(home)) == [*range(125, 133)]


def test_flair_in_the_place_of_t1_is_dropped_and_stays_as_flair(home):
    # DU's rows are 9 to 16, of which its second and third patient have 11 to 14; HT's 33 to 40, its
    # first patient's 33 and 34.
    assert tones(SOURCES["lgg-mri-du-t1"].load(home)) == [9, 10, 15, 16]
    assert tones(SOURCES["lgg-mri-du-flair"].load(home)) == [*range(109, 117)]
    assert tones(SOURCES["lgg-mri-ht-t1"].load(home)) == [*range(35, 41)]
    assert tones(SOURCES["lgg-mri-ht-flair"].load(home)) == [*range(133, 141)]


@pytest.mark.parametrize("name", SOURCES)
def test_images_are_of_one_channel_and_patients_of_one_split(home, name):
    splits = SOURCES[name].load(home)
    check_groups(name, splits)
    for split in splits.values():
        assert split.images.shape[1:] == SOURCES[name].shape == (1, SIDE, SIDE)
        assert (split.images[:, 0, 0, 0] == 7).all()
        assert not split.labels.any()
        assert set(np.bincount(split.groups).tolist()) <= {0, 2}  # both slices of a patient


def test_a_patient_is_in_the_same_split_of_both_sequences(home):
    for institution in ("cs", "du", "fg", "ht"):
        t1, flair = (
            SOURCES[f"lgg-mri-{institution}-{sequence}"].load(home) for sequence in ("t1", "flair")
        )
        for name, split in flair.items():
            assert set(t1[name].groups) <= set(split.groups)


def test_it_is_loaded_as_it_states(home):
    splits = catalogue.load("lgg-mri-du-flair", home)
    assert {name: len(split) for name, split in splits.items()} == {"train": 6, "test": 2}


# -- what it stands in for --


@pytest.mark.parametrize(
    ("asked", "used"),
    [
        ("brats2020-t1", "lgg-mri-du-t1"),
        ("brats2020-t2", "lgg-mri-du-flair"),
        ("fastmri-t1", "lgg-mri-ht-t1"),
        ("fastmri-t2", "lgg-mri-ht-flair"),
        ("ixi-t1", "lgg-mri-cs-t1"),
        ("ixi-t2", "lgg-mri-cs-flair"),
        ("oasis3-t1", "lgg-mri-fg-t1"),
        ("oasis3-t2", "lgg-mri-fg-flair"),
    ],
)
def test_each_set_has_the_slices_of_an_institution_in_its_place(home, asked, used):
    data = catalogue.resolve(asked, home=home)
    assert (data.used, data.origin) == (used, "surrogate")
    assert ("FLAIR in the place of T2" in data.note) == used.endswith("flair")
    assert catalogue.source(used).embedded == catalogue.source(asked).embedded
    assert catalogue.resolve(used, home=home).origin == "surrogate"
    with pytest.raises(DataError, match="--require-real"):
        catalogue.resolve(asked, require_real=True, home=home)


def test_no_two_sites_have_the_same_in_their_places(home):
    for sequence in ("t1", "t2"):
        asked = [f"{name}-{sequence}" for name in ("brats2020", "fastmri", "ixi", "oasis3")]
        assert len({catalogue.resolve(name, home=home).digest for name in asked}) == 4


@pytest.mark.parametrize("promise", OF_FILES)
@pytest.mark.parametrize(
    ("entry", "write"), [(SOURCES["lgg-mri-du-t1"], write), (SOURCES["lgg-mri-du-flair"], write)]
)
def test_what_every_reader_promises(tmp_path, promise, entry, write):
    promise(entry, write, tmp_path)
