"""LGG MRI: slices by site and patient, and volumes around the tumour."""

from collections import Counter

import numpy as np
import pytest

from fedtables.datasets import catalogue
from fedtables.datasets.source import DataError
from fedtables.datasets.sources import lgg
from fedtables.datasets.sources.lgg import DEPTH, SIDE, SITES, SMALL, around_tumour
from tests.datasets.promises import OF_FILES, promised

SLICES, VOLUMES, PUBLIC, *OTHERS = lgg.SOURCES
SOURCES = {entry.name: entry for entry in OTHERS}


def arrays():
    """Of each site but one four patients with the slices 2, 5, 6, 7 and 20; tumours in 5 to 7."""
    rows = [
        (f"TCGA_{site}_{number}", number_of, site)
        for site in SITES
        for number in range(1 if site == "EZ" else 4)
        for number_of in (2, 5, 6, 7, 20)
    ]
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (len(rows), SIDE, SIDE, 3), np.uint8)
    masks = np.zeros((len(rows), SIDE, SIDE), np.uint8)
    for row, (_, number, _) in enumerate(rows):
        if number in (5, 6, 7):
            masks[row, 10:14, 20:25] = 1
    patient, numbers, site = (np.array(column) for column in zip(*rows, strict=True))
    return {
        "images": images,
        "masks": masks,
        "patient": patient,
        "slice": numbers.astype(np.int16),
        "site": site,
    }


def write(home, **changes):
    home.mkdir(parents=True, exist_ok=True)
    np.savez(home / "lgg_mri.npz", **{**arrays(), **changes})
    return home


def test_slices_are_split_by_patient_and_by_a_quarter_of_each_site(tmp_path):
    splits = SLICES.load(write(tmp_path))
    patients = {
        name: Counter(dict(zip(split.groups.tolist(), split.labels.tolist(), strict=True)).values())
        for name, split in splits.items()
    }
    assert patients["test"] == {SITES.index(site): 1 for site in SITES if site != "EZ"}
    assert patients["train"] == {SITES.index(site): 1 if site == "EZ" else 3 for site in SITES}
    assert set(splits["train"].groups).isdisjoint(splits["test"].groups)
    assert splits["train"].images.shape == (13 * 5, 3, SIDE, SIDE)
    assert splits["train"].annotations["tumour"].sum() == 13 * 3 * 20


def test_the_split_does_not_follow_the_order_of_the_file(tmp_path):
    given = arrays()
    order = np.random.default_rng(1).permutation(len(given["slice"]))
    mixed = write(tmp_path / "mixed", **{name: array[order] for name, array in given.items()})
    for source in (SLICES, VOLUMES, PUBLIC):
        first, other = source.load(write(tmp_path / "sorted")), source.load(mixed)
        for split, content in first.items():
            assert np.array_equal(content.images, other[split].images)
            assert np.array_equal(content.groups, other[split].groups)


# -- volumes --


def test_the_middle_of_the_tumour_is_in_the_middle_and_slices_follow_one_another():
    numbers = np.array([2, 5, 6, 7, 8, 20])
    tumour = np.array([False, False, True, True, False, False])
    assert around_tumour(numbers, tumour) == {8: 3, 9: 4, 7: 2, 6: 1}


def test_a_long_tumour_is_cut_off_on_both_ends():
    numbers = np.arange(10, 46)
    places = around_tumour(numbers, np.ones(36, bool))
    assert sorted(places) == [*range(DEPTH)]
    assert [int(numbers[places[depth]]) for depth in range(DEPTH)] == [*range(20, 36)]


def test_a_volume_has_halved_slices_and_black_ones(tmp_path):
    splits = VOLUMES.load(write(tmp_path))
    assert {name: split.images.shape for name, split in splits.items()} == {
        "train": (9, 3, DEPTH, SMALL, SMALL),
        "test": (4, 3, DEPTH, SMALL, SMALL),
    }
    train = splits["train"]
    assert (
        train.images.any(axis=(1, 3, 4)).tolist()
        == [[7 <= depth <= 9 for depth in range(DEPTH)]] * 9
    )
    slices = SLICES.load(tmp_path)["train"]
    own = slices.images[slices.groups == train.groups[0]][2].astype(float)  # slice 6
    means = own.reshape(3, SMALL, 2, SMALL, 2).mean(axis=(2, 4))
    assert abs(train.images[0, :, 8] - means).max() <= 0.5
    masks = train.annotations["tumour"][0]
    assert masks[8].sum() == 2 * 3  # rows 10 to 13, columns 20 to 24, of which the last is half
    assert np.argwhere(masks[8])[[0, -1]].tolist() == [[5, 10], [6, 12]]
    assert not masks[[6, 10]].any()
    assert train.labels.tolist() == [
        slices.labels[slices.groups == group][0] for group in train.groups
    ]


