"""CIFAR-100 in grey, of 16 x 16 pixels: a public set of another domain for target tasks in grey.

Every pixel is the mean of 2 x 2 where the files have 32 x 32, and then its luminance.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from datasets.source import DataSource, Split
from datasets.sources import cifar

SIDE = 16
LUMINANCE = (299, 587, 114)
"""Thousandths of red, green and blue (ITU-R BT.601)."""
_WHOLE, _REDUCED = (entry for entry in cifar.SOURCES if entry.classes == 100)


def luminance(images: np.ndarray) -> np.ndarray:
    """Colour images uint8 (n, 3, h, w) in grey, uint8 (n, 1, h, w): in whole numbers, so that no
    processor rounds a half in its own way.
    """
    weights = np.array(LUMINANCE, np.int32)[:, None, None]
    thousandths = (images * weights).sum(axis=1, keepdims=True, dtype=np.int32)
    return ((thousandths + 500) // 1000).astype(np.uint8)


def halved(images: np.ndarray) -> np.ndarray:
    """The means of 2 x 2 pixels, uint8 (n, c, h, w) to (n, c, h / 2, w / 2)."""
    n, channels, height, width = images.shape
    parts = images.reshape(n, channels, height // 2, 2, width // 2, 2)
    return np.rint(parts.mean(axis=(3, 5), dtype=np.float32)).astype(np.uint8)


def _in_grey(splits: dict[str, Split]) -> dict[str, Split]:
    found = {}
    for name, split in splits.items():
        small = split.images if split.images.shape[-1] == SIDE else halved(split.images)
        found[name] = Split(luminance(small), split.labels)
    return found


def _files(home: Path) -> list[Path]:
    return _WHOLE.files(home) or _REDUCED.files(home)


def _load(home: Path) -> dict[str, Split]:
    return _in_grey((_WHOLE if _WHOLE.files(home) else _REDUCED).load(home))


SOURCES = [
    DataSource(
        name="cifar100-grey",
        title="CIFAR-100 in grey",
        classes=100,
        shape=(1, SIDE, SIDE),
        sizes=cifar.SIZES,
        mean=(0.4880,),
        std=(0.2428,),
        licence=cifar.LICENCE,
        how_to_get=_WHOLE.how_to_get,
        files=_files,
        load=_load,
        stand_ins=("shapes-100-grey",),
        note="the luminance of CIFAR-100 at 16 x 16 pixels",
    ),
]
