"""T1 and T2 slices of BraTS 2020, of the official folders."""

import numpy as np
import pytest

from datasets import catalogue
from datasets.source import DataError
from datasets.sources import brats, brats_slices
from datasets.sources.brats_slices import SHOWN
from tests.datasets.promises import OF_FOLDERS
from tests.datasets.volumes import write_volume

pytestmark = pytest.mark.usefixtures("every_content_known")

SOURCES = {entry.name: entry for entry in brats_slices.SOURCES}
SIDES = (6, 4, 2)
TRAINING = "MICCAI_BraTS2020_TrainingData"
VALIDATION = "MICCAI_BraTS2020_ValidationData"


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(brats, "SIDES", SIDES)
    monkeypatch.setattr(brats, "CASES_2020", {"train": 3, "test": 2})
    monkeypatch.setattr(brats_slices, "SHOWN", slice(1, 5))
    catalogue.load.cache_clear()
    yield
    catalogue.load.cache_clear()


def volume(number, modality):
    """Whole slices of 100 times their place, and one pixel of 1000; a tone of the case beside it,
    100 more in T2.
    """
    slices = np.ones(SIDES, np.int16) * (100 * np.arange(6, dtype=np.int16))[:, None, None]
    slices[1, 0, 0] = 1000
    slices[1, 0, 1] = 10 * number + (100 if modality == "t2" else 0)
    return slices


def official(home, suffix=".nii.gz"):
    """Three training and two validation cases, of T1 and T2 alone."""
    names = [f"{TRAINING}/BraTS20_Training_00{number}" for number in (1, 2, 3)]
    names += [f"{VALIDATION}/BraTS20_Validation_00{number}" for number in (1, 2)]
    for number, name in enumerate(names, 1):
        for modality in ("t1", "t2"):
            case = home / name
            write_volume(case / f"{case.name}_{modality}{suffix}", volume(number, modality))
    return home


def test_the_papers_numbers(monkeypatch):
    monkeypatch.undo()
    assert [*range(155)[SHOWN]][:1] + [*range(155)[SHOWN]][-1:] == [14, 133]
    for source in SOURCES.values():
        assert dict(source.sizes) == {"train": 369 * 120, "test": 125 * 120}
        assert source.shape == (1, 256, 256)


@pytest.mark.parametrize("suffix", [".nii.gz", ".nii"])
@pytest.mark.parametrize("modality", ["t1", "t2"])
def test_the_middle_slices_of_every_case_are_read(tmp_path, suffix, modality):
    splits = SOURCES[f"brats2020-{modality}"].load(official(tmp_path, suffix))
    assert {name: split.groups.tolist() for name, split in splits.items()} == {
        "train": [0] * 4 + [1] * 4 + [2] * 4,
        "test": [3] * 4 + [4] * 4,
    }
    first = splits["train"].images[:4, 0, 126:130, 127:129]
    seen = [10, 110][modality == "t2"]
    assert first[0].tolist() == [[255, round(seen * 0.255)], *[[26, 26]] * 3]  # 25.5 goes to even
    assert first[1:, 0, 0].tolist() == [51, 76, 102]  # 200, 300 and 400 of 1000
    images = np.concatenate([split.images for split in splits.values()])
    tones = [10 * number + (100 if modality == "t2" else 0) for number in range(1, 6)]
    assert images[::4, 0, 126, 128].tolist() == [round(tone * 0.255) for tone in tones]
    outside = images.copy()
    outside[:, :, 126:130, 127:129] = 0
    assert not outside.any()


def test_neither_a_segmentation_nor_another_sequence_nor_the_table_is_needed(tmp_path):
    official(tmp_path)
    for path in tmp_path.rglob("*_t1.nii.gz"):
        path.unlink()
    assert len(SOURCES["brats2020-t2"].files(tmp_path)) == 5
    assert catalogue.resolve("brats2020-t2", home=tmp_path).origin == "real"
    with pytest.raises(DataError, match=r"Training_001 lacks BraTS20_Training_001_t1\.nii\.gz; 5"):
        SOURCES["brats2020-t1"].files(tmp_path)


# -- damage --


@pytest.mark.parametrize("missing", [TRAINING, VALIDATION])
def test_one_split_without_the_other_is_refused(tmp_path, missing):
    (official(tmp_path) / missing).rename(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=rf"has BraTS 2020 without {missing}\. Register"):
        catalogue.resolve("brats2020-t2", home=tmp_path)


def test_a_volume_of_another_size_is_refused(tmp_path):
    name = "BraTS20_Training_003"
    write_volume(official(tmp_path) / TRAINING / name / f"{name}_t1.nii.gz", np.ones((1, 4, 2)))
    with pytest.raises(DataError, match=rf"{name}_t1\.nii\.gz has 1 x 4 x 2 voxels, expected 6 x"):
        SOURCES["brats2020-t1"].load(tmp_path)


@pytest.mark.parametrize("promise", OF_FOLDERS)
@pytest.mark.parametrize(("entry", "write"), [(entry, official) for entry in SOURCES.values()])
def test_what_every_reader_promises(tmp_path, promise, entry, write):
    promise(entry, write, tmp_path)
