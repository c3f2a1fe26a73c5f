"""Generated heads with a tumour in three nested parts: synthetic stand-ins for MRI of gliomas.

A head is an ellipsoid of grey matter with a core of white matter and two ventricles; the tumour is
an ellipsoid of oedema (label 2) around an enhancing one (4) around a necrotic one (1), as BraTS
numbers them, anywhere in the brain. Four modalities, T1, T1 with contrast, T2 and FLAIR, show the
tissues in the tones of `TONES`; three sites, whose number is the class, differ in gain, blur, noise
and gradient (`SITES`; own choices, of no source). Tumours differ in volume by a factor of about
forty, so that clients by size differ.

`phantom-volumes` has volumes of 32 voxels a side; `phantom-volumes-public` has other heads, of a
fourth site. `phantom-tumours` has slices of further heads as T1, FLAIR and T1 with contrast, only
those with at least four pixels of tumour, and marks the whole tumour. They exercise every code path
of such a data set; they are no heads, and every table made from them says so.

Only sums, products and quotients of uniform random numbers are drawn with, so that every machine
draws the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from datasets.annotations import SEGMENTS, AnnotatedSource, AnnotatedSplit, Annotation
from datasets.source import SYNTHETIC, Split
from datasets.sources.brats import INSTITUTIONS
from datasets.sources.phantom_nuclei import blurred

SIDE = 32
MODALITIES = ("t1", "t1ce", "t2", "flair")
"""Channels of a volume."""
SHOWN = ("t1", "flair", "t1ce")
"""Channels of a slice: before contrast, FLAIR, after contrast."""
PER_HEAD = 8
"""Slices taken of each head, at most."""
LEAST = 4
"""Pixels of tumour in a slice, at least."""

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
"""Of each tissue in each modality."""
LABELS = np.array([0, 0, 0, 0, 2, 1, 4], np.uint8)
"""BraTS's label of each tissue."""


@dataclass(frozen=True)
class Site:
    """How a scanner draws: all own choices."""

    gain: float
    noise: float
    gradient: float
    """How much brighter the front is than the back."""
    soft: bool
    """Whether neighbours are averaged."""


SITES = (
    Site(0.80, 0.06, 0.0, False),
    Site(0.65, 0.10, 0.2, False),
    Site(0.90, 0.06, -0.2, True),
    Site(0.75, 0.08, 0.1, True),
)


def _ellipsoid(
    centre: Sequence[float] | np.ndarray, axes: Sequence[float] | np.ndarray
) -> np.ndarray:
    """How far inside each voxel lies, (SIDE, SIDE, SIDE): 1 in the middle, 0 at the border, below
    outside. Places and half axes are z, y, x, from -1 to 1.
    """
    places = (np.indices((SIDE,) * 3) * 2 + 1) / SIDE - 1
    parts = [
        ((place - middle) / axis) ** 2
        for place, middle, axis in zip(places, centre, axes, strict=True)
    ]
    return 1 - (parts[0] + parts[1] + parts[2])


