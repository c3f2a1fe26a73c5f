"""Rooms with solids: imagined at random, and rendered by casting one ray through the centre of each
pixel.

A pinhole camera looks slightly down into a room of a floor, a back wall and two side walls, on
which solids stand: sphere, box, cylinder, cone, pyramid and roof (a lying prism).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from datasets.sources.shapes import rgb

SIZE = 32
KINDS = ("sphere", "box", "cylinder", "cone", "pyramid", "roof")
MOST = 4
"""Solids in an image."""
FOCAL = SIZE / 2 / math.tan(math.radians(30))
"""In pixels; a field of view of 60 degrees, near Taskonomy's mean."""

# Of solids in their own frame, where they stand on y = 0 and reach to 1 in x and z. A flat-sided
# solid is the set of points p with normal . p <= 1 for each of its sides; one on the floor is never
# seen.
_UP, _X, _Z = (0, 1, 0), [(1, 0, 0), (-1, 0, 0)], [(0, 0, 1), (0, 0, -1)]
_SLOPE_X, _SLOPE_Z = [(1, 1, 0), (-1, 1, 0)], [(0, 1, 1), (0, 1, -1)]
_SIDES = {"box": [*_X, *_Z, _UP], "pyramid": [*_SLOPE_X, *_SLOPE_Z], "roof": [*_SLOPE_X, *_Z]}
_BASE = [(x, 0, z) for x in (-1, 1) for z in (-1, 1)]
_CORNERS = {
    "sphere": [],
    "box": [*_BASE, *((x, 1, z) for x, _, z in _BASE)],
    "cylinder": [],
    "cone": [(0, 1, 0)],
    "pyramid": [*_BASE, (0, 1, 0)],
    "roof": [*_BASE, (0, 1, -1), (0, 1, 1)],
}
_FACES = 8
"""Surfaces of a solid at most, for numbering them."""


@dataclass(frozen=True)
class Scenes:
    """What n rooms are made of; lengths in metres, angles in radians, x right, y up, z ahead of the
    camera.
    """

    height: np.ndarray
    """Of the camera above the floor, (n,)."""
    pitch: np.ndarray
    """How far it looks down, (n,)."""
    turn: np.ndarray
    """Of the room about the vertical axis, (n,)."""
    walls: np.ndarray
    """Distances of back, left and right wall from the point below the camera, (n, 3)."""
    light: np.ndarray
    """Unit vector towards the light, (n, 3)."""
    room_colours: np.ndarray
    """Of floor, back, left and right wall, in [0, 1], (n, 4, 3)."""
    tiles: np.ndarray
    """How much darker every other tile of the floor is, a share, (n,)."""
    kinds: np.ndarray
    """Index into KINDS of each solid, (n, MOST); -1 for none. The first is the nearest."""
    places: np.ndarray
    """Where solids stand: x and z, (n, MOST, 2)."""
    scales: np.ndarray
    """Half width, height and half depth of solids; of a sphere its radius, thrice, (n, MOST, 3)."""
    turns: np.ndarray
    """Of solids about the vertical axis, (n, MOST)."""
    colours: np.ndarray
    """Of solids, (n, MOST, 3)."""

    def __len__(self) -> int:
        return len(self.height)

    def __getitem__(self, part: slice) -> Scenes:
        return Scenes(**{name: getattr(self, name)[part] for name in self.__dataclass_fields__})


@dataclass(frozen=True)
class Hits:
    """What n x p rays meet first."""

    times: np.ndarray
    """How many times the ray's direction it is away, (n, p)."""
    normals: np.ndarray
    """Unit normals in the room, (n, p, 3)."""
    surfaces: np.ndarray
    """Number of the surface, (n, p): floor, back, left, right, then those of the first solid, the
    second, ..."""

    @property
    def solids(self) -> np.ndarray:
        """Which solid it is, (n, p); -1 for floor and walls."""
        return (self.surfaces - 4) // _FACES


