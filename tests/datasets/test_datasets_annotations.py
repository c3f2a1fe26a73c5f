"""Several annotations of each image: what is held, found by name, and refused."""

from dataclasses import replace

import numpy as np
import pytest

from fedtables.datasets import catalogue
from fedtables.datasets.catalogue import check_annotations
from fedtables.datasets.source import (
    FINDINGS,
    INSTANCES,
    MAP,
    SEGMENTS,
    Annotation,
    DataError,
    DataSource,
    Split,
    annotated,
    annotations_of,
)

IMAGES, LABELS = np.zeros((2, 3, 4, 4), np.uint8), np.array([1, 0])
DEPTH, SEGMENT = np.full((2, 1, 4, 4), 9, np.uint8), np.full((2, 4, 4), 2, np.uint8)
SPLIT = Split(IMAGES, LABELS, {"depth": DEPTH, "segment": SEGMENT})
SOURCE = DataSource(
    name="rooms",
    title="Rooms",
    classes=2,
    shape=(3, 4, 4),
    sizes={"train": 2, "test": 2},
    mean=(0,) * 3,
    std=(1,) * 3,
    licence="",
    how_to_get="Draw them.",
    files=lambda home: [],
    load=lambda home: {"train": SPLIT, "test": SPLIT},
    annotations={"depth": Annotation(MAP, 1), "segment": Annotation(SEGMENTS, 3)},
)


@pytest.fixture
def rooms(monkeypatch):
    """Loads a source as the catalogue would."""

    def load(source):
        monkeypatch.setattr(catalogue, "source", lambda name: source)
        monkeypatch.setattr(catalogue, "reader_module", lambda name: __name__)
        catalogue.load.cache_clear()
        return catalogue.load("rooms")

    yield load
    catalogue.load.cache_clear()


def test_annotations_are_found_by_name_the_class_and_the_image_among_them():
    assert annotated(SPLIT, "class") is LABELS
    assert annotated(SPLIT, "image") is IMAGES
    assert annotated(SPLIT, "depth") is DEPTH
    assert {name: (entry.kind, entry.size) for name, entry in annotations_of(SOURCE).items()} == {
        "class": ("class", 2),
        "image": ("map", 3),
        "depth": ("map", 1),
        "segment": ("segments", 3),
    }


def test_an_annotation_that_is_not_there_is_refused_naming_those_that_are():
    with pytest.raises(
        DataError, match="no annotation 'normal'; they have class, image, depth, segment"
    ):
        annotated(SPLIT, "normal")
    with pytest.raises(DataError, match=r"no annotation 'depth'; they have class, image$"):
        annotated(Split(IMAGES, LABELS), "depth")


def test_a_pixel_without_label_is_no_class_too_many():
    unknown = np.where(np.arange(4) < 2, 255, SEGMENT).astype(np.uint8)
    check_annotations(SOURCE, replace(SPLIT, annotations={"depth": DEPTH, "segment": unknown}))


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"depth": DEPTH}, "no annotation 'segment'"),
        (
            {"depth": DEPTH.repeat(2, axis=1), "segment": SEGMENT},
            r"'depth' has shape \(2, 2, 4, 4\), expected \(2, 1, 4, 4\)",
        ),
        (
            {"depth": DEPTH, "segment": SEGMENT[:, None]},
            r"'segment' has shape \(2, 1, 4, 4\), expected \(2, 4, 4\)",
        ),
        ({"depth": DEPTH, "segment": SEGMENT + 1}, "'segment' has classes beyond the 3"),
    ],
)
def test_a_set_with_other_annotations_than_it_states_is_refused(rooms, own, message):
    split = replace(SPLIT, annotations=own)
    with pytest.raises(DataError, match=message):
        rooms(replace(SOURCE, load=lambda home: {"train": split, "test": split}))


def test_sizes_may_be_the_most_that_is_read(rooms):
    assert len(rooms(replace(SOURCE, sizes={"train": 5, "test": 2}, up_to=True))["train"]) == 2
    for wrong in (
        replace(SOURCE, sizes={"train": 5, "test": 2}),
        replace(SOURCE, sizes={"train": 1, "test": 2}, up_to=True),
    ):
        with pytest.raises(DataError, match="not the official ones"):
            rooms(wrong)


# -- findings and groups --

FOUND = np.array([[1, 0, 255], [0, 0, 1]], np.uint8)
FILMS = replace(
    SOURCE,
    annotations={"findings": Annotation(FINDINGS, 3, names=("mass", "nodule", "edema"))},
    load=lambda home: {
        split: Split(IMAGES, LABELS, {"findings": FOUND}, groups=np.array(own))
        for split, own in (("train", [7, 8]), ("test", [3, 3]))
    },
)


