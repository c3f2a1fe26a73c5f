"""Generated rooms: drawn by hand where that is possible, and true to the geometry that they state
everywhere.
"""

import hashlib
import math
from dataclasses import replace

import numpy as np
import pytest

from datasets import catalogue
from datasets.rendering import FOCAL, KINDS, MOST, SIZE, cast, corners, imagine
from datasets.sources import scenes
from datasets.sources.scenes import FAR, SEGMENT_NAMES, draw, photograph

SOURCE = scenes.SOURCES[0]
WALL, FLOOR = 0, 1


def rng(seed=0):
    return np.random.default_rng(seed)


def by_hand(**solid):
    """A level camera 1.5 m above a floor without tiles, 6 m from a back wall, with one solid ahead
    or none.
    """
    kind = KINDS.index(solid["kind"]) if solid else -1
    half = solid.get("half", (0.5, 1.0, 0.5))
    return replace(
        imagine(np.array([max(kind, 0)]), rng()),
        height=np.array([1.5]),
        pitch=np.zeros(1),
        turn=np.zeros(1),
        walls=np.array([[6.0, 50.0, 50.0]]),
        tiles=np.zeros(1),
        light=np.array([[0.0, 0.0, -1.0]]),
        room_colours=np.full((1, 4, 3), 0.8),
        kinds=np.array([[kind, -1, -1, -1]]),
        places=np.tile([[solid.get("x", 0.0), solid.get("z", 4.0)]], (1, MOST, 1)),
        scales=np.tile([half], (1, MOST, 1)),
        turns=np.zeros((1, MOST)),
    )


def picture(room):
    return {name: array[0] for name, array in photograph(room, rng()).items()}


# -- an empty room, by hand --

# The wall ends where a ray falls 1.5 m over 6 m: FOCAL / 4 = 6.93 pixels below the middle, between
# rows 22 and 23.
EDGE = 23


def test_the_floor_begins_where_the_wall_ends():
    segments = picture(by_hand())["segment_semantic"]
    assert (segments[:EDGE] == WALL).all()
    assert (segments[EDGE:] == FLOOR).all()


def test_depth_is_the_distance_along_the_ray():
    depth = picture(by_hand())["depth_euclidean"][0] / 255 * FAR
    x, y = (10.5 - SIZE / 2) / FOCAL, (30.5 - SIZE / 2) / FOCAL
    assert depth[0, 10] == pytest.approx(
        6 * math.sqrt(1 + x**2 + (15.5 / FOCAL) ** 2), abs=FAR / 500
    )
    assert depth[30, 10] == pytest.approx(1.5 / y * math.sqrt(1 + x**2 + y**2), abs=FAR / 500)


def test_the_wall_faces_the_camera_and_the_floor_faces_up():
    normal = picture(by_hand())["normal"]
    assert normal[:, 5, 5].tolist() == [128, 128, 255]
    assert normal[:, 30, 5].tolist() == [128, 255, 128]


def test_edges_are_the_two_rows_where_wall_and_floor_meet():
    edges = picture(by_hand())["edge_occlusion"][0]
    assert np.unique(np.nonzero(edges)[0]).tolist() == [EDGE - 1, EDGE]
    assert (edges[EDGE - 1 : EDGE + 1] == 255).all()


def test_the_light_from_behind_falls_on_the_wall_and_not_on_the_floor():
    image = picture(by_hand())["image"].mean(axis=(0, 2))
    assert image[:EDGE].mean() == pytest.approx(255 * 0.8, abs=1)
    assert image[EDGE:].mean() == pytest.approx(255 * 0.4, abs=1)


def test_texture_edges_are_steps_of_the_picture_without_its_noise():
    texture = picture(by_hand())["edge_texture"][0]
    assert np.unique(np.nonzero(texture)[0]).tolist() == [EDGE - 1, EDGE]
    assert texture[EDGE, 4] == round(255 * 2 * 0.4)  # the step from 0.8 to 0.4


def test_tiles_are_in_the_picture_and_no_edges_of_surfaces():
    tiled = picture(replace(by_hand(), tiles=np.array([0.3])))
    assert (tiled["edge_texture"][0, EDGE + 1 :] > 0).any()
    assert not tiled["edge_occlusion"][0, EDGE + 1 :].any()


# -- one solid, by hand --


@pytest.mark.parametrize("kind", KINDS)
def test_a_solid_is_labelled_by_its_kind(kind):
    segments = picture(by_hand(kind=kind, half=(0.5, 0.5 if kind == "sphere" else 1.0, 0.5)))[
        "segment_semantic"
    ]
    assert set(np.unique(segments)) == {WALL, FLOOR, SEGMENT_NAMES.index(kind)}


def test_a_sphere_is_nearest_in_its_middle_and_round():
    room = replace(by_hand(kind="sphere", half=(1.0, 1.0, 1.0)), height=np.array([1.0]))
    hits = cast(room, np.array([[[0.0, 0.0, 1.0], [0.0, 0.3, 1.0], [0.24, 0.0, 1.0]]]))
    assert hits.times[0, 0] == pytest.approx(3)
    assert hits.normals[0, 0] == pytest.approx([0, 0, -1])
    assert hits.times[0, 1] == pytest.approx(
        6
    )  # past it to the wall: a sphere of 1 m at 4 m ends at 1 / sqrt(15) = 0.258
    assert hits.solids[0].tolist() == [0, -1, 0]