def turned(x: np.ndarray, z: np.ndarray, angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x and z in a frame that is turned by `angle` about the vertical axis."""
    cos, sin = np.cos(angle), np.sin(angle)
    return x * cos - z * sin, x * sin + z * cos


def imagine(kinds: np.ndarray, rng: np.random.Generator) -> Scenes:
    """Random rooms, whose nearest solids are of the kinds (n,), with one to three others behind
    them.

    The nearest stands 2.3 to 2.8 m ahead, the others 3.7 to 4.5 m, beside one another; the walls
    stand behind them all.
    """
    n = len(kinds)
    ahead = np.concatenate(
        [rng.uniform(2.3, 2.8, (n, 1)), rng.uniform(3.7, 4.5, (n, MOST - 1))], axis=1
    )
    aside = rng.permuted(np.tile([-0.36, 0.0, 0.36], (n, 1)), axis=1) + rng.uniform(
        -0.06, 0.06, (n, MOST - 1)
    )
    aside = np.concatenate([rng.uniform(-0.2, 0.2, (n, 1)), aside], axis=1)
    places = np.stack([ahead * aside, ahead], axis=-1)
    others = rng.integers(len(KINDS), size=(n, MOST - 1))
    others[np.arange(MOST - 1) >= rng.integers(1, MOST, (n, 1))] = -1
    kinds = np.concatenate([kinds[:, None], others], axis=1)
    radius = np.concatenate(
        [rng.uniform(0.45, 0.65, (n, 1)), rng.uniform(0.4, 0.55, (n, MOST - 1))], axis=1
    )
    tall = np.where(
        kinds == KINDS.index("sphere"), radius, radius * rng.uniform(1.4, 2.4, (n, MOST))
    )
    turn = rng.uniform(-0.3, 0.3, n)
    x, z = turned(places[..., 0], places[..., 1], turn[:, None])
    reach = 1.45 * radius  # to the corners of a box, and a little more
    gap = rng.uniform(0.1, 1.3, (n, 3))
    back, left, right = (z + reach).max(axis=1), (reach - x).max(axis=1), (x + reach).max(axis=1)
    light = np.stack([rng.uniform(-0.7, 0.7, n), np.ones(n), -rng.uniform(0.2, 1, n)], axis=1)

    def colours(
        count: int, saturation: tuple[float, float], value: tuple[float, float]
    ) -> np.ndarray:
        drawn = rgb(
            rng.random(n * count),
            rng.uniform(*saturation, n * count),
            rng.uniform(*value, n * count),
        )
        return drawn.reshape(n, count, 3)

    wall = colours(1, (0, 0.3), (0.5, 0.95))
    return Scenes(
        height=rng.uniform(1.3, 1.7, n),
        pitch=np.radians(rng.uniform(16, 24, n)),
        turn=turn,
        walls=np.maximum(np.stack([back, left, right], axis=1), 1.5) + gap,
        light=light / np.sqrt((light**2).sum(axis=1, keepdims=True)),
        room_colours=np.concatenate([colours(1, (0, 0.5), (0.3, 0.8)), wall, wall, wall], axis=1),
        tiles=rng.uniform(0, 0.35, n),
        kinds=kinds,
        places=places,
        scales=np.stack([radius, tall, radius], axis=-1),
        turns=rng.uniform(0, 2 * math.pi, (n, MOST)),
        colours=colours(MOST, (0.4, 1), (0.5, 1)),
    )


def _meet_flat(
    start: np.ndarray, ahead: np.ndarray, sides: list[tuple[int, int, int]]
) -> tuple[np.ndarray, ...]:
    """Times, normals and faces at which rays enter a flat-sided solid; time infinity where they
    miss it.
    """
    enter, leave = np.full(len(ahead), -np.inf), np.full(len(ahead), np.inf)
    face = np.zeros(len(ahead), int)
    for number, (a, b, c) in enumerate(sides):
        along = a * ahead[:, 0] + b * ahead[:, 1] + c * ahead[:, 2]
        time = (1 - (a * start[:, 0] + b * start[:, 1] + c * start[:, 2])) / along
        later = (along < 0) & (time > enter)
        enter[later], face[later] = time[later], number
        leave = np.where(along > 0, np.minimum(leave, time), leave)
    return np.where(enter < leave, enter, np.inf), np.array(sides, float)[face], face


def _roots(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both solutions of a t^2 + 2 b t + c = 0; infinity where there is none."""
    square = b * b - a * c
    root = np.sqrt(np.maximum(square, 0))
    return np.where(square > 0, (-b - root) / a, np.inf), np.where(
        square > 0, (-b + root) / a, np.inf
    )


def _meet(kind: str, start: np.ndarray, ahead: np.ndarray) -> tuple[np.ndarray, ...]:
    """Times (m,), normals of any length (m, 3) and faces (m,) at which m rays from start (m, 3)
    along ahead (m, 3) meet a solid of the kind, in its own frame; time infinity where they miss it.
    """
    if kind in _SIDES:
        return _meet_flat(start, ahead, _SIDES[kind])
    (ox, oy, oz), (dx, dy, dz) = start.T, ahead.T
    face = np.zeros(len(ahead), int)
    if kind == "sphere":
        time, _ = _roots(
            dx**2 + dy**2 + dz**2,
            ox * dx + (oy - 1) * dy + oz * dz,
            ox**2 + (oy - 1) ** 2 + oz**2 - 1,
        )
    elif kind == "cylinder":
        side, far = _roots(dx**2 + dz**2, ox * dx + oz * dz, ox**2 + oz**2 - 1)
        top = (1 - oy) / dy
        time = np.where(dy < 0, np.maximum(side, top), side)
        time = np.where((time < far) & ((dy < 0) | (time < top)), time, np.inf)
        face = (time > side).astype(int)
    else:  # the cone, x^2 + z^2 = (1 - y)^2 below its tip
        roots = _roots(
            dx**2 + dz**2 - dy**2, ox * dx + oz * dz + (1 - oy) * dy, ox**2 + oz**2 - (1 - oy) ** 2
        )
        time = np.minimum(
            *(np.where((root > 0) & (oy + root * dy <= 1), root, np.inf) for root in roots)
        )
    finite = np.where(np.isfinite(time), time, 0)
    x, y, z = ox + finite * dx, oy + finite * dy, oz + finite * dz
    up = {"sphere": y - 1, "cylinder": face, "cone": 1 - y}[kind]
    around = 1 - face if kind == "cylinder" else 1
    return time, np.stack([x * around, up, z * around], axis=1), face


def _near(scenes: Scenes, rays: np.ndarray) -> np.ndarray:
    """Which rays (n, p, 3) come near which solids, (n, MOST, p): through the ball around the box
    around it.
    """
    wide, tall, _ = scenes.scales.transpose(2, 0, 1)
    middle = np.where(
        scenes.kinds == KINDS.index("sphere"), tall, tall / 2
    )  # a sphere's height is given as its radius
    ball = 2 * wide**2 + middle**2 + 1e-6
    centre = np.stack(
        [scenes.places[..., 0], middle - scenes.height[:, None], scenes.places[..., 1]], axis=-1
    )
    along = (rays @ centre.transpose(0, 2, 1)) ** 2 / (rays**2).sum(axis=-1, keepdims=True)
    return ((centre**2).sum(axis=-1) - ball)[..., None] < along.transpose(0, 2, 1)


def cast(scenes: Scenes, rays: np.ndarray) -> Hits:
    """What rays from the cameras along directions (n, p, 3) in the rooms meet first."""
    dx, dz = turned(rays[..., 0], rays[..., 2], scenes.turn[:, None])
    back, left, right = (scenes.walls[:, i, None] for i in range(3))
    sides = ((scenes.height[:, None], -rays[..., 1]), (back, dz), (left, -dx), (right, dx))
    room = np.stack(
        [np.where(along > 0, away / np.where(along > 0, along, 1), np.inf) for away, along in sides]
    )
    times, surfaces = room.min(axis=0), room.argmin(axis=0)
    nx, nz = turned(np.array([0.0, 0, 1, -1]), np.array([0.0, -1, 0, 0]), -scenes.turn[:, None])
    inward = np.stack([nx, np.broadcast_to([1.0, 0, 0, 0], nx.shape), nz], axis=-1)
    normals = inward[np.arange(len(scenes))[:, None], surfaces]

    near = _near(scenes, rays)
    met = []
    for index, kind in enumerate(KINDS):
        image, solid, ray = np.nonzero(near & (scenes.kinds == index)[..., None])
        scale, turn = scenes.scales[image, solid], scenes.turns[image, solid]
        place, ahead = scenes.places[image, solid], rays[image, ray]
        x, z = turned(-place[:, 0], -place[:, 1], turn)
        dx, dz = turned(ahead[:, 0], ahead[:, 2], turn)
        start = np.stack([x, scenes.height[image], z], axis=1) / scale
        with np.errstate(divide="ignore", invalid="ignore"):  # rays along a surface
            time, normal, face = _meet(kind, start, np.stack([dx, ahead[:, 1], dz], axis=1) / scale)
        normal = normal / scale
        x, z = turned(normal[:, 0], normal[:, 2], -turn)
        normal = np.stack([x, normal[:, 1], z], axis=1)
        length = np.sqrt((normal**2).sum(axis=1, keepdims=True))
        met.append(
            (image, ray, time, normal / np.maximum(length, 1e-9), 4 + _FACES * solid + face)
        )  # a cone's tip has none
    image, ray, time, normal, surface = (np.concatenate(parts) for parts in zip(*met, strict=True))
    np.minimum.at(times, (image, ray), time)
    first = time == times[image, ray]
    normals[image[first], ray[first]], surfaces[image[first], ray[first]] = (
        normal[first],
        surface[first],
    )
    return Hits(times, normals, surfaces)


def pixel_rays(scenes: Scenes) -> np.ndarray:
    """Directions (n, 32 x 32, 3) in the rooms through the centres of pixels, row by row; 1 long
    along the camera's axis.
    """
    place = (np.arange(SIZE) + 0.5 - SIZE / 2) / FOCAL
    y, x = (side.ravel() for side in np.meshgrid(-place, place, indexing="ij"))
    cos, sin = np.cos(scenes.pitch)[:, None], np.sin(scenes.pitch)[:, None]
    return np.stack(
        [np.broadcast_to(x, (len(scenes), len(x))), y * cos - sin, y * sin + cos], axis=-1
    )


def in_camera(scenes: Scenes, vectors: np.ndarray) -> np.ndarray:
    """Vectors (n, p, 3) in the rooms as the cameras see them: x right, y up, z towards the
    camera.
    """
    cos, sin = np.cos(scenes.pitch)[:, None], np.sin(scenes.pitch)[:, None]
    x, y, z = (vectors[..., i] for i in range(3))
    return np.stack([x, y * cos + z * sin, y * sin - z * cos], axis=-1)


def corners(scenes: Scenes) -> np.ndarray:
    """Corners in the pictures (n, points, 2), column and row in pixels from the upper left; NaN for
    hidden and absent ones.

    They may lie outside of the picture.
    """
    n = len(scenes)
    points = np.full((n, MOST, max(map(len, _CORNERS.values())), 3), np.nan)
    for index, kind in enumerate(KINDS):
        image, solid = np.nonzero(scenes.kinds == index)
        local = (
            np.array(_CORNERS[kind], float).reshape(-1, 3) * scenes.scales[image, solid][:, None]
        )
        x, z = turned(local[..., 0], local[..., 2], -scenes.turns[image, solid][:, None])
        place = scenes.places[image, solid]
        points[image, solid, : local.shape[1]] = np.stack(
            [x + place[:, :1], local[..., 1], z + place[:, 1:]], axis=-1
        )
    back, left, right = scenes.walls.T[..., None]
    x, z = turned(
        np.concatenate([-left, right], axis=1),
        np.concatenate([back, back], axis=1),
        -scenes.turn[:, None],
    )
    points = np.concatenate(
        [points.reshape(n, -1, 3), np.stack([x, np.zeros_like(x), z], axis=-1)], axis=1
    )
    rays = points - scenes.height[:, None, None] * np.array([0, 1, 0])
    absent = np.isnan(rays[..., 0])
    hidden = cast(scenes, np.where(absent[..., None], 1.0, rays)).times < 1 - 1e-6
    x, y, z = (in_camera(scenes, rays)[..., i] for i in range(3))
    seen = SIZE / 2 + FOCAL * np.stack([x, -y], axis=-1) / -z[..., None]
    return np.where((absent | hidden | (z >= 0))[..., None], np.nan, seen)
