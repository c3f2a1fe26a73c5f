"""One sequence of LGG MRI (`lgg.py`) at one institution: real brains that stand in for a site of
reconstruction.

`lgg-mri-du-t1` has T1 before contrast of the patients of the institution DU, `lgg-mri-du-flair`
FLAIR, which is weighted by T2 with fluid suppressed and so the nearest to T2 that there is.
Patients without T1 before contrast, where FLAIR takes its place, are left out of it. BraTS has
patients of TCGA-LGG too, so that beside real BraTS these sets may show some of its patients.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from datasets.mri import slices_source
from datasets.source import SURROGATE, Split
from datasets.sources import lgg

SEQUENCES = {"t1": 0, "flair": 1}
"""Channels of `lgg-mri`."""
SLICES = {
    "cs-t1": (143, 42),
    "cs-flair": (143, 42),
    "du-t1": (603, 185),
    "du-flair": (619, 185),
    "fg-t1": (178, 68),
    "fg-flair": (204, 68),
    "ht-t1": (343, 116),
    "ht-flair": (406, 131),
}
"""Training and test slices."""
STAND_IN = {"du": "b", "ht": "f", "cs": "i", "fg": "public"}
"""The generated site that takes an institution's place."""


def _load(name: str, home: Path) -> dict[str, Split]:
    institution, sequence = name.split("-")
    splits = {}
    for part, split in lgg.load_slices(home).items():
        chosen = np.flatnonzero(split.labels == lgg.SITES.index(institution.upper()))
        images, groups = split.images[chosen], split.groups
        assert groups is not None
        if sequence == "t1":  # FLAIR stands in its place in every slice of a patient who has none
            same = (images[:, 0] == images[:, 1]).all(axis=(1, 2))
            chosen = chosen[~same]
            images = images[~same]
        splits[part] = Split(
            np.ascontiguousarray(images[:, SEQUENCES[sequence]][:, None]),
            np.zeros(len(chosen), np.int64),
            groups=groups[chosen],
        )
    return splits


SOURCES = [
    slices_source(
        f"lgg-mri-{name}",
        f"LGG MRI, {'FLAIR' if name.endswith('flair') else 'T1'} of institution {name[:2].upper()}",
        {"train": train, "test": test},
        lgg.files,
        functools.partial(_load, name),
        licence=lgg.LICENCE,
        how_to_get=lgg.HOW,
        stand_ins=(f"phantom-brains-{STAND_IN[name[:2]]}-{'t1' if name.endswith('t1') else 't2'}",),
        side=lgg.SIDE,
        kind=SURROGATE,
        note=(
            "slices of patients with low-grade tumours, most of them next to each other, at half"
            " resolution"
            + ("; FLAIR in the place of T2" if name.endswith("flair") else "")
            + "; patients of TCGA-LGG, some of whom BraTS has too; split by patient,"
            " of this suite's own"
        ),
    )
    for name, (train, test) in SLICES.items()
]
