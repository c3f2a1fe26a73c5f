"""Generated rooms with two to four solids each, annotated for several tasks: the synthetic stand-in
for Taskonomy.

The rooms are those of `datasets.rendering`. One ray is cast through the centre of each pixel, so
that what is annotated is known exactly and not estimated from the picture. Surfaces are matt
(Lambert's law, one far light), the floor is tiled, and noise is added to the picture only. The
names of the annotations are those of Taskonomy's domains; what they hold is in `ANNOTATIONS`. The
class of an image is the kind of the solid that is nearest to the camera, each as frequent as any
other. They exercise every code path of a multi-task data set; they are not natural images, and
every table made from them says so.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from datasets.annotations import MAP, SEGMENTS, AnnotatedSource, AnnotatedSplit, Annotation
from datasets.rendering import (
    KINDS,
    SIZE,
    Scenes,
    cast,
    corners,
    imagine,
    in_camera,
    pixel_rays,
    turned,
)
from datasets.source import SYNTHETIC, Split

SEGMENT_NAMES = ("wall", "floor", *KINDS)
FAR = 10.0
"""Metres; what a depth of 255 stands for."""

ANNOTATIONS = {
    "depth_euclidean": Annotation(
        MAP, 1, f"distance from the camera along the ray, 0 to {FAR:.0f} m"
    ),
    "normal": Annotation(
        MAP, 3, "unit normals, -1 to 1, in the camera's frame: x right, y up, z towards the camera"
    ),
    "edge_occlusion": Annotation(
        MAP, 1, "255 where one of the four neighbours shows another flat or curved surface, else 0"
    ),
    "edge_texture": Annotation(
        MAP, 1, "Sobel gradient of the grey picture without noise; 255 for a step of half its range"
    ),
    "keypoints2d": Annotation(
        MAP,
        1,
        "Gaussian bumps, of one pixel's deviation, at visible corners of solids and of the floor"
        " and at tips of cones",
    ),
    "segment_semantic": Annotation(SEGMENTS, len(SEGMENT_NAMES), ", ".join(SEGMENT_NAMES)),
}


def _bumps(points: np.ndarray) -> np.ndarray:
    """Maps (n, 32, 32) in [0, 1] of Gaussian bumps at points (n, p, 2), the higher one where they
    overlap.
    """
    centres = np.arange(SIZE) + 0.5
    along = np.nan_to_num(np.exp(-((centres - points[..., None]) ** 2) / 2))
    heat = np.zeros((len(points), SIZE, SIZE))
    for i in range(points.shape[1]):
        np.maximum(heat, along[:, i, 1, :, None] * along[:, i, 0, None, :], out=heat)
    return heat


def _borders(surfaces: np.ndarray) -> np.ndarray:
    """Whether each pixel of (n, 32, 32) has a neighbour of another surface, left, right, above or
    below.
    """
    borders = np.zeros(surfaces.shape, bool)
    for axis in (1, 2):
        other = np.diff(surfaces, axis=axis) != 0
        pad = [(0, 0)] * 3
        for pad[axis] in ((0, 1), (1, 0)):
            borders |= np.pad(other, pad)
    return borders


def _gradient(grey: np.ndarray) -> np.ndarray:
    """Length of the Sobel gradient of pictures (n, 32, 32), so scaled that a step of 1 gives 1."""
    from scipy.ndimage import correlate1d  # takes long, and listing data sets needs none

    parts = [
        correlate1d(
            correlate1d(grey, [-1, 0, 1], axis=a, mode="nearest"),
            [0.25, 0.5, 0.25],
            axis=b,
            mode="nearest",
        )
        for a, b in ((1, 2), (2, 1))
    ]
    return np.sqrt(parts[0] ** 2 + parts[1] ** 2)


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.rint(values.clip(0, 1) * 255).astype(np.uint8)


def photograph(scenes: Scenes, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Pictures, uint8 (n, 3, 32, 32), as `image`, and every annotation of them as in
    `ANNOTATIONS`.
    """
    n = len(scenes)
    rays = pixel_rays(scenes)
    hits = cast(scenes, rays)
    solid = hits.solids
    solid_index = np.maximum(solid, 0)
    room = np.minimum(hits.surfaces, 3)
    colour = np.where(
        (solid >= 0)[..., None],
        np.take_along_axis(scenes.colours, solid_index[..., None], axis=1),
        np.take_along_axis(scenes.room_colours, room[..., None], axis=1),
    )
    where = rays * hits.times[..., None]
    x, z = turned(where[..., 0], where[..., 2], scenes.turn[:, None])
    odd = (np.floor(x / 0.7) + np.floor(z / 0.7)) % 2 == 1
    colour = (
        colour * np.where((hits.surfaces == 0) & odd, 1 - scenes.tiles[:, None], 1.0)[..., None]
    )
    facing = np.maximum((hits.normals * scenes.light[:, None]).sum(axis=-1), 0)
    clean = (colour * (0.5 + 0.5 * facing)[..., None]).transpose(0, 2, 1).reshape(n, 3, SIZE, SIZE)
    kinds = np.take_along_axis(scenes.kinds, solid_index, axis=1)

    def flat(values: np.ndarray) -> np.ndarray:
        return values.reshape(n, 1, SIZE, SIZE)

    return {
        "image": _bytes(clean + rng.normal(scale=0.03, size=clean.shape)),
        "depth_euclidean": _bytes(flat(hits.times * np.sqrt((rays**2).sum(axis=-1))) / FAR),
        "normal": _bytes(
            (in_camera(scenes, hits.normals).transpose(0, 2, 1).reshape(n, 3, SIZE, SIZE) + 1) / 2
        ),
        "edge_occlusion": _bytes(
            flat(_borders(hits.surfaces.reshape(n, SIZE, SIZE)).astype(float))
        ),
        "edge_texture": _bytes(flat(2 * _gradient(clean.mean(axis=1)))),
        "keypoints2d": _bytes(flat(_bumps(corners(scenes)))),
        "segment_semantic": (
            np.where(solid >= 0, 2 + kinds, hits.surfaces == 0)
            .astype(np.uint8)
            .reshape(n, SIZE, SIZE)
        ),
    }


def draw(count: int, seed: int) -> AnnotatedSplit:
    """`count` annotated pictures (3, 32, 32), classes in turn and then shuffled."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(count) % len(KINDS))
    scenes = imagine(labels, rng)
    parts = [
        photograph(scenes[start : start + 100], rng) for start in range(0, count, 100)
    ]  # few at a time: faster, in cache
    made = {
        name: np.concatenate([part[name] for part in parts]) for name in ("image", *ANNOTATIONS)
    }
    return AnnotatedSplit(made.pop("image"), labels.astype(np.int64), made)


@functools.cache  # it takes five seconds, and other sets may have taken its place in the catalogue
def _drawn() -> Mapping[str, Split]:
    return {"train": draw(4000, 201), "valid": draw(1000, 202), "test": draw(1000, 203)}


def _load(home: Path) -> dict[str, Split]:
    return dict(_drawn())


SOURCES = [
    AnnotatedSource(
        name="scenes",
        title="generated rooms",
        classes=len(KINDS),
        shape=(3, SIZE, SIZE),
        sizes={"train": 4000, "valid": 1000, "test": 1000},
        mean=(0.42, 0.42, 0.42),
        std=(0.16, 0.16, 0.16),
        licence="generated by this suite (Apache-2.0)",
        how_to_get="It is generated.",
        files=lambda home: [],
        load=_load,
        kind=SYNTHETIC,
        note="rendered rooms with solids, not photographs",
        annotations=ANNOTATIONS,
    )
]