@pytest.mark.parametrize("names", [(), ("mass", "nodule"), ("mass", "nodule", "mass")])
def test_findings_need_a_name_each(names):
    with pytest.raises(ValueError, match="3 findings need as many different names"):
        Annotation(FINDINGS, 3, names=names)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (FOUND[:, :2], r"'findings' has shape \(2, 2\), expected \(2, 3\)"),
        (FOUND * 2, "'findings' has values other than 0, 1 and 255"),
        (DEPTH, r"'findings' has shape \(2, 1, 4, 4\), expected \(2, 3\)"),
    ],
)
def test_findings_of_other_shapes_or_values_are_refused(rooms, found, message):
    split = Split(IMAGES, LABELS, {"findings": found})
    with pytest.raises(DataError, match=message):
        rooms(replace(FILMS, load=lambda home: {"train": split, "test": split}))


# -- volumes --

VOLUMES = np.linspace(-3, 3, 2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 1, 3, 4, 5)
ORGAN = (VOLUMES[:, 0] > 1).astype(np.uint8)


def test_volumes_of_any_sides_have_classes_and_values_per_voxel():
    annotations = {"organ": ORGAN, "field": VOLUMES, "dose": np.zeros((2, 3, 3, 4, 5), np.uint8)}
    split = Split(VOLUMES, LABELS, annotations, groups=np.array([1, 1]))
    check_annotations(
        replace(
            SOURCE,
            shape=(1, 3, 4, 5),
            annotations={
                "organ": Annotation(SEGMENTS, 2),
                "field": Annotation(MAP, 1),
                "dose": Annotation(MAP, 3),
            },
        ),
        split,
    )
    assert annotated(split, "organ") is ORGAN


# -- instances --

OBJECTS = np.zeros((2, 4, 4), np.uint16)
OBJECTS[0, 0, :2], OBJECTS[0, 3], OBJECTS[1, 1, 1] = 1, 2, 1
CELLS = replace(SOURCE, annotations={"cells": Annotation(INSTANCES, 1)})


def cells(objects):
    return Split(IMAGES, LABELS, {"cells": objects})


def test_every_sample_has_any_number_of_objects(rooms):
    split = cells(OBJECTS)
    loaded = rooms(replace(CELLS, load=lambda home: {"train": split, "test": split}))
    assert annotated(loaded["test"], "cells") is OBJECTS
    assert annotations_of(CELLS)["cells"].size == 1
    check_annotations(CELLS, cells(np.zeros_like(OBJECTS)))  # none at all
    many = np.arange(1, 2 * 16 + 1).reshape(2, 4, 4).astype(np.uint16)
    many[1] -= 16
    check_annotations(CELLS, cells(many))


def test_object_numbers_with_gaps_are_refused():
    gap = OBJECTS.copy()
    gap[1, 2, 2] = 3
    with pytest.raises(DataError, match="of sample 1 leaves out object numbers; they are 1 to 3"):
        check_annotations(CELLS, cells(gap))


@pytest.mark.parametrize(
    ("kind", "array", "expected"),
    [
        (INSTANCES, OBJECTS.astype(np.uint8), "is uint8, expected uint16"),
        (INSTANCES, OBJECTS.astype(np.int32), "is int32, expected uint16"),
        (INSTANCES, OBJECTS[..., :3], "has shape"),
        (INSTANCES, OBJECTS[:1], "has shape"),
        (SEGMENTS, OBJECTS, "is uint16, expected uint8"),
        (SEGMENTS, SEGMENT.astype(np.float32), "is float32, expected uint8"),
        (MAP, DEPTH.astype(np.float64), "is float64, expected uint8 or float32"),
        (MAP, DEPTH[:, 0], "has shape"),
    ],
)
def test_an_annotation_of_another_type_or_size_is_refused(kind, array, expected):
    source = replace(SOURCE, annotations={"cells": Annotation(kind, 1)})
    with pytest.raises(DataError, match=f"annotation 'cells' .*{expected}"):
        check_annotations(source, cells(array))


def test_instances_have_size_one():
    with pytest.raises(ValueError, match="instances have size 1, not 2"):
        Annotation(INSTANCES, 2)


def test_sizes_that_a_paper_states_are_not_checked(rooms):
    stated = {"train": 5, "test": 1}
    assert len(rooms(replace(SOURCE, sizes=stated, about=True))["train"]) == 2
    with pytest.raises(DataError, match="not the official ones"):
        rooms(replace(SOURCE, sizes=stated))
