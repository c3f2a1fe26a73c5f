"""Taskonomy: a small folder in each of its layouts, read as its README says."""

import numpy as np
import pytest
from PIL import Image

from fedtables.datasets.catalogue import check_annotations
from fedtables.datasets.source import DataError
from fedtables.datasets.sources import taskonomy
from fedtables.datasets.sources.taskonomy import (
    ANNOTATIONS,
    SIZE,
    read_class,
    read_map,
    read_segments,
)
from tests.datasets.promises import OF_FILES, promised

SOURCE = taskonomy.SOURCES[0]
DOMAINS = ("rgb", "class_object", *ANNOTATIONS)
SIDE = 2 * SIZE
LAYOUTS = ("{domain}/taskonomy/{building}", "{building}_{domain}/{domain}", "{domain}/{building}")


def png(path, values):
    Image.fromarray(values).save(path)


def full(value, dtype=np.uint8):
    return np.full((SIDE, SIDE), value, dtype)


def write_view(home, building, stem, value, layout=LAYOUTS[0]):
    """The files of one image, all told apart by `value`."""
    paths = {}
    for domain in DOMAINS:
        folder = home / "taskonomy" / layout.format(domain=domain, building=building)
        folder.mkdir(parents=True, exist_ok=True)
        ending = {
            "class_object": "class_object.npy",
            "segment_semantic": "segmentsemantic.png",
        }.get(domain, f"{domain}.png")
        paths[domain] = folder / f"{stem}_domain_{ending}"
    png(paths["rgb"], np.stack([full(value), full(100), full(200)], axis=-1))
    np.save(paths["class_object"], np.eye(1000)[value])
    png(paths["depth_euclidean"], full(512 * value, np.uint16))
    png(paths["normal"], np.stack([full(127), full(255), full(value)], axis=-1))
    for domain in ("edge_occlusion", "edge_texture", "keypoints2d"):
        png(paths[domain], full(650, np.uint16))
    png(paths["segment_semantic"], full(value % 18))
    return paths


def write_list(home, rows, name="tiny", end="\n"):
    home.joinpath("taskonomy").mkdir(parents=True, exist_ok=True)
    text = end.join(["id,train,val,test", *rows, ""])
    (home / "taskonomy" / f"train_val_test_{name}.csv").write_bytes(text.encode())


ROWS = ["hanson,1,0,0", "merom,1,0,0", "corozal,0,1,0", "ihlen,0,0,1"]


def write_official(home, layout=LAYOUTS[0], end="\n"):
    write_list(home, ROWS, end=end)
    write_view(home, "merom", "point_0_view_1", 3, layout)
    write_view(home, "hanson", "point_5_view_0", 2, layout)
    write_view(home, "hanson", "point_10_view_0", 1, layout)
    write_view(home, "corozal", "point_0_view_0", 4, layout)
    write_view(home, "ihlen", "point_0_view_0", 5, layout)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_splits_hold_the_images_of_their_buildings_by_building_and_name(tmp_path, layout, end):
    write_official(tmp_path, layout, end)
    splits = SOURCE.load(tmp_path)
    assert {name: split.labels.tolist() for name, split in splits.items()} == {
        "train": [1, 2, 3],
        "valid": [4],
        "test": [5],
    }
    assert splits["train"].images[:, :, 9, 9].tolist() == [
        [1, 100, 200],
        [2, 100, 200],
        [3, 100, 200],
    ]
    assert splits["train"].images.shape == (3, 3, SIZE, SIZE)


def test_every_domain_is_an_annotation_on_its_scale(tmp_path):
    write_official(tmp_path)
    test = SOURCE.load(tmp_path)["test"]
    check_annotations(SOURCE, test)
    found = {name: array[0, ..., 7, 7].tolist() for name, array in test.annotations.items()}
    assert found == {
        "depth_euclidean": [round(255 * 5 * 512 / 8000)],
        "normal": [127, 255, 5],
        "edge_occlusion": [round(255 * 650 / 65535 / 0.04)],
        "edge_texture": [round(255 * 650 / 65535 / 0.25)],
        "keypoints2d": [round(255 * 650 / 65535 / 0.025)],
        "segment_semantic": 4,
    }


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_a_set_without_images_for_a_split_is_refused(tmp_path, split):
    write_official(tmp_path)
    column = {"train": "1,0,0", "valid": "0,1,0", "test": "0,0,1"}[split]
    write_list(tmp_path, [row for row in ROWS if not row.endswith(column)])
    with pytest.raises(DataError, match=f"taskonomy lacks images of the split '{split}'"):
        SOURCE.files(tmp_path)


