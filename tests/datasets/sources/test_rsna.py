"""RSNA Pneumonia: a small folder in the competition's layout."""

import pytest

from fedtables.datasets.films import FULL
from fedtables.datasets.source import DataError
from fedtables.datasets.sources import rsna
from tests.datasets.promises import OF_FOLDERS, promised

[SOURCE] = rsna.SOURCES
ROWS = ["b1,,,,,0", "a2,264.0,152.0,213.0,379.0,1", "a2,562.0,152.0,256.0,453.0,1", "c3,,,,,0"]


def write_table(home, rows=ROWS, folder="rsna_pneumonia"):
    (home / folder / "stage_2_train_images").mkdir(parents=True, exist_ok=True)
    (home / folder / "stage_2_train_labels.csv").write_text(
        "\n".join(["patientId,x,y,width,height,Target", *rows, ""])
    )


def write(home, folder="rsna_pneumonia"):
    pydicom = pytest.importorskip("pydicom", reason="pydicom is not installed")
    write_table(home, folder=folder)
    for index, name in enumerate(("a2", "b1", "c3")):
        meta = pydicom.dataset.FileMetaDataset()
        meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        meta.MediaStorageSOPClassUID = pydicom.uid.SecondaryCaptureImageStorage
        meta.MediaStorageSOPInstanceUID = f"1.2.{index}"
        data = pydicom.Dataset()
        data.file_meta = meta
        data.Rows, data.Columns = 8, 8
        data.SamplesPerPixel, data.PhotometricInterpretation, data.PixelRepresentation = (
            1,
            "MONOCHROME2",
            0,
        )
        data.BitsAllocated, data.BitsStored, data.HighBit = 8, 8, 7
        data.PixelData = bytes([40 + index]) * 64
        data.save_as(
            home / folder / "stage_2_train_images" / f"{name}.dcm", enforce_file_format=True
        )


@pytest.mark.parametrize("folder", ["rsna_pneumonia", "rsna-pneumonia-detection-challenge"])
def test_each_film_is_read_once_in_the_order_of_the_table(tmp_path, folder):
    write(tmp_path, folder)
    train = SOURCE.load(tmp_path)["train"]
    assert train.labels.tolist() == [0, 1, 0]
    assert train.images.shape == (3, 1, FULL, FULL)
    assert train.images[:, 0, 9, 9].tolist() == [41, 40, 42]  # of one tone, and so not equalised
    assert len(set(train.groups.tolist())) == 3


@pytest.mark.parametrize("rows", [["a2,,,,,2"], ["a2,,,,,1", "a2,,,,,0"]])
def test_targets_that_are_none_or_disagree_are_refused(tmp_path, rows):
    write_table(tmp_path, rows)
    with pytest.raises(DataError, match="the targets of a2 are not all 0 or all 1"):
        SOURCE.files(tmp_path)


test_what_every_reader_promises = promised(OF_FOLDERS, [(SOURCE, write)])
