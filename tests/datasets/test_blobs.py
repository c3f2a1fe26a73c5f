"""Blobs: where they are, what they cover, and what is known of every pixel of a scene."""

import numpy as np
import pytest

from fedtables.datasets import blobs


def rng(seed=0):
    return np.random.default_rng(seed)


def test_a_blob_is_deepest_in_its_middle_and_ends_at_its_half_axes():
    [depth] = blobs.inside((4, 4), np.array([[0.25, -0.25]]), np.array([[1.0, 0.5]]))
    assert depth[2, 1] == 1  # pixels lie at -0.75, -0.25, 0.25 and 0.75
    assert depth[2, 2] == 0
    assert depth[0, 1] == 0
    assert depth[2, 3] == -3


@pytest.mark.parametrize(
    ("hsv", "colour"),
    [
        ((0, 1, 1), (1, 0, 0)),
        ((1 / 6, 1, 1), (1, 1, 0)),
        ((1 / 3, 1, 0.5), (0, 0.5, 0)),
        ((2 / 3, 0.5, 1), (0.5, 0.5, 1)),
        ((0.3, 0, 0.7), (0.7, 0.7, 0.7)),
    ],
)
def test_a_hue_is_the_colour_it_names(hsv, colour):
    assert blobs.rgb(*(np.array([part]) for part in hsv))[0] == pytest.approx(colour)


def test_a_finding_changes_the_films_that_show_it_and_a_patient_has_it_at_one_place():
    patients = np.array([0, 0, 1])
    before = blobs.film(patients, 32, rng())
    after = before.copy()
    blobs.show(after, 3, patients, np.array([True, True, False]), (5,))
    changed = after != before
    assert np.array_equal(changed[0], changed[1])
    assert changed[0].any()
    assert not changed[2].any()


def test_tumours_lie_in_heads_in_three_nested_parts():
    tissue = blobs.tissues(4, 32, rng())
    for head in tissue:
        assert {blobs.OEDEMA, blobs.ENHANCING, blobs.NECROSIS} <= set(np.unique(head))
        necrosis, beside = head == blobs.NECROSIS, np.zeros(head.shape, bool)
        for axis in range(3):
            for shift in (-1, 1):
                beside |= np.roll(necrosis, shift, axis)
        assert not np.isin(head[beside], (blobs.AIR, blobs.GREY, blobs.WHITE, blobs.FLUID)).any()


# -- scenes --


@pytest.fixture(scope="module")
def scenes():
    return blobs.scenes(np.arange(60) % len(blobs.KINDS), 32, rng())


def test_the_nearest_blob_is_of_the_kind_of_the_label(scenes):
    segments = scenes["segment_semantic"]
    depth = np.where(segments < 2, 255, scenes["depth_euclidean"][:, 0]).reshape(60, -1)
    nearest = segments.reshape(60, -1)[np.arange(60), depth.argmin(axis=1)]
    assert (nearest == 2 + np.arange(60) % len(blobs.KINDS)).all()


def test_the_floor_faces_up_and_comes_nearer_and_the_wall_faces_the_camera(scenes):
    wall, floor = (scenes["segment_semantic"] == number for number in (0, 1))
    normals = scenes["normal"].transpose(0, 2, 3, 1)
    assert (normals[wall] == (128, 128, 255)).all()
    assert (normals[floor] == (128, 255, 128)).all()
    metres = scenes["depth_euclidean"][:, 0]
    steps = (floor[:, 1:] & floor[:, :-1]) * (metres[:, 1:].astype(int) - metres[:, :-1])
    assert steps.max() <= 0 > steps.min()


def test_figures_are_as_many_as_classes_and_no_mirror_image_of_another():
    rows = {tuple(figure[start : start + 3] for start in (0, 3, 6)) for figure in blobs.FIGURES}
    assert len(rows) == 10
    asymmetric = {figure for figure in rows if tuple(row[::-1] for row in figure) != figure}
    assert not asymmetric & {tuple(row[::-1] for row in figure) for figure in asymmetric}


def test_objects_are_apart_and_none_lies_mostly_under_others():
    numbers, depth = blobs.objects(64, 40, (4, 8), rng())
    assert np.array_equal(numbers > 0, depth > 0)
    assert 10 < len(np.unique(numbers)) - 1 <= 40


def test_edges_are_where_classes_meet(scenes):
    segments, edges = scenes["segment_semantic"], scenes["edge_occlusion"][:, 0]
    meet = segments[:, :, 1:] != segments[:, :, :-1]
    assert (edges[:, :, 1:][meet] == 255).all()
    assert (edges[:, :, :-1][meet] == 255).all()
    assert set(np.unique(edges)) == {0, 255}
