"""Rays and surfaces are true to the geometry of the rooms."""

import math

import numpy as np
import pytest

from datasets.rendering import KINDS, cast, imagine, pixel_rays

# -- any room --


def level(room, index, solid, points):
    """Of points (p, 3) in a room: below 1 inside of the solid, 1 on its surface, above 1 outside,
    as its kind defines.
    """
    angle = room.turns[index, solid]
    dx, dz = (
        points[:, 0] - room.places[index, solid, 0],
        points[:, 2] - room.places[index, solid, 1],
    )
    x = (dx * math.cos(angle) - dz * math.sin(angle)) / room.scales[index, solid, 0]
    z = (dx * math.sin(angle) + dz * math.cos(angle)) / room.scales[index, solid, 2]
    y = points[:, 1] / room.scales[index, solid, 1]
    return {
        "sphere": np.sqrt(x**2 + (y - 1) ** 2 + z**2),
        "box": np.maximum(np.maximum(abs(x), abs(z)), y),
        "cylinder": np.maximum(np.hypot(x, z), y),
        "cone": np.hypot(x, z) + y,
        "pyramid": np.maximum(abs(x), abs(z)) + y,
        "roof": np.maximum(abs(x) + y, abs(z)),
    }[KINDS[room.kinds[index, solid]]]


@pytest.mark.parametrize("seed", range(3))
def test_rays_end_on_the_first_surface_in_their_way(seed):
    room = imagine(np.arange(12) % len(KINDS), np.random.default_rng(seed))
    rays = pixel_rays(room)
    hits = cast(room, rays)
    for index in range(len(room)):
        start = np.array([0, room.height[index], 0])
        ends = start + rays[index] * hits.times[index][:, None]
        for solid in np.flatnonzero(room.kinds[index] >= 0):
            own = hits.solids[index] == solid
            assert level(room, index, solid, ends[own]) == pytest.approx(1, abs=1e-9)
            for share in np.linspace(0.3, 0.999, 30):  # of the way there
                on_the_way = start + rays[index] * share * hits.times[index][:, None]
                above = on_the_way[:, 1] > 1e-6
                assert (level(room, index, solid, on_the_way[above]) > 1 - 1e-9).all()
        assert ends[hits.surfaces[index] == 0][:, 1] == pytest.approx(0, abs=1e-9)
        assert (ends[:, 1] > -1e-9).all()


@pytest.mark.parametrize("seed", range(3))
def test_normals_are_of_length_one_face_the_camera_and_are_those_of_the_surface(seed):
    room = imagine(np.arange(12) % len(KINDS), np.random.default_rng(seed))
    rays = pixel_rays(room)
    hits = cast(room, rays)
    assert (hits.normals**2).sum(axis=-1) == pytest.approx(1)
    assert ((hits.normals * rays).sum(axis=-1) < 1e-9).all()
    step = 1e-6
    for index in range(len(room)):
        ends = rays[index] * hits.times[index][:, None] + [0, room.height[index], 0]
        for surface in np.unique(hits.surfaces[index]):
            own = hits.surfaces[index] == surface
            points, normals = ends[own], hits.normals[index][own]
            if surface < 4:
                assert (points - points[0]) @ normals[0] == pytest.approx(0, abs=1e-9)
                continue
            solid = hits.solids[index][own][0]
            # The solid's function must grow along the normal and stay, to first order, across it.
            assert (level(room, index, solid, points + step * normals) > 1 + step / 2).all()
            across = np.cross(normals, rays[index][own])
            across /= np.linalg.norm(across, axis=1, keepdims=True)
            slope = (
                (
                    level(room, index, solid, points + step * across)
                    - level(room, index, solid, points - step * across)
                )
                / 2
                / step
            )
            assert np.median(abs(slope)) < 1e-4