def test_public_volumes_are_of_patients_of_no_client_and_no_test_and_have_no_labels(tmp_path):
    private, public = VOLUMES.load(write(tmp_path)), PUBLIC.load(tmp_path)
    assert np.array_equal(public["train"].images, private["train"].images)
    offered = public["test"]
    assert offered.images.shape == (4, 3, DEPTH, SMALL, SMALL)
    assert offered.images.any()
    assert (offered.annotations["tumour"] == 255).all()
    assert Counter(offered.labels.tolist()) == {
        SITES.index(site): 1 for site in SITES if site != "EZ"
    }
    held = [set(split.groups.tolist()) for split in (*private.values(), offered)]
    assert sum(map(len, held)) == len(set.union(*held)) == 17


def test_a_patient_without_a_tumour_is_refused(tmp_path):
    masks = arrays()["masks"]
    masks[:5] = 0
    home = write(tmp_path, masks=masks)
    with pytest.raises(DataError, match="patient 0 has no slice with a tumour"):
        VOLUMES.load(home)


# -- what is stated, and damage --


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"images": np.zeros((85, 64, 64, 3), np.uint8)}, r"images are uint8 \(85, 64, 64, 3\)"),
        ({"images": np.zeros((85, SIDE, SIDE, 3), np.float32)}, "images are float32"),
        ({"masks": np.zeros((85, 64, 64), np.uint8)}, r"masks \(85, 64, 64\) are not 0 and 1"),
        ({"masks": np.full((85, SIDE, SIDE), 2, np.uint8)}, "are not 0 and 1 of every pixel"),
        ({"masks": np.full((85, SIDE, SIDE), 0.5)}, "are not 0 and 1 of every pixel"),
        ({"slice": np.arange(85) / 2}, r"slice has values that are not whole numbers"),
        ({"slice": np.zeros(3, np.int16)}, "not as many patients, slices and sites"),
        ({"site": np.array(["XX"] * 85)}, "unknown sites XX"),
        ({"patient": np.array([None] * 85)}, "is damaged"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path, changes, message):
    home = write(tmp_path, **changes)
    with pytest.raises(DataError, match=message):
        SLICES.load(home)


# -- one sequence at one institution --

WITHOUT_T1 = ("TCGA_DU_1", "TCGA_DU_2", "TCGA_HT_0")


def of_sequences(home):
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
    return of_sequences(tmp_path_factory.mktemp("lgg") / "data")


def tones(splits):
    """Of all slices, in the middle."""
    return sorted(tone for split in splits.values() for tone in split.images[:, 0, 64, 64].tolist())


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


test_what_every_reader_promises = promised(
    OF_FILES,
    [*((entry, write) for entry in (SLICES, VOLUMES)), (SOURCES["lgg-mri-du-t1"], of_sequences)],
)


def test_it_stands_in_for_brats_and_says_what_it_lacks(tmp_path):
    write(tmp_path)
    slices = catalogue.resolve("brats2018-slices", home=tmp_path)
    volumes = catalogue.resolve("brats2018", home=tmp_path)
    assert (slices.used, slices.origin) == ("lgg-mri", "surrogate")
    assert (volumes.used, volumes.origin) == ("lgg-mri-volumes", "surrogate")
    assert "only the whole tumour is marked" in volumes.note
    public = catalogue.resolve("brats2020", home=tmp_path, but_not=volumes.used)
    assert public.used == "lgg-mri-volumes-public"
    assert catalogue.resolve("lgg-mri", home=tmp_path).origin == "real"
    assert catalogue.resolve("lgg-mri-volumes", home=tmp_path).origin == "surrogate"
