"""Generated sets, which stand in where no files are: blobs of `datasets/blobs.py`.

They exercise the code path of every kind of data set. They are no photographs, films, tissue or
heads of anyone, and every table made from them says so. Colours, rates, sizes and scanners are own
choices, of no source. What a title calls another site differs as sites do: in contrast, noise,
acquisition, stain or scanner.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedtables.datasets import blobs, films
from fedtables.datasets.films import NO_FINDING, SECOND_SITE, THIRD_SITE, Acquisition
from fedtables.datasets.mri import slices
from fedtables.datasets.nuclei import NUCLEI, numbered
from fedtables.datasets.source import (
    FINDINGS,
    IGNORE,
    MAP,
    SEGMENTS,
    SYNTHETIC,
    Annotation,
    DataSource,
    Split,
    said,
)
from fedtables.datasets.sources.brats import INSTITUTIONS, MODALITIES
from fedtables.datasets.sources.chexpert import NAMES as CHEXPERT_NAMES
from fedtables.datasets.sources.cifar import luminance
from fedtables.datasets.sources.monuseg import KUMAR, ORGANS, ORGANS_OF
from fedtables.datasets.sources.nih_cxr import NAMES as NIH_NAMES

Parts = Mapping[str, tuple[int, Callable[[], Split]]]
"""How many samples each split has, and how it is drawn."""


def _source(
    name: str,
    title: str,
    shape: tuple[int, ...],
    parts: Parts,
    tone: tuple[float, float],
    classes: int,
    annotations: Mapping[str, Annotation] | None = None,
) -> DataSource:
    """A set with these splits; `tone` is the mean and deviation of all channels."""
    return DataSource(
        **said("generated") | {"name": name, "title": f"generated {title}"},
        classes=classes,
        shape=shape,
        sizes={split: size for split, (size, _) in parts.items()},
        mean=(tone[0],) * shape[0],
        std=(tone[1],) * shape[0],
        files=lambda home: [],
        load=lambda home: {split: draw() for split, (_, draw) in parts.items()},
        kind=SYNTHETIC,
        annotations=annotations or {},
    )


# -- images with a class --

SMALL, HUES = 16, 10


def draw_classes(
    count: int, seed: int, hues: int = 1, shifted: bool = False, classes: int = 0
) -> Split:
    """Images of class `hues` x figure + hue: bright ink on dark paper, so noisy that small networks
    do not learn them wholly. Where they are `shifted`, half of them have it the other way round,
    and more noise. `classes` are the first so many; 0 for all.
    """
    rng = np.random.default_rng(seed)
    labels = blobs.balanced(count, classes or len(blobs.FIGURES) * hues, rng)
    cover = blobs.figures(labels // hues, SMALL, rng)[:, None]
    hue = (labels % hues + rng.uniform(-0.2, 0.2, count)) / hues
    ink = blobs.rgb(hue % 1, rng.uniform(0.6, 1, count), rng.uniform(0.6, 1, count))
    if hues == 1:
        ink = rng.uniform(0.45, 1, (count, 3))
    paper = rng.uniform(0, 0.45, (count, 3))
    other = (rng.random((count, 1)) < 0.5) & shifted
    ink, paper = np.where(other, paper * 0.8, ink), np.where(other, ink * 0.8, paper)
    clean = paper[:, :, None, None] + cover * (ink - paper)[:, :, None, None]
    grain = np.where(other, 0.4, 0.25)[:, :, None, None]
    return Split(blobs.as_bytes(clean + grain * blobs.noise(clean.shape, rng)), labels)


_two_sites = functools.partial(draw_classes, shifted=True)
_hundred = functools.partial(draw_classes, hues=HUES)


def draw_negatives(count: int, seed: int) -> Split:
    """Negatives of the hundred classes in another order: 10 x hue + figure, so that ten that follow
    one another have one hue.
    """
    drawn = _hundred(count, seed)
    figures, hues = np.divmod(drawn.labels, HUES)
    return Split(255 - drawn.images, hues * len(blobs.FIGURES) + figures)


def _grey(count: int, seed: int) -> Split:
    drawn = _hundred(count, seed)
    return Split(luminance(drawn.images), drawn.labels)


def _classes(
    name: str, title: str, draw: Callable[[int, int], Split], seed: int, tone: tuple[float, float]
) -> DataSource:
    sizes = (4000, 1000) if "100" in name else (4000, 1000, 4000)
    parts = {
        split: (size, functools.partial(draw, size, seed + number))
        for number, (split, size) in enumerate(zip(("train", "test", "valid"), sizes, strict=False))
    }
    shape = (1 if name.endswith("grey") else 3, SMALL, SMALL)
    return _source(name, title, shape, parts, tone, 100 if "100" in name else 10)


def draw_few(count: int, seed: int, classes: int, channels: int) -> Split:
    """Images of so many classes, up to twenty, in colour or grey."""
    drawn = draw_classes(count, seed, 1 + (classes > len(blobs.FIGURES)), classes=classes)
    return drawn if channels == 3 else Split(luminance(drawn.images), drawn.labels)


def _few(classes: int, channels: int) -> DataSource:
    """What stands in for a set of MedMNIST with as many classes."""
    seed, grey = 10 * classes + 1000 * channels, channels == 1
    parts: Parts = {
        split: (size, functools.partial(draw_few, size, seed + number, classes, channels))
        for number, (split, size) in enumerate({"train": 2000, "valid": 500, "test": 500}.items())
    }
    name, tone = f"shapes-{classes}{'-grey' * grey}", (0.36, 0.23 if grey else 0.30)
    title = f"shapes, {classes} classes{', in grey' * grey}"
    return _source(name, title, (channels, SMALL, SMALL), parts, tone, classes)


# -- films with findings --

SIDE = 32
SECOND_FILM, PRESENT = 0.3, 0.12
"""Shares of patients with two films, and with each finding."""
UNCERTAIN = (0.03, 0.12)
"""Share of entries that are uncertain, where the finding is absent and where it is present."""
_SAME = {"effusion": "pleural-effusion", "pleural-thickening": "pleural-other"}
"""What is drawn alike under two names."""
_DRAWN = [*dict.fromkeys(_SAME.get(n, n) for n in (*NIH_NAMES, *CHEXPERT_NAMES) if n != NO_FINDING)]


def draw_films(
    count: int,
    seed: int,
    names: Sequence[str],
    how: Acquisition | None = None,
    uncertain: bool = False,
    annotated: bool = True,
) -> Split:
    """Films of patients, of whom each has each finding of `names` by chance; the class is whether
    any is there. Patients of two seeds differ.
    """
    rng = np.random.default_rng(seed)
    patients = np.repeat(np.arange(count), 1 + (rng.random(count) < SECOND_FILM))[:count]
    drawn = [name for name in names if name != NO_FINDING]
    has = (rng.random((count, len(drawn))) < PRESENT)[patients]
    tones = blobs.film(patients, SIDE, rng)
    for name, shown in zip(drawn, has.T, strict=True):
        blobs.show(tones, _DRAWN.index(_SAME.get(name, name)), patients, shown, (seed,))
    images = blobs.as_bytes(tones + 0.02 * blobs.noise(tones.shape, rng))
    if how:
        images = films.acquire(images, how, rng)
    stated = has.astype(np.uint8)
    if uncertain:
        stated[rng.random(has.shape) < np.where(has, UNCERTAIN[1], UNCERTAIN[0])] = IGNORE
    columns = {NO_FINDING: ~has.any(axis=1), **dict(zip(drawn, stated.T, strict=True))}
    findings = np.stack([columns[name].astype(np.uint8) for name in names], axis=1)
    return Split(
        np.stack([films.equalise(film) for film in images])[:, None],
        np.asarray(has.any(axis=1), np.int64),
        {"findings": findings} if annotated else {},
        groups=(patients + 1_000_000 * seed).astype(np.int64),
    )


def _films(
    name: str,
    title: str,
    seed: int,
    names: tuple[str, ...],
    how: Acquisition | None = None,
    uncertain: bool = False,
    annotated: bool = True,
) -> DataSource:
    draw = functools.partial(draw_films, names=names, how=how, annotated=annotated)
    parts: Parts = {
        "train": (3000, lambda: draw(3000, seed, uncertain=uncertain)),
        "test": (800, lambda: draw(800, seed + 1)),
    }
    known = {"findings": Annotation(FINDINGS, len(names), "what was drawn", names)}
    tone = (films.MEAN[0], films.STD[0])
    return _source(name, title, (1, SIDE, SIDE), parts, tone, 2, known if annotated else {})


# -- tissue with nuclei --

TISSUE_SIDE = 96


def draw_tissue(
    stains: Sequence[str], labels: Sequence[int], groups: Sequence[int], seed: int
) -> Split:
    """An image of each of the stains, with these classes and groups."""
    rng = np.random.default_rng(seed)
    images, objects = zip(*(blobs.tissue(name, TISSUE_SIDE, rng) for name in stains), strict=True)
    return Split(
        np.stack(images),
        np.array(labels, np.int64),
        {"nuclei": np.stack([*map(numbered, objects)])},
        groups=np.array(groups, np.int64),
    )


def _of_organs(number: int, split: str) -> Split:
    """As many images of each organ as MoNuSeg has in the division of Kumar et al. (2017)."""
    organs = [ORGANS_OF[name] for name in KUMAR[split]]
    groups = range(1000 * number, 1000 * number + len(organs))
    return draw_tissue(organs, [ORGANS.index(organ) for organ in organs], groups, 601 + number)


def _of_patients(stain: str, seed: int, first: int, patients: int) -> Split:
    """Three images of each patient."""
    groups = np.arange(first, first + patients).repeat(3).tolist()
    return draw_tissue([stain] * len(groups), [0] * len(groups), groups, seed)


def _nuclei(name: str, title: str, stain: str, seed: int) -> DataSource:
    parts = {
        "train": (15, functools.partial(_of_patients, stain, seed, 1, 5)),
        "test": (6, functools.partial(_of_patients, stain, seed + 1, 6, 2)),
    }
    shape = (3, TISSUE_SIDE, TISSUE_SIDE)
    return _source(name, title, shape, parts, (0.8, 0.15), 1, NUCLEI)


# -- heads --

SITES = {"b": 0, "f": 1, "i": 2, "public": 3}
"""The scanner of each site, by what tables call it."""
SHOWN = (0, 3, 1)
"""Channels of a slice with a tumour: T1, FLAIR, T1 with contrast."""
LABELS = np.array([0, 0, 0, 0, 2, 1, 4], np.uint8)
"""BraTS's label of each tissue."""
PER_HEAD = tuple(range(7, 25, 3))
"""Slices of a head for reconstruction."""


