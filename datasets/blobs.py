"""Draws blobs: axis-aligned ellipses and ellipsoids on a ground, of which everything is known that
a data set may annotate. All generated sets are made of them.

Only sums, products, quotients and square roots of uniform random numbers are drawn with, so that
every machine draws the same.
"""

from collections.abc import Mapping, Sequence

import numpy as np


def offsets(sides: Sequence[int], centres: np.ndarray, axes: np.ndarray) -> list[np.ndarray]:
    """How far each pixel or voxel lies from the middle of its blob along each side, in half axes.

    Centres and half axes (n, dims) are in the order of the sides, which go from -1 to 1.
    """
    found = []
    for dim, side in enumerate(sides):
        places = (2 * np.arange(side) + 1) / side - 1
        part = (places - centres[:, dim, None]) / axes[:, dim, None]
        found.append(part.reshape(-1, *(side if d == dim else 1 for d in range(len(sides)))))
    return found


def inside(sides: Sequence[int], centres: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """How far inside of its blob each pixel or voxel lies, (n, *sides): 1 in the middle, 0 at the
    border, below outside.
    """
    depth = np.ones((len(centres), *(1 for _ in sides)))
    for part in offsets(sides, centres, axes):
        depth = depth - part**2
    return depth


def covered(depth: np.ndarray, softness: float) -> np.ndarray:
    """How much of each pixel a blob covers, 0 to 1, with a border of this softness."""
    return (depth / softness + 0.5).clip(0, 1)


def as_bytes(values: np.ndarray) -> np.ndarray:
    """Values of 0 to 1 as uint8."""
    return np.rint(values.clip(0, 1) * 255).astype(np.uint8)


def noise(shape: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """Random values of deviation 1."""
    return rng.uniform(-1.0, 1.0, shape) * 3**0.5


def rgb(hue: np.ndarray, saturation: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Colours (n, 3) of hue, saturation and value (n,), all in [0, 1] (Smith 1978)."""
    k = (np.array([5, 3, 1]) + 6 * hue[:, None]) % 6
    return value[:, None] * (1 - saturation[:, None] * np.minimum(k, 4 - k).clip(0, 1))


def balanced(count: int, classes: int, rng: np.random.Generator) -> np.ndarray:
    """Classes in turn, shuffled."""
    return rng.permutation(np.arange(count) % classes).astype(np.int64)


# -- a class for each figure of blobs --

FIGURES = (
    "#.#.#.#.#",
    ".#.###.#.",
    "####.####",
    "###...###",
    "#.##.##.#",
    "#...#...#",
    "###.#..#.",
    "...###...",
    ".#..#..#.",
    "#..##.###",
)
"""Which places of 3 x 3, row by row, have a blob."""


def figures(kinds: np.ndarray, side: int, rng: np.random.Generator) -> np.ndarray:
    """How much of each pixel the figures `kinds` (n,) cover, (n, side, side), at random places and
    sizes.
    """
    shift = rng.uniform(-0.15, 0.15, (len(kinds), 2))
    size = rng.uniform(0.75, 1.0, (len(kinds), 1))
    shown = np.array([[place == "#" for place in figure] for figure in FIGURES])[kinds]
    cover = np.zeros((len(kinds), side, side))
    for place in range(9):
        middle = 0.55 * size * (np.array(divmod(place, 3)) - 1) + shift
        radius = size * rng.uniform(0.22, 0.34, (len(kinds), 2))
        blob = covered(inside((side, side), middle, radius), 0.8)
        cover = np.maximum(cover, blob * shown[:, place, None, None])
    return cover


# -- findings on films --

LOOKS = ((0.16, 0.16), (0.3, 0.3), (0.12, 0.5), (0.42, 0.12))
"""Half axes of what is drawn for a finding."""


def film(patients: np.ndarray, side: int, rng: np.random.Generator) -> np.ndarray:
    """Tones (n, side, side) of two dark fields on a bright ground, the same for all films of a
    patient but for their noise. Patients are numbered from 0.
    """
    people, of_film = int(patients.max()) + 1, (len(patients), side, side)
    tones = np.full(of_film, 0.62)
    for middle in (-0.45, 0.45):
        centres = np.array([-0.05, middle]) + rng.uniform(-0.05, 0.05, (people, 2))[patients]
        axes = np.array([0.75, 0.36]) * rng.uniform(0.9, 1.1, (people, 2))[patients]
        air = rng.uniform(0.32, 0.42, (people, 1, 1))[patients]
        tones += covered(inside((side, side), centres, axes), 0.3) * (air - tones)
    return tones


def show(
    tones: np.ndarray, finding: int, patients: np.ndarray, shown: np.ndarray, seed: Sequence[int]
) -> None:
    """Draw a finding into the films that are `shown`, bool (n,): a blob whose form, tone, side and
    height tell which finding it is, and whose place is, within bounds, the patient's.
    """
    rng = np.random.default_rng([*seed, finding])
    people = int(patients.max()) + 1
    look, height = LOOKS[finding // 2 % 4], (finding // 8 - 1) * 0.4
    side = (-0.45, 0.45)[finding // 3 % 2]
    where = rng.uniform(-0.1, 0.1, (people, 2)) + np.array([height, side])
    axes = np.array(look) * rng.uniform(0.9, 1.15, (people, 2))
    of_film = patients[shown]
    cover = covered(inside(tones.shape[1:], where[of_film], axes[of_film]), 0.5)
    tones[shown] += 0.9 * cover * ((0.0, 0.95)[finding % 2] - tones[shown])


# -- tissue with nuclei --

Stain = tuple[tuple[int, int, int], tuple[int, int, int], tuple[float, float], int]
"""Colours of ground and nuclei, the least and most half axis of a nucleus, nuclei that are
tried."""
STAINS: Mapping[str, Stain] = {
    "breast": ((226, 178, 208), (112, 72, 140), (4, 7), 38),
    "kidney": ((236, 190, 200), (104, 78, 148), (3, 5), 60),
    "liver": ((216, 166, 196), (92, 62, 128), (4, 6), 34),
    "prostate": ((232, 204, 224), (124, 92, 160), (3, 6), 44),
    "bladder": ((222, 184, 188), (98, 66, 118), (5, 8), 26),
    "colon": ((240, 206, 214), (120, 80, 136), (3, 7), 48),
    "stomach": ((214, 188, 216), (88, 70, 138), (3, 4), 80),
    "shifted": ((200, 170, 226), (84, 52, 150), (5, 9), 22),
    "third": ((238, 214, 232), (140, 104, 172), (3, 6), 36),
}
"""By organ, and of two further sites."""


def objects(
    side: int, count: int, radius: tuple[float, float], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of up to `count` blobs with half axes in pixels, int64 (side, side), and how deep
    inside its own a pixel lies. One that would lie more than half under others is left out.
    """
    centres, axes = rng.uniform(-1, 1, (count, 2)), rng.uniform(*radius, (count, 2)) * 2 / side
    numbers, depth = np.zeros((side, side), np.int64), np.zeros((side, side))
    for number, own in enumerate(inside((side, side), centres, axes), 1):
        free = (own > 0) & (numbers == 0)
        if 2 * free.sum() > (own > 0).sum():
            numbers[free], depth[free] = number, own[free]
    return numbers, depth


def tissue(stain: str, side: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """An image uint8 (3, side, side) in one of the `STAINS`, and the numbers of its nuclei."""
    ground, nucleus, radius, count = STAINS[stain]
    numbers, depth = objects(side, count, radius, rng)
    dark = np.where(numbers > 0, rng.uniform(0.75, 1, count + 1)[numbers] * (1 - 0.3 * depth), 0)
    paper, ink = (np.array(colour)[:, None, None] / 255 for colour in (ground, nucleus))
    clean = paper + dark * (ink - paper)
    return as_bytes(clean + 0.04 * noise(clean.shape, rng)), numbers


# -- heads with tumours --

AIR, GREY, WHITE, FLUID, OEDEMA, NECROSIS, ENHANCING = range(7)
TONES = np.array(
    [
        # air, grey, white, fluid, oedema, necrosis, enhancing
        (0.00, 0.45, 0.60, 0.15, 0.38, 0.25, 0.42),
        (0.00, 0.45, 0.60, 0.15, 0.38, 0.25, 0.95),
        (0.00, 0.50, 0.38, 0.95, 0.80, 0.85, 0.65),
        (0.00, 0.50, 0.42, 0.10, 0.90, 0.60, 0.75),
    ]
)
"""Of each tissue in T1, T1 with contrast, T2 and FLAIR."""
SCANNERS = np.array([(0.80, 0.06, 0.0), (0.65, 0.10, 0.2), (0.90, 0.06, -0.2), (0.75, 0.08, 0.1)])
"""Gain, noise, and how much brighter the front is than the back."""


def tissues(count: int, side: int, rng: np.random.Generator) -> np.ndarray:
    """Which tissue each voxel of `count` heads is, int64 (count, side, side, side): one blob in
    another, and a tumour of three anywhere in it. Most tumours are small.
    """
    sides, size = (side,) * 3, rng.uniform(0.78, 0.92, (count, 3))
    none = np.zeros((count, 3))
    tissue = np.full((count, *sides), AIR)
    tissue[inside(sides, none, size) > 0] = GREY
    tissue[inside(sides, none, 0.72 * size) > 0] = WHITE
    for middle in (-0.16, 0.16):
        centres, axes = none + np.array([0.05, 0, middle]), none + np.array([0.2, 0.35, 0.1])
        tissue[inside(sides, centres * size, axes * size) > 0] = FLUID
    axes = (0.14 + 0.34 * rng.random((count, 1)) ** 2) * rng.uniform(0.8, 1.2, (count, 3))
    depth = inside(sides, rng.uniform(-0.4, 0.4, (count, 3)), axes)
    for part, least in ((OEDEMA, 0.0), (ENHANCING, 0.55), (NECROSIS, 0.85)):
        tissue[(depth > least) & (tissue != AIR)] = part
    return tissue


def scanned(tissue: np.ndarray, scanners: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Heads in four sequences, uint8 (n, 4, side, side, side), each as its scanner shows it."""
    gain, grain, slope = (part[:, None, None, None, None] for part in SCANNERS[scanners].T)
    front = np.linspace(-1, 1, tissue.shape[-1])[:, None]
    tones = TONES[:, tissue].swapaxes(0, 1) * gain * (1 + slope * front)
    return as_bytes(tones + grain * noise(tones.shape, rng) / 3**0.5 * (tissue != AIR)[:, None])


# -- scenes of which values of every pixel are known --

KINDS = ("large", "small", "wide", "tall", "flat", "thin")
FORMS = ((0.5, 0.5), (0.26, 0.26), (0.28, 0.5), (0.5, 0.28), (0.16, 0.6), (0.6, 0.16))
"""Half axes of each kind, height and width."""
MOST = 4
"""Blobs in a scene; one at least."""
FAR = 10.0
"""Metres."""


def _borders(surfaces: np.ndarray) -> np.ndarray:
    """Whether a pixel of (n, side, side) has another surface on its left, right, above or below."""
    across = np.pad(np.diff(surfaces, axis=2) != 0, ((0, 0), (0, 0), (1, 1)))
    down = np.pad(np.diff(surfaces, axis=1) != 0, ((0, 0), (1, 1), (0, 0)))
    return across[:, :, 1:] | across[:, :, :-1] | down[:, 1:] | down[:, :-1]


def _steps(grey: np.ndarray) -> np.ndarray:
    """Length of the gradient of pictures (n, side, side), so scaled that a step of 1 gives 1."""
    down, across = np.gradient(grey, axis=(1, 2))
    return 2 * np.sqrt(down**2 + across**2)


Canvas = dict[str, np.ndarray]
"""Scenes while they are drawn, from what is far to what is near. `surface` is the number of what
each pixel shows, (n, side, side): 0 wall, 1 floor, then blobs; `normals` are (n, 3, side, side)."""


def _room(count: int, side: int, rng: np.random.Generator) -> Canvas:
    """Walls over a floor that comes nearer from the horizon down."""
    rows = np.arange(side)[None, :, None]
    horizon = rng.uniform(0.4, 0.7, (count, 1, 1)) * side
    floor = np.broadcast_to(rows >= horizon, (count, side, side))
    wall = rng.uniform(6, 9, (count, 1, 1))
    near = np.where(floor, (rows - horizon) / (side - horizon), 0)
    zeros = np.zeros(floor.shape)
    light, dark = (rng.uniform(*tone, (count, 3, 1, 1)) for tone in ((0.55, 0.85), (0.15, 0.4)))
    return {
        "surface": floor.astype(np.int64),
        "segments": floor.astype(np.uint8),
        "metres": wall - near * (wall - 2),
        "normals": np.stack([zeros, floor * 1.0, ~floor * 1.0], axis=1),
        "colour": np.where(floor[:, None], dark, light),
        "keypoints": zeros,
    }


def _add(canvas: Canvas, number: int, kinds: np.ndarray, rng: np.random.Generator) -> None:
    """Draw a blob of these kinds (n,), half an ellipsoid seen from the front; number 0 is the
    nearest and is in every scene.
    """
    count, sides = len(canvas["surface"]), canvas["surface"].shape[1:]
    there = (rng.random(count) < (0.6 if number else 1.0))[:, None, None]
    centres = rng.uniform(-0.7, 0.7, (count, 2))
    axes = np.array(FORMS)[kinds] * rng.uniform(0.85, 1.15, (count, 1))
    down, across = offsets(sides, centres, axes)
    depth = inside(sides, centres, axes)
    own = (depth > 0) & there
    height = np.sqrt(depth.clip(0))
    hue = (kinds + rng.uniform(-0.3, 0.3, count)) / len(KINDS)
    colour = rgb(hue % 1, rng.uniform(0.5, 1, count), rng.uniform(0.6, 1, count))
    away = (2.5 + 0.8 * number + rng.uniform(0, 0.7, count))[:, None, None]
    canvas["surface"][own] = 2 + number
    canvas["segments"] = np.where(own, 2 + kinds[:, None, None], canvas["segments"]).astype(
        np.uint8
    )
    canvas["metres"] = np.where(own, away - 0.6 * height, canvas["metres"])
    facing = np.stack(np.broadcast_arrays(across, -down, height), axis=1)
    canvas["normals"] = np.where(own[:, None], facing, canvas["normals"])
    canvas["colour"] = np.where(own[:, None], colour[:, :, None, None], canvas["colour"])
    middle = inside(sides, centres, np.full((count, 2), 6 / sides[0])).clip(0) * there
    canvas["keypoints"] = np.maximum(np.where(own, 0, canvas["keypoints"]), middle)


def scenes(labels: np.ndarray, side: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Pictures uint8 (n, 3, side, side) as `image`, in which a blob of the kind of the label is the
    nearest, and what is known of every pixel by the names of Taskonomy.
    """
    canvas = _room(len(labels), side, rng)
    for number in reversed(range(MOST)):
        _add(canvas, number, rng.integers(len(KINDS), size=len(labels)) if number else labels, rng)
    lit = (canvas["normals"] * np.array([0.36, 0.48, 0.8])[:, None, None]).sum(axis=1).clip(0)
    clean = canvas["colour"] * (0.5 + 0.5 * lit)[:, None]
    return {
        "image": as_bytes(clean + 0.03 * noise(clean.shape, rng)),
        "depth_euclidean": as_bytes(canvas["metres"][:, None] / FAR),
        "normal": as_bytes((canvas["normals"] + 1) / 2),
        "edge_occlusion": as_bytes(_borders(canvas["surface"])[:, None] * 1.0),
        "edge_texture": as_bytes(_steps(clean.mean(axis=1))[:, None]),
        "keypoints2d": as_bytes(canvas["keypoints"][:, None]),
        "segment_semantic": canvas["segments"],
    }