def draw_head(site: Site, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Four modalities uint8 (4, SIDE, SIDE, SIDE) and labels uint8 (SIDE, SIDE, SIDE) of a head."""
    size = rng.uniform(0.78, 0.92, 3)
    tissue = np.full((SIDE,) * 3, AIR)
    tissue[_ellipsoid((0, 0, 0), size) > 0] = GREY
    tissue[_ellipsoid((0, 0, 0), 0.72 * size) > 0] = WHITE
    for side in (-1, 1):
        tissue[_ellipsoid((0.05, 0, 0.16 * side), (0.2, 0.35, 0.1)) > 0] = FLUID
    radius = 0.14 + 0.34 * rng.random() ** 2  # most are small
    axes = radius * rng.uniform(0.8, 1.2, 3)
    centre = rng.uniform(-0.4, 0.4, 3)
    inside = np.where(tissue == AIR, -1.0, _ellipsoid(centre, axes))
    for part, depth in ((OEDEMA, 0.0), (ENHANCING, 0.55), (NECROSIS, 0.85)):
        tissue[inside > depth] = part
    grain = blurred(rng.uniform(-1, 1, (4, *[SIDE] * 3)), 1, (1, 2, 3))
    tones = TONES[:, tissue] * (1 + 0.3 * grain)
    if site.soft:
        tones = blurred(tones, 1, (2, 3))
    front = (np.arange(SIDE) * 2 + 1) / SIDE - 1
    tones = tones * site.gain * (1 + site.gradient * front[:, None])
    tones = tones + site.noise * rng.uniform(-1, 1, tones.shape) * (tissue != AIR)
    return np.rint(255 * tones.clip(0, 1)).astype(np.uint8), LABELS[tissue]


def draw_volumes(count: int, seed: int, sites: Sequence[int]) -> AnnotatedSplit:
    """`count` heads of the sites in turn; a group is a head, numbered from 1000 times the seed."""
    rng = np.random.default_rng(seed)
    labels = [sites[index % len(sites)] for index in range(count)]
    drawn = [draw_head(SITES[site], rng) for site in labels]
    return AnnotatedSplit(
        np.stack([head for head, _ in drawn]),
        np.array(labels, np.int64),
        {"tumour": np.stack([parts for _, parts in drawn])},
        groups=np.arange(count) + 1000 * seed,
    )


def draw_slices(heads: int, seed: int) -> AnnotatedSplit:
    """Slices (n, 3, SIDE, SIDE) of heads, up to eight of each, spread over its tumour."""
    volumes = draw_volumes(heads, seed, (0, 1, 2))
    whole = volumes.annotations["tumour"] > 0
    channels = [MODALITIES.index(name) for name in SHOWN]
    rows, depths = [], []
    for row, tumour in enumerate(whole):
        shown = np.flatnonzero(tumour.sum(axis=(1, 2)) >= LEAST)
        count = min(PER_HEAD, len(shown))
        chosen = shown[[index * len(shown) // count for index in range(count)]]
        rows += [row] * count
        depths += chosen.tolist()
    assert volumes.groups is not None
    return AnnotatedSplit(
        np.ascontiguousarray(volumes.images[rows, :, depths][:, channels]),
        volumes.labels[rows],
        {"tumour": whole[rows, depths].astype(np.uint8)},
        groups=volumes.groups[rows],
    )


def _source(
    name: str,
    title: str,
    note: str,
    load: Callable[[Path], dict[str, Split]],
    sizes: dict[str, int],
    volumes: bool = True,
) -> AnnotatedSource:
    channels = MODALITIES if volumes else SHOWN
    whole = Annotation(SEGMENTS, 2, "1 for the whole tumour")
    parts = Annotation(SEGMENTS, 5, "1 necrosis, 2 oedema, 4 enhancing tumour, as BraTS's")
    return AnnotatedSource(
        name=name,
        title=title,
        classes=len(INSTITUTIONS),
        shape=(len(channels), *[SIDE] * (3 if volumes else 2)),
        sizes=sizes,
        mean=(0.12 if volumes else 0.2,) * len(channels),
        std=(0.18 if volumes else 0.2,) * len(channels),
        licence="generated by this suite (Apache-2.0)",
        how_to_get="It is generated.",
        files=lambda home: [],
        load=load,
        kind=SYNTHETIC,
        note=note,
        annotations={"tumour": parts if volumes else whole},
    )


SOURCES = [
    _source(
        "phantom-tumours",
        "generated heads, slices",
        "slices of drawn heads with a drawn tumour, not of anyone",
        lambda home: {"train": draw_slices(40, 631), "test": draw_slices(12, 632)},
        {"train": 239, "test": 69},
        volumes=False,
    ),
    _source(
        "phantom-volumes",
        "generated heads",
        "drawn heads with a drawn tumour, not of anyone",
        lambda home: {
            "train": draw_volumes(24, 633, (0, 1, 2)),
            "test": draw_volumes(9, 634, (0, 1, 2)),
        },
        {"train": 24, "test": 9},
    ),
    _source(
        "phantom-volumes-public",
        "generated heads, a fourth site",
        "further drawn heads, not of anyone",
        lambda home: {"train": draw_volumes(12, 635, (3,)), "test": draw_volumes(3, 636, (3,))},
        {"train": 12, "test": 3},
    ),
]