def draw_heads(count: int, seed: int, scanners: Sequence[int]) -> Split:
    """Volumes of the scanners in turn; a group is a head, and those of two seeds differ."""
    rng = np.random.default_rng(seed)
    labels = np.resize(np.array(scanners, np.int64), count)
    tissue = blobs.tissues(count, SIDE, rng)
    return Split(
        blobs.scanned(tissue, labels, rng),
        labels,
        {"tumour": LABELS[tissue]},
        groups=np.arange(count) + 1000 * seed,
    )


def draw_tumours(slices: int, heads: int, seed: int) -> Split:
    """Slices in which the tumour has at least four pixels, evenly of all that there are."""
    volumes = draw_heads(heads, seed, (0, 1, 2))
    whole = volumes.annotations["tumour"] > 0
    found = np.argwhere(whole.sum(axis=(2, 3)) >= 4)
    rows, depths = found[np.arange(slices) * len(found) // slices].T
    assert volumes.groups is not None
    return Split(
        np.ascontiguousarray(volumes.images[rows, :, depths][:, SHOWN]),
        volumes.labels[rows],
        {"tumour": whole[rows, depths].astype(np.uint8)},
        groups=volumes.groups[rows],
    )


def draw_slices(site: str, modality: str, split: str) -> Split:
    """Slices (n, 1, side, side) of one sequence and scanner."""
    scanner, test = SITES[site], split == "test"
    heads = draw_heads(4 if test else 8, 640 + 2 * scanner + test, (scanner,))
    images = heads.images[:, MODALITIES.index(modality), PER_HEAD].reshape(-1, 1, SIDE, SIDE)
    assert heads.groups is not None
    groups = heads.groups.repeat(len(PER_HEAD))
    return Split(images.copy(), np.zeros(len(images), np.int64), groups=groups)


def _slices(site: str, modality: str) -> DataSource:
    title = f"generated heads of scanner {site}, {modality.upper()}"
    return DataSource(
        **slices("generated-slices", f"phantom-brains-{site}-{modality}", title, SIDE),
        sizes={"train": 8 * len(PER_HEAD), "test": 4 * len(PER_HEAD)},
        files=lambda home: [],
        load=lambda home: {
            split: draw_slices(site, modality, split) for split in ("train", "test")
        },
        kind=SYNTHETIC,
    )


def _heads(
    name: str, title: str, seed: int, sizes: tuple[int, int], scanners: Sequence[int]
) -> DataSource:
    parts = {
        split: (size, functools.partial(draw_heads, size, seed + number, scanners))
        for number, (split, size) in enumerate(zip(("train", "test"), sizes, strict=True))
    }
    marks = Annotation(SEGMENTS, 5, "1 necrosis, 2 oedema, 4 enhancing tumour, as BraTS's")
    shape = (len(MODALITIES), SIDE, SIDE, SIDE)
    return _source(name, title, shape, parts, (0.12, 0.18), len(INSTITUTIONS), {"tumour": marks})


# -- scenes with values of every pixel --

_PIXEL = {
    "depth_euclidean": Annotation(MAP, 1, f"distance from the camera, 0 to {blobs.FAR:.0f} m"),
    "normal": Annotation(MAP, 3, "unit normals, -1 to 1: x right, y up, z to the camera"),
    "edge_occlusion": Annotation(MAP, 1, "255 beside another surface, else 0"),
    "edge_texture": Annotation(MAP, 1, "gradient of the grey picture; 255 for half its range"),
    "keypoints2d": Annotation(MAP, 1, "bumps at the middles of blobs"),
    "segment_semantic": Annotation(
        SEGMENTS, 2 + len(blobs.KINDS), ", ".join(("wall", "floor", *blobs.KINDS))
    ),
}


def draw_scenes(count: int, seed: int) -> Split:
    """Scenes of which the class is the kind of the nearest blob."""
    rng = np.random.default_rng(seed)
    labels = blobs.balanced(count, len(blobs.KINDS), rng)
    parts = [blobs.scenes(some, SIDE, rng) for some in np.array_split(labels, -(-count // 250))]
    made = {name: np.concatenate([part[name] for part in parts]) for name in ("image", *_PIXEL)}
    return Split(made.pop("image"), labels, made)


_SCENES = {"train": (4000, 201), "valid": (1000, 202), "test": (1000, 203)}
_TUMOURS = {"train": (239, 40, 631), "test": (69, 12, 632)}

SOURCES = [
    _classes("shapes", "shapes", draw_classes, 1, (0.36, 0.30)),
    _classes("shapes-shifted", "shapes, two sites", _two_sites, 1, (0.43, 0.34)),
    _classes("shapes-100", "shapes, 100 classes", _hundred, 101, (0.31, 0.27)),
    _classes(
        "shapes-100-shifted", "shapes, 100 classes, another site", draw_negatives, 201, (0.69, 0.27)
    ),
    _classes("shapes-100-grey", "shapes, 100 classes, in grey", _grey, 101, (0.31, 0.19)),
    *(_few(classes, 3) for classes in (5, 7, 8, 9)),
    *(_few(classes, 1) for classes in (2, 4, 8, 11)),
    _films("phantom-films", "films", 301, NIH_NAMES),
    _films("phantom-films-shifted", "films, another site", 303, CHEXPERT_NAMES, SECOND_SITE, True),
    _films(
        "phantom-films-public", "films, a third site", 305, NIH_NAMES, THIRD_SITE, annotated=False
    ),
    replace(
        _source(
            "phantom-nuclei",
            "nuclei",
            (3, TISSUE_SIDE, TISSUE_SIDE),
            {
                split: (len(names), functools.partial(_of_organs, n, split))
                for n, (split, names) in enumerate(KUMAR.items())
            },
            (0.8, 0.15),
            len(ORGANS),
            NUCLEI,
        ),
        class_names=ORGANS,
    ),
    _nuclei("phantom-nuclei-shifted", "nuclei, another site", "shifted", 611),
    _nuclei("phantom-nuclei-third", "nuclei, a third site", "third", 621),
    _source(
        "phantom-tumours",
        "heads, slices",
        (3, SIDE, SIDE),
        {s: (how[0], functools.partial(draw_tumours, *how)) for s, how in _TUMOURS.items()},
        (0.2, 0.2),
        len(INSTITUTIONS),
        {"tumour": Annotation(SEGMENTS, 2, "1 for the whole tumour")},
    ),
    _heads("phantom-volumes", "heads", 633, (24, 9), (0, 1, 2)),
    _heads("phantom-volumes-public", "heads, a fourth site", 635, (12, 3), (3,)),
    *(_slices(site, modality) for site in SITES for modality in ("t1", "t2")),
    _source(
        "scenes",
        "scenes",
        (3, SIDE, SIDE),
        {s: (how[0], functools.partial(draw_scenes, *how)) for s, how in _SCENES.items()},
        (0.43, 0.23),
        len(blobs.KINDS),
        _PIXEL,
    ),
]
