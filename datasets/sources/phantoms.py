"""Generated grey films with lungs, ribs, heart and diaphragm, and findings drawn on them: synthetic
stand-ins for chest films.

A patient has an anatomy and findings, and one or two films of both; each finding is a change at a
place where it may be: an enlarged heart, a dark rim at the apex, a white base of a lung that rises
at its side. `phantom-films` has NIH ChestX-ray14's findings; `phantom-films-shifted` has other
patients, CheXpert's findings, of which some are uncertain in the training split, and the
acquisition of `datasets.films.SECOND_SITE`; `phantom-films-public` has further patients, the
acquisition `THIRD_SITE` and no findings beside its class. A part of the patients is healthy, of the
others each has each finding by chance at the rate that `NIH_RATES` or `CHEXPERT_RATES` state for
all. Histograms are equalised as those of the other films are; the reference's blur would, at 32
pixels, be as wide as a rib and is left out. They exercise every code path of a data set of films;
they are no films, and every table made from them says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from datasets import films
from datasets.annotations import FINDINGS, IGNORE, AnnotatedSource, AnnotatedSplit, Annotation
from datasets.films import NO_FINDING, Acquisition
from datasets.source import SYNTHETIC, Split
from datasets.sources.chexpert import NAMES as CHEXPERT_NAMES
from datasets.sources.nih_cxr import NAMES as NIH_NAMES

SIZE = 32
NIH_RATES = {
    "atelectasis": 0.13,
    "cardiomegaly": 0.1,
    "effusion": 0.13,
    "infiltration": 0.15,
    "mass": 0.07,
    "nodule": 0.08,
    "pneumonia": 0.08,
    "pneumothorax": 0.08,
    "consolidation": 0.08,
    "edema": 0.07,
    "emphysema": 0.06,
    "fibrosis": 0.06,
    "pleural-thickening": 0.06,
    "hernia": 0.04,
}
"""Share of patients with each finding; own choices in the order of frequency of the real set, the
rare ones less rare."""
CHEXPERT_RATES = {
    "enlarged-cardiomediastinum": 0.08,
    "cardiomegaly": 0.12,
    "lung-opacity": 0.17,
    "lung-lesion": 0.06,
    "edema": 0.13,
    "consolidation": 0.08,
    "pneumonia": 0.07,
    "atelectasis": 0.12,
    "pneumothorax": 0.08,
    "pleural-effusion": 0.17,
    "pleural-other": 0.04,
    "fracture": 0.05,
    "support-devices": 0.17,
}
HEALTHY = 0.35
"""Share of patients without any finding."""
SECOND_FILM = 0.3
"""Share of patients with two films."""
UNCERTAIN = (0.03, 0.12)
"""Share of CheXpert's entries that are uncertain in the training split, where the finding is absent
and where it is present."""

_SAME = {"effusion": "pleural-effusion", "pleural-thickening": "pleural-other"}
"""What is drawn alike under two names."""
_DRAWN = tuple(dict.fromkeys([*(_SAME.get(name, name) for name in NIH_NAMES), *CHEXPERT_RATES]))
"""All that can be drawn, one column each."""


@dataclass(frozen=True)
class Anatomy:
    """What n films show beside findings, each (n, 1, 1); x from -1 at the left to 1 at the right, y
    from -1 at the top to 1.
    """

    lung_x: np.ndarray
    """How far the middles of the lungs are from the middle."""
    lung_y: np.ndarray
    lung_width: np.ndarray
    """Half of it, as of all widths and heights here."""
    lung_height: np.ndarray
    base: tuple[np.ndarray, np.ndarray]
    """Where the dome of the diaphragm is, on the left and on the right of the film."""
    heart_x: np.ndarray
    heart_y: np.ndarray
    heart_width: np.ndarray
    heart_height: np.ndarray
    mediastinum: np.ndarray
    """Half the width of what lies between the lungs."""
    body: np.ndarray
    """Half the width of the trunk."""
    rib_rate: np.ndarray
    """Ribs in 2 pi of y."""
    rib_phase: np.ndarray
    air: np.ndarray
    """Tone of the lungs, 0 for black."""


def _imagine(count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random numbers in -1...1 for every quantity of an anatomy, (count, 1, 1)."""
    names = [*Anatomy.__dataclass_fields__, "other_base"]
    return {name: rng.uniform(-1, 1, (count, 1, 1)).astype(np.float32) for name in names}