def test_the_visible_corners_of_a_box_and_no_others_are_keypoints():
    # Front at 3.5 m, back at 4.5 m; top 0.5 m and bottom 1.5 m below the camera. The lower corners
    # at the back are hidden.
    room = by_hand(kind="box")
    found = corners(room)[0]
    found = found[~np.isnan(found).any(axis=1)]
    near, far = FOCAL / 3.5, FOCAL / 4.5
    expected = {
        (side * a / 2, b)
        for side in (-1, 1)
        for a, b in ((near, near / 2), (near, near * 1.5), (far, far / 2))
    }
    expected |= {
        (side * FOCAL * 50 / 6, FOCAL / 4) for side in (-1, 1)
    }  # of the room, far outside of the picture
    assert {tuple(np.round(point - SIZE / 2, 6)) for point in found} == {
        tuple(np.round(point, 6)) for point in expected
    }
    heat = picture(room)["keypoints2d"][0]
    for x, y in expected:
        column, row = x + SIZE / 2, y + SIZE / 2
        if 0 < column < SIZE:
            away = (int(column) + 0.5 - column) ** 2 + (int(row) + 0.5 - row) ** 2
            assert heat[int(row), int(column)] >= math.floor(255 * math.exp(-away / 2))
    assert heat[5].max() == 0


def test_spheres_and_cylinders_have_no_corners_and_a_cone_its_tip():
    def inside(kind):
        found = corners(by_hand(kind=kind))[0]
        return [tuple(point) for point in found if (np.abs(point - SIZE / 2) < SIZE / 2).all()]

    assert inside("sphere") == inside("cylinder") == []
    assert inside("cone") == [(SIZE / 2, pytest.approx(SIZE / 2 + FOCAL * 0.5 / 4))]


def test_the_class_is_the_kind_of_the_nearest_solid():
    split = draw(300, 5)
    segments = split.annotations["segment_semantic"].reshape(300, -1)
    depth = np.where(segments >= 2, split.annotations["depth_euclidean"].reshape(300, -1), 255)
    nearest = segments[np.arange(300), depth.argmin(axis=1)].astype(int)
    assert (nearest - 2).tolist() == split.labels.tolist()


def test_classes_are_balanced_and_shuffled_and_the_same_seed_draws_the_same():
    first, same, other = draw(60, 1), draw(60, 1), draw(60, 2)
    assert np.bincount(first.labels).tolist() == [10] * len(KINDS)
    assert first.labels.tolist() != sorted(first.labels.tolist())
    assert np.array_equal(first.images, same.images)
    assert all(
        np.array_equal(first.annotations[name], same.annotations[name])
        for name in SOURCE.annotations
    )
    assert not np.array_equal(first.images, other.images)


def test_the_picture_is_noisy_and_the_annotations_are_not():
    room = imagine(np.arange(6), rng(4))
    once, again = photograph(room, rng(1)), photograph(room, rng(2))
    noise = (once["image"].astype(float) - again["image"])[
        (once["image"] > 30) & (once["image"] < 225)
    ] / 255
    assert noise.std() == pytest.approx(0.03 * math.sqrt(2), rel=0.05)
    assert all(np.array_equal(once[name], again[name]) for name in SOURCE.annotations)


# -- the set --


@pytest.fixture(scope="module")
def splits():
    return catalogue.load("scenes")  # which checks sizes, classes and annotations


def test_the_splits_are_as_stated_and_share_no_image(splits):
    assert {name: len(split) for name, split in splits.items()} == SOURCE.sizes
    assert [np.unique(split.labels).tolist() for split in splits.values()] == [
        list(range(SOURCE.classes))
    ] * 3
    drawn = [image.tobytes() for split in splits.values() for image in split.images]
    assert len(set(drawn)) == len(drawn)
    assert SOURCE.files(None) == []


def test_every_segment_class_occurs_and_no_depth_is_cut_off(splits):
    annotations = splits["train"].annotations
    shares = (
        np.bincount(annotations["segment_semantic"].ravel(), minlength=len(SEGMENT_NAMES))
        / annotations["segment_semantic"].size
    )
    assert len(shares) == len(SEGMENT_NAMES)
    assert shares.min() > 0.01
    assert annotations["depth_euclidean"].max() < 255


def test_the_stated_mean_and_deviation_are_those_of_the_training_images(splits):
    images = splits["train"].images / 255
    assert images.mean(axis=(0, 2, 3)) == pytest.approx(SOURCE.mean, abs=0.01)
    assert images.std(axis=(0, 2, 3)) == pytest.approx(SOURCE.std, abs=0.01)


def test_the_rooms_are_those_of_earlier_releases(splits):
    found = hashlib.sha256(
        splits["test"].images.tobytes() + splits["test"].labels.astype("<i8").tobytes()
    )
    for name in sorted(SOURCE.annotations):
        found.update(splits["test"].annotations[name].tobytes())
    assert found.hexdigest()[:12] == "3b46c9e70fa4"
