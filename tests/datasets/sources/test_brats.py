"""BraTS: the official folders, slices, volumes and institutions."""

import numpy as np
import pytest

from fedtables.datasets import catalogue
from fedtables.datasets.source import DataError
from fedtables.datasets.sources import brats
from fedtables.datasets.sources.brats import INSTITUTIONS, MODALITIES, as_bytes, institution, scaled
from tests.datasets.promises import OF_FOLDERS, promised
from tests.datasets.volumes import write_volume

SOURCES = {entry.name: entry for entry in brats.SOURCES}
SIDES = (4, 6, 5)
HIGH = ("Brats18_2013_10_1", "Brats18_CBICA_AAB_1", "Brats18_TCIA02_491_1")
LOW = ("Brats18_2013_1_1", "Brats18_TCIA09_141_1")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(brats, "SIDES", SIDES)
    monkeypatch.setattr(brats, "CASES", {"HGG": len(HIGH), "LGG": len(LOW)})
    monkeypatch.setattr(brats, "CASES_2020", {"train": 3, "test": 2})
    monkeypatch.setattr(brats, "TESTED", (HIGH[1], LOW[0]))
    monkeypatch.setattr(brats, "SLICES_TESTED", 1)


def case(folder, number, labelled=True, suffix=".nii.gz"):
    """A case whose voxels rise to 100 (1 + number) times the place of the modality; slice 1 has ten
    voxels of tumour, slice 2 nine, and slice 3 twelve of all three parts.
    """
    folder.mkdir(parents=True)
    ramp = np.arange(np.prod(SIDES)).reshape(SIDES)
    for place, name in enumerate(MODALITIES, 1):
        top = 100 * (1 + number) * place
        write_volume(
            folder / f"{folder.name}_{name}{suffix}", (ramp * top // ramp.max()).astype(np.int16)
        )
    parts = np.zeros(SIDES, int)
    parts[1, :2] = 2
    parts[2].reshape(-1)[:9] = 1
    parts[3, :4, :3] = [1, 2, 4]
    if labelled:
        write_volume(folder / f"{folder.name}_seg{suffix}", parts.astype(np.int16))
    return folder


def official(home, suffix=".nii.gz"):
    folder = home / "MICCAI_BraTS_2018_Data_Training"
    for number, name in enumerate((*HIGH, *LOW)):
        case(folder / ("HGG" if name in HIGH else "LGG") / name, number, suffix=suffix)
    (folder / "survival_data.csv").write_text("")
    return folder


def of_2020(home):
    training = home / "MICCAI_BraTS2020_TrainingData"
    validation = home / "MICCAI_BraTS2020_ValidationData"
    for number in range(3):
        case(training / f"BraTS20_Training_00{number + 1}", number)
    for number in range(2):
        case(validation / f"BraTS20_Validation_00{number + 1}", number, labelled=False)
    (training / "name_mapping.csv").write_text(
        "Grade,BraTS_2017_subject_ID,BraTS_2018_subject_ID,TCGA_TCIA_subject_ID,"
        "BraTS_2019_subject_ID,BraTS_2020_subject_ID\n"
        "HGG,Brats17_CBICA_AAB_1,Brats18_CBICA_AAB_1,NA,BraTS19_CBICA_AAB_1,BraTS20_Training_001\n"
        "HGG,NA,Brats18_TCIA02_491_1,NA,NA,BraTS20_Training_002\n"
        "HGG,NA,NA,NA,NA,BraTS20_Training_003\n"
    )
    return training, validation


# -- numbers --


def test_the_official_numbers(monkeypatch):
    monkeypatch.undo()
    assert SOURCES["brats2018"].shape == (4, 155, 240, 240)
    assert dict(SOURCES["brats2018"].sizes) == {"train": 242, "test": 43}
    assert SOURCES["brats2018-slices"].shape == (3, 240, 240)
    assert dict(SOURCES["brats2020"].sizes) == {"train": 369, "test": 125}
    assert len(set(brats.TESTED)) == 43
    assert [institution(name) for name in ("Brats18_2013_8_1", "Brats18_CBICA_AYW_1")] == [0, 1]


def test_a_case_belongs_to_the_institution_of_its_name():
    names = ["Brats18_2013_3_1", "BraTS19_CBICA_AAB_1", "Brats17_TCIA13_642_1", "BraTS19_TMC_1_1"]
    assert [INSTITUTIONS[institution(name)] for name in names] == ["2013", "CBICA", "TCIA", "other"]
    assert INSTITUTIONS[institution("")] == INSTITUTIONS[institution("BraTS20")] == "other"


def test_scaling_rounds_and_cuts_off():
    values = np.array([-5, 0, 1, 50, 99, 100, 300])
    assert scaled(values, 100).tolist() == [0, 0, 3, 128, 252, 255, 255]
    assert scaled(np.arange(256), 255).tolist() == [*range(256)]
    assert not scaled(np.array([0, 0]), 0).any()


def test_one_bright_voxel_of_a_thousand_does_not_set_the_scale():
    volume = np.append(np.full(999, 200), [4000, 0, 0])
    assert as_bytes(volume).tolist() == [255] * 1000 + [0, 0]
    assert as_bytes(np.array([0, 0])).tolist() == [0, 0]
    assert as_bytes(np.array([0, 100, 200])).tolist() == [0, 128, 255]


# -- volumes of 2018 --


@pytest.mark.parametrize("suffix", [".nii.gz", ".nii"])
def test_volumes_have_four_modalities_and_their_parts(tmp_path, suffix):
    official(tmp_path, suffix)
    assert len(SOURCES["brats2018"].files(tmp_path)) == 25
    splits = SOURCES["brats2018"].load(tmp_path)
    assert {name: split.images.shape for name, split in splits.items()} == {
        "train": (3, 4, *SIDES),
        "test": (2, 4, *SIDES),
    }
    test = splits["test"]
    assert [INSTITUTIONS[label] for label in test.labels] == ["2013", "CBICA"]  # sorted by name
    assert {name: split.groups.tolist() for name, split in splits.items()} == {
        "train": [0, 3, 4],
        "test": [1, 2],
    }
    assert (test.images.reshape(2, 4, -1)[:, :, -1] == 255).all()
    assert (np.diff(test.images[0, 0].reshape(-1).astype(int)) >= 0).all()
    parts = test.annotations["tumour"][0]
    assert [(parts[3] == part).sum() for part in (1, 2, 4)] == [4, 4, 4]
    assert (parts[1, :2] == 2).all()


# -- slices --


def test_slices_with_enough_of_a_tumour_are_taken(tmp_path):
    official(tmp_path)
    assert len(SOURCES["brats2018-slices"].files(tmp_path)) == 6
    splits = SOURCES["brats2018-slices"].load(tmp_path)
    assert {name: len(split) for name, split in splits.items()} == {"train": 4, "test": 2}
    train = splits["train"]
    assert train.groups.tolist() == [1, 1, 2, 2]
    assert splits["test"].groups.tolist() == [0, 0]
    assert [INSTITUTIONS[label] for label in train.labels] == ["CBICA", "CBICA", "TCIA", "TCIA"]
    assert train.annotations["tumour"].sum(axis=(1, 2)).tolist() == [10, 12, 10, 12]
    assert set(np.unique(train.annotations["tumour"])) == {0, 1}
    assert (train.images.max(axis=(2, 3)) == 255).all()  # each slice on its own scale
    assert np.array_equal(train.images[:, 0], train.images[:, 2])


# -- 2020 --


def test_the_validation_data_of_2020_are_unlabelled(tmp_path):
    of_2020(tmp_path)
    assert len(SOURCES["brats2020"].files(tmp_path)) == 1 + 15 + 8
    splits = SOURCES["brats2020"].load(tmp_path)
    assert [INSTITUTIONS[label] for label in splits["train"].labels] == ["CBICA", "TCIA", "other"]
    assert [INSTITUTIONS[label] for label in splits["test"].labels] == ["other", "other"]
    assert (splits["test"].annotations["tumour"] == 255).all()
    assert set(np.unique(splits["train"].annotations["tumour"])) == {0, 1, 2, 4}
    assert [*splits["train"].groups, *splits["test"].groups] == [*range(5)]


def test_institutions_of_the_validation_data_are_read_where_their_table_is(tmp_path):
    _, validation = of_2020(tmp_path)
    (validation / "name_mapping_validation_data.csv").write_text(
        "BraTS_2018_subject_ID,BraTS_2020_subject_ID\n"
        "Brats18_2013_30_1,BraTS20_Validation_001\nNA,BraTS20_Validation_002\n"
    )
    labels = SOURCES["brats2020"].load(tmp_path)["test"].labels
    assert [INSTITUTIONS[label] for label in labels] == ["2013", "other"]


def test_each_half_of_2020_may_lie_in_a_folder_of_its_own(tmp_path):
    for half in of_2020(tmp_path):  # as Kaggle's copy has them
        outer = tmp_path / half.name.removeprefix("MICCAI_")
        outer.mkdir()
        half.rename(outer / half.name)
    assert len(SOURCES["brats2020"].files(tmp_path)) == 1 + 15 + 8


@pytest.mark.parametrize("missing", ["MICCAI_BraTS2020_ValidationData", "name_mapping.csv"])
def test_2020_half_there_is_refused(tmp_path, missing):
    training, validation = of_2020(tmp_path)
    if missing.endswith(".csv"):
        (training / missing).unlink()
    else:
        validation.rename(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=missing):
        SOURCES["brats2020"].files(tmp_path)


# -- slices of one sequence --


def test_the_middle_slices_of_every_case_are_read_and_nothing_else_is_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(brats, "SHOWN", slice(1, 3))
    of_2020(tmp_path)
    for path in [
        path for path in tmp_path.rglob("*") if path.is_file() and "_t2." not in path.name
    ]:
        path.unlink()
    assert len(SOURCES["brats2020-t2"].files(tmp_path)) == 5
    splits = SOURCES["brats2020-t2"].load(tmp_path)
    assert {name: split.groups.tolist() for name, split in splits.items()} == {
        "train": [0, 0, 1, 1, 2, 2],
        "test": [3, 3, 4, 4],
    }
    # Voxels 30 and 60 of a ramp, 75 and 151; the brightest that is shown has 224.
    assert splits["train"].images[:2, 0, 125, 125].tolist() == [85, 172]
    with pytest.raises(DataError, match=r"TrainingData has none of the files of the set where"):
        SOURCES["brats2020-t1"].files(tmp_path)


# -- damage --


def test_a_folder_with_some_cases_is_refused(tmp_path):
    folder = official(tmp_path)
    (folder / "LGG" / LOW[1]).rename(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"LGG has 1 of 2 cases\. Complete it"):
        catalogue.resolve("brats2018", home=tmp_path)
    (folder / "LGG").rename(tmp_path / "away")
    with pytest.raises(DataError, match="LGG has 0 of 2 cases"):
        catalogue.resolve("brats2018", home=tmp_path)


@pytest.mark.parametrize("what", ["t2", "seg"])
def test_a_volume_of_another_size_is_refused(tmp_path, what):
    path = official(tmp_path) / "HGG" / HIGH[0] / f"{HIGH[0]}_{what}.nii.gz"
    write_volume(path, np.zeros((4, 6, 4), np.int16))
    with pytest.raises(DataError, match=rf"_{what}\.nii\.gz has 4 x 6 x 4 voxels, expected 4 x 6"):
        SOURCES["brats2018"].load(tmp_path)


def test_other_labels_are_refused(tmp_path):
    path = official(tmp_path) / "HGG" / HIGH[0] / f"{HIGH[0]}_seg.nii.gz"
    write_volume(path, np.full(SIDES, 3, np.int16))
    with pytest.raises(DataError, match="labels other than 0, 1, 2 and 4"):
        SOURCES["brats2018"].load(tmp_path)


def test_another_case_in_the_place_of_one_of_the_test_split_is_refused(tmp_path, monkeypatch):
    official(tmp_path)
    monkeypatch.setattr(brats, "TESTED", ("Brats18_2013_99_1",))
    with pytest.raises(DataError, match="lacks the case Brats18_2013_99_1"):
        SOURCES["brats2018"].load(tmp_path)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e30, 0.5, 70_000])