def _anatomy(r: Mapping[str, np.ndarray], present: Mapping[str, np.ndarray]) -> Anatomy:
    """The anatomy of films from random numbers and from those findings that alter it, each (n, 1,
    1).
    """
    emphysema, flat = present["emphysema"], 0.2 * present["emphysema"]
    return Anatomy(
        lung_x=0.43 + 0.03 * r["lung_x"],
        lung_y=-0.08 + 0.04 * r["lung_y"],
        lung_width=(0.31 + 0.03 * r["lung_width"]) * (1 + 0.12 * emphysema),
        lung_height=0.68 + 0.05 * r["lung_height"] + 0.5 * flat,
        base=(0.3 + 0.06 * r["base"] + flat, 0.37 + 0.06 * r["other_base"] + flat),
        heart_x=0.1 + 0.03 * r["heart_x"],
        heart_y=0.22 + 0.04 * r["heart_y"],
        heart_width=(0.24 + 0.03 * r["heart_width"])
        * (1 + 0.6 * present["cardiomegaly"] - 0.25 * emphysema),
        heart_height=(0.25 + 0.03 * r["heart_height"]) * (1 + 0.3 * present["cardiomegaly"]),
        mediastinum=(0.12 + 0.015 * r["mediastinum"])
        * (1 + 0.9 * present["enlarged-cardiomediastinum"]),
        body=0.93 + 0.05 * r["body"],
        rib_rate=26 + 3 * r["rib_rate"],
        rib_phase=3.1 * r["rib_phase"],
        air=0.24 + 0.04 * r["air"] - 0.12 * emphysema,
    )


def _soft(inside: np.ndarray, edge: float = 0.04) -> np.ndarray:
    """0 to 1 where a distance goes from outside (negative) to inside."""
    return 1 / (1 + np.exp(-(inside / edge).clip(-30, 30)))


def _disc(x: np.ndarray, y: np.ndarray, radius: np.ndarray | float) -> np.ndarray:
    return _soft(radius - np.hypot(x, y), 0.03)


_Y, _X = (
    side.astype(np.float32)[None] for side in np.mgrid[-1 : 1 : SIZE * 1j, -1 : 1 : SIZE * 1j]
)
_CHECKS = (np.indices((SIZE, SIZE)).sum(axis=0) % 2).astype(np.float32)[None]