def test_a_set_without_a_list_of_buildings_is_refused(tmp_path):
    write_official(tmp_path)
    (tmp_path / "taskonomy" / "train_val_test_tiny.csv").unlink()
    with pytest.raises(DataError, match=r"taskonomy lacks train_val_test_tiny\.csv"):
        SOURCE.files(tmp_path)
    assert SOURCE.files(tmp_path / "nowhere") == []


def test_the_longest_list_counts_and_buildings_that_are_not_there_are_passed_over(tmp_path):
    write_official(tmp_path)
    write_list(
        tmp_path, ["merom,1,0,0", "absent,1,0,0", "corozal,0,0,1", "ihlen,0,1,0"], name="full"
    )
    splits = SOURCE.load(tmp_path)
    assert [len(splits[name]) for name in ("train", "valid", "test")] == [1, 1, 1]
    assert splits["valid"].labels.tolist() == [5]


@pytest.mark.parametrize("domain", DOMAINS)
def test_an_image_that_lacks_a_file_is_left_out(tmp_path, domain):
    write_official(tmp_path)
    write_view(tmp_path, "hanson", "point_5_view_0", 2)[domain].unlink()
    assert SOURCE.load(tmp_path)["train"].labels.tolist() == [1, 3]


def test_of_many_images_the_most_are_read_evenly_spaced(tmp_path, monkeypatch):
    monkeypatch.setitem(taskonomy.MOST, "train", 2)
    write_official(tmp_path)
    write_view(tmp_path, "merom", "point_9_view_1", 7)
    assert SOURCE.load(tmp_path)["train"].labels.tolist() == [
        1,
        3,
    ]  # the first and the third of four


def test_a_map_of_other_channels_is_refused(tmp_path):
    write_official(tmp_path)
    png(write_view(tmp_path, "ihlen", "point_0_view_0", 5)["normal"], full(1))
    with pytest.raises(DataError, match=r"_domain_normal\.png .*expected 3 channels, found 1"):
        SOURCE.load(tmp_path)


# -- one file --


def test_a_map_is_reduced_to_the_mean_and_cut_off_at_its_full_scale(tmp_path):
    values = full(0, np.uint16)
    values[0, :2] = 4000, 8000  # the first pixel of the small map covers these two and two of 0
    values[2, 2:4] = values[3, 2:4] = 65535
    png(tmp_path / "a.png", values)
    found = read_map(tmp_path / "a.png", 8000 / 65535)
    assert found.shape == (1, SIZE, SIZE)
    assert found[0, :2, :2].tolist() == [[round(255 * 3 / 8), 0], [0, 255]]


def test_segments_take_the_middle_pixel_and_uncertain_ones_have_no_class(tmp_path):
    values = np.zeros((3 * SIZE, 3 * SIZE), np.uint8)
    values[1::3, 1::3] = 1 + np.arange(SIZE * SIZE).reshape(SIZE, SIZE) % 17
    values[1, 1] = 0
    png(tmp_path / "a.png", values)
    found = read_segments(tmp_path / "a.png")
    assert found[0, :4].tolist() == [255, 1, 2, 3]
    assert set(np.unique(found)) == {*range(17), 255}
    assert ANNOTATIONS["segment_semantic"].size == 17


def test_segments_of_other_classes_or_channels_are_refused(tmp_path):
    png(tmp_path / "a.png", full(18))
    png(tmp_path / "b.png", np.stack([full(1)] * 3, axis=-1))
    for name in ("a.png", "b.png"):
        with pytest.raises(ValueError, match="expected one channel of values 0 to 17"):
            read_segments(tmp_path / name)


def test_the_class_is_the_likeliest_of_a_thousand(tmp_path):
    np.save(tmp_path / "a.npy", np.linspace(0, 1, 1000)[::-1].reshape(1, 1000))
    assert read_class(tmp_path / "a.npy") == 0
    np.save(tmp_path / "a.npy", np.zeros(365))
    with pytest.raises(ValueError, match="expected 1000 probabilities, found 365"):
        read_class(tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", np.where(np.arange(1000) == 7, np.nan, 0.001))  # NaN is likeliest
    with pytest.raises(ValueError, match="expected 1000 probabilities, found 1000 float64"):
        read_class(tmp_path / "a.npy")


test_what_every_reader_promises = promised(OF_FILES, [(SOURCE, write_official)])