@pytest.mark.parametrize("what", ["t2", "seg"])
def test_voxels_that_are_no_numbers_of_16_bits_are_refused(tmp_path, what, value):
    folder = tmp_path / "HGG" / HIGH[0]
    case(folder, 0)
    volume = np.zeros(brats.SIDES, np.float32)
    volume[0, 0, 0] = value
    write_volume(folder / f"{HIGH[0]}_{what}.nii.gz", volume)
    with pytest.raises(DataError, match=rf"{what}\.nii\.gz has values"):
        brats.slices_of(*(folder / f"{HIGH[0]}_{part}.nii.gz" for part in ("t2", "seg")))


def test_a_table_that_names_a_case_twice_or_not_at_all_is_refused(tmp_path):
    """As one whose last name was cut off does."""
    training, _ = of_2020(tmp_path)
    table = training / "name_mapping.csv"
    text = table.read_text()
    table.write_text(text.replace("Training_003", "Training_00"))
    with pytest.raises(DataError, match=r"name_mapping\.csv does not name BraTS20_Training_003"):
        SOURCES["brats2020"].load(tmp_path)
    table.write_text(text.replace("Training_003", "Training_001"))
    with pytest.raises(DataError, match=r"name_mapping\.csv names BraTS20_Training_001 2 times"):
        SOURCES["brats2020"].load(tmp_path)


test_what_every_reader_promises = promised(
    OF_FOLDERS,
    [
        (SOURCES["brats2018"], official),
        (SOURCES["brats2018-slices"], official),
        (SOURCES["brats2020"], of_2020),
    ],
)


def test_the_papers_numbers_of_slices(monkeypatch):
    monkeypatch.undo()
    assert [*range(155)[brats.SHOWN]][:1] + [*range(155)[brats.SHOWN]][-1:] == [14, 133]
    for source in (SOURCES["brats2020-t1"], SOURCES["brats2020-t2"]):
        assert dict(source.sizes) == {"train": 369 * 120, "test": 125 * 120}
        assert source.shape == (1, 256, 256)