@dataclass(frozen=True)
class Lungs:
    """Where the lungs of n films are, each (n, 32, 32); u runs from -1 at the heart to 1 at the
    ribs, v from apex to base.
    """

    masks: tuple[np.ndarray, np.ndarray]
    """Left and right of the film."""
    u: tuple[np.ndarray, np.ndarray]
    v: np.ndarray

    def on(self, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mask and u of the lung on the right where `right` (n, 1, 1), else of that on the left."""
        return np.where(right, self.masks[1], self.masks[0]), np.where(right, self.u[1], self.u[0])

    def __getitem__(self, chosen: np.ndarray) -> Lungs:
        masks, u = ((pair[0][chosen], pair[1][chosen]) for pair in (self.masks, self.u))
        return Lungs(masks, u, self.v[chosen])


def _lungs(body: Anatomy, raised: tuple[np.ndarray, np.ndarray]) -> Lungs:
    """Ellipses that end at the domes, which are `raised` by so much."""
    u = tuple((side * _X - body.lung_x) / body.lung_width for side in (-1, 1))
    v = (_Y - body.lung_y) / body.lung_height
    masks = tuple(
        _soft(1 - np.hypot(along, v), 0.08) * _soft(base - lift + 0.25 * along**2 - _Y)
        for along, base, lift in zip(u, body.base, raised, strict=True)
    )
    return Lungs((masks[0], masks[1]), (u[0], u[1]), v)


Layer = tuple[np.ndarray, float]
"""How much of each pixel it covers, (n, 32, 32) in [0, 1], and its tone."""


def _layers(name: str, lungs: Lungs, right: np.ndarray, rng: np.random.Generator) -> list[Layer]:
    """What a finding looks like in n films where it is on the `right` (n, 1, 1) or left; none for
    those of the anatomy.
    """
    count = len(right)
    mask, u = lungs.on(right)
    v = lungs.v

    def drawn(low: float, high: float) -> np.ndarray:
        return rng.uniform(low, high, (count, 1, 1)).astype(np.float32)

    def round_lesion(low: float, high: float) -> np.ndarray:
        """A disc in a lung, its radius between the two."""
        across, down, radius = drawn(-0.25, 0.35), drawn(-0.45, 0.2), drawn(low, high)
        return _disc((u - across) * 0.31, (v - down) * 0.68, radius)

    if name == "atelectasis":  # a plate above the raised dome
        return [
            (
                0.8
                * mask
                * np.exp(-(((v - drawn(0.1, 0.3) - drawn(-0.15, 0.15) * u) / 0.09) ** 2)),
                0.85,
            )
        ]
    if name == "pleural-effusion":  # a level that rises at the side
        return [(0.95 * mask * _soft(v - drawn(0.05, 0.3) + 0.3 * u, 0.06), 0.75)]
    if name == "infiltration":  # patches
        patches = np.sin(7 * u + drawn(0, 6.3)) * np.sin(8 * v + drawn(0, 6.3)) > 0
        return [
            (0.7 * mask * patches * np.exp(-((u**2 + (v - drawn(-0.3, 0.1)) ** 2) / 0.5)), 0.75)
        ]
    if name == "mass":
        return [(0.95 * round_lesion(0.19, 0.25), 0.85)]
    if name == "nodule":
        return [(round_lesion(0.075, 0.11), 0.95)]
    if name == "lung-lesion":
        return [(round_lesion(0.09, 0.22), 0.9)]
    if name == "pneumonia":  # a cloud in the lower field
        return [
            (
                0.85
                * mask
                * np.exp(
                    -(((u - drawn(-0.2, 0.3)) / 0.55) ** 2) - ((v - drawn(0.2, 0.4)) / 0.25) ** 2
                ),
                0.72,
            )
        ]
    if name == "pneumothorax":  # air at apex and side, within a line
        depth = u * 0.8 - v * 0.6 - drawn(0.15, 0.45)
        return [
            (0.97 * mask * _soft(depth, 0.06), 0.02),
            (0.7 * mask * np.exp(-((depth / 0.08) ** 2)), 0.7),
        ]
    if name == "consolidation":  # the upper lobe down to its fissure
        return [(0.9 * mask * _soft(drawn(-0.35, -0.05) - v, 0.03), 0.72)]
    if name == "edema":  # both lungs, from their roots
        reach = drawn(0.2, 0.4)
        return [
            (
                0.75 * lung * np.exp(-((along + 0.7) ** 2 / (2 * reach)) - (v - 0.1) ** 2 / reach),
                0.72,
            )
            for lung, along in zip(lungs.masks, lungs.u, strict=True)
        ]
    if name == "fibrosis":  # a net over both bases
        net = 0.85 * _soft(v - drawn(-0.2, 0.0), 0.06) * _CHECKS
        return [(net * lung, 0.8) for lung in lungs.masks]
    if name == "pleural-other":  # a rind at the ribs
        return [(0.9 * mask * _soft(u - drawn(0.5, 0.65), 0.05) * _soft(0.55 - abs(v), 0.1), 0.8)]
    if name == "hernia":  # a bubble of air behind the heart
        away = np.hypot(_X - drawn(-0.06, 0.1), _Y - drawn(0.3, 0.42))
        return [(_soft(0.21 - away, 0.03), 0.9), (_soft(0.14 - away, 0.03), 0.1)]
    if name == "lung-opacity":  # a veil over a lung
        return [(drawn(0.4, 0.6) * mask, 0.75)]
    if name == "fracture":  # a gap in the wall at the side
        return [(_disc((u - 1.05) * 0.31, (v - drawn(-0.3, 0.3)) * 0.68, 0.09), 0.05)]
    if name == "support-devices":  # a box under the collarbone, and its lead to the heart
        box = _soft(0.34 - abs(u - 0.35), 0.05) * _soft(0.13 - abs(v + 0.55), 0.02)
        lead = (
            np.exp(-(((v + 0.55 - 0.45 * (0.35 - u)) / 0.06) ** 2))
            * _soft(0.35 - u, 0.1)
            * _soft(u + 1.3, 0.1)
        )
        return [(0.9 * lead, 1.0), (box, 1.0)]
    return []


def render(
    r: Mapping[str, np.ndarray],
    present: Mapping[str, np.ndarray],
    right: Mapping[str, np.ndarray],
    rng: np.random.Generator,
) -> np.ndarray:
    """Films uint8 (n, 32, 32) of anatomies with the findings that are `present`, on the `right` of
    the film or on its left.
    """
    body = _anatomy(r, present)
    lift = np.float32(0.14) * present["atelectasis"]
    lungs = _lungs(body, (lift * ~right["atelectasis"], lift * right["atelectasis"]))
    trunk = _soft(body.body - abs(_X)) * _soft(_Y + 1.05 - 0.75 * (abs(_X) - 0.35).clip(0))
    tones = np.float32(0.6) + np.float32(0.1) * _soft(_Y - 0.5, 0.1)
    ribs = np.float32(0)
    for mask, u in zip(lungs.masks, lungs.u, strict=True):
        tones = tones + mask * (body.air - tones)
        ribs = ribs + mask * np.cos(body.rib_rate * (_Y - 0.12 * u**2) + body.rib_phase).clip(0)
        root = np.exp(-((u + 0.8) ** 2) / 0.3 - (lungs.v - 0.1) ** 2 / 0.1)
        tones = tones + 0.15 * mask * root
    tones = tones + 0.1 * ribs
    middle = _soft(body.mediastinum - abs(_X)) * (0.6 + 0.4 * _soft(0.2 - _Y, 0.1))
    heart = _soft(
        1
        - np.hypot((_X - body.heart_x) / body.heart_width, (_Y - body.heart_y) / body.heart_height),
        0.12,
    )
    for layer, tone in ((middle, 0.78), (heart, 0.74)):
        tones = tones + layer * (tone - tones)
    for name, has in present.items():
        affected = has[:, 0, 0] > 0
        if affected.any():
            for cover, tone in _layers(name, lungs[affected], right[name][affected], rng):
                tones[affected] += cover * (tone - tones[affected])
    tones = tones * trunk + 0.03 * rng.standard_normal(tones.shape, np.float32)
    return np.rint(tones.clip(0, 1) * 255).astype(np.uint8)


def draw(
    count: int, seed: int, rates: Mapping[str, float], how: Acquisition | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images uint8 (count, 1, 32, 32), which of the findings of `rates` each shows, bool (count,
    findings), and its patient.

    Patients are numbered from 1,000,000 times the seed, so that those of two seeds differ.
    """
    rng = np.random.default_rng(seed)
    patients: np.ndarray = np.repeat(np.arange(count), 1 + (rng.random(count) < SECOND_FILM))[
        :count
    ]
    people = int(patients[-1]) + 1
    sick = rng.random((people, 1)) >= HEALTHY
    has = (sick & (rng.random((people, len(rates))) < np.array([*rates.values()]) / (1 - HEALTHY)))[
        patients
    ]
    columns = {_SAME.get(name, name): has[:, index, None, None] for index, name in enumerate(rates)}
    present = {
        name: columns.get(name, np.zeros((count, 1, 1))).astype(np.float32) for name in _DRAWN
    }
    right = {name: rng.random((people, 1, 1))[patients] < 0.5 for name in _DRAWN}
    anatomies = {name: values[patients] for name, values in _imagine(people, rng).items()}
    parts = []
    for start in range(0, count, 250):  # few at a time: faster, in cache
        part = slice(start, start + 250)
        anatomy, shown, where = (
            {name: values[part] for name, values in of.items()}
            for of in (anatomies, present, right)
        )
        parts.append(render(anatomy, shown, where, rng))
    drawn = np.concatenate(parts)
    if how:
        drawn = films.acquire(drawn, how, rng)
    images = np.stack([films.equalise(film) for film in drawn])[:, None]
    return images, has, (patients + 1_000_000 * seed).astype(np.int64)


def _draw_nih(count: int, seed: int) -> Split:
    images, has, patients = draw(count, seed, NIH_RATES)
    findings = has.astype(np.uint8)  # the rates are in the order of the names
    return AnnotatedSplit(
        images, films.any_finding(findings, NIH_NAMES), {"findings": findings}, groups=patients
    )


def _draw_chexpert(count: int, seed: int, uncertain: bool) -> Split:
    images, has, patients = draw(count, seed, CHEXPERT_RATES, films.SECOND_SITE)
    stated = np.where(has, 1, 0).astype(np.uint8)
    if uncertain:
        rng = np.random.default_rng([seed, 1])  # another stream than the drawing's own
        stated[rng.random(has.shape) < np.where(has, UNCERTAIN[1], UNCERTAIN[0])] = IGNORE
    columns = {NO_FINDING: ~has.any(axis=1), **dict(zip(CHEXPERT_RATES, stated.T, strict=True))}
    findings = np.stack([columns[name].astype(np.uint8) for name in CHEXPERT_NAMES], axis=1)
    return AnnotatedSplit(
        images, np.asarray(has.any(axis=1), np.int64), {"findings": findings}, groups=patients
    )


def _draw_public(count: int, seed: int) -> Split:
    images, has, patients = draw(count, seed, NIH_RATES, films.THIRD_SITE)
    return AnnotatedSplit(images, np.asarray(has.any(axis=1), np.int64), groups=patients)


def _load(home: Path) -> dict[str, Split]:
    return {"train": _draw_nih(3000, 301), "test": _draw_nih(800, 302)}


def _load_shifted(home: Path) -> dict[str, Split]:
    return {"train": _draw_chexpert(3000, 303, True), "test": _draw_chexpert(800, 304, False)}


def _load_public(home: Path) -> dict[str, Split]:
    return {"train": _draw_public(3000, 305), "test": _draw_public(800, 306)}


def _source(
    name: str,
    title: str,
    note: str,
    load: Callable[[Path], dict[str, Split]],
    names: tuple[str, ...] = (),
) -> AnnotatedSource:
    return AnnotatedSource(
        name=name,
        title=title,
        classes=2,
        shape=(1, SIZE, SIZE),
        sizes={"train": 3000, "test": 800},
        mean=films.MEAN,
        std=films.STD,
        licence="generated by this suite (Apache-2.0)",
        how_to_get="It is generated.",
        files=lambda home: [],
        load=load,
        kind=SYNTHETIC,
        note=note,
        annotations=(
            {"findings": Annotation(FINDINGS, len(names), "what was drawn", names)} if names else {}
        ),
    )


SOURCES = [
    _source(
        "phantom-films",
        "generated films",
        "drawn lungs with drawn findings, not films of anyone",
        _load,
        NIH_NAMES,
    ),
    _source(
        "phantom-films-shifted",
        "generated films, another site",
        "other drawn patients, CheXpert's findings, some uncertain, under an acquisition shift; not"
        " films of anyone",
        _load_shifted,
        CHEXPERT_NAMES,
    ),
    _source(
        "phantom-films-public",
        "generated films, a third site",
        "further drawn patients under a third acquisition, without findings; not films of anyone",
        _load_public,
    ),
]
