"""scikit-learn's bundled digits: 1,797 real handwritten digits, no download. The default of the
smoke profile.

`digits-writers` are the same in another split, by form. The file is UCI's optdigits.tes, of 13
people; it does not say who wrote which digit. But its digits come in the order of a preprinted
form: 130 of them, 0 to 9 three times and then a hundred others. That order comes 14 times, some
times with a few left out. Each is taken for one writer's form, which is assumed: somebody must have
filled in two.
"""

import gzip
import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedtables.datasets.source import SURROGATE, DataSource, Split, said, to_nchw

FORMS = (0, 130, 256, 386, 516, 646, 776, 906, 1029, 1157, 1287, 1415, 1545, 1667)
"""Where each form begins, by the order of the digits."""
TESTED = 3
"""Forms at the end that are the test split of `digits-writers` (an own choice)."""


def _file(home: Path) -> list[Path]:
    # Located without importing scikit-learn, which would cost every start a second.
    spec = importlib.util.find_spec("sklearn")
    return [Path(str(spec and spec.origin)).parent / "datasets" / "data" / "digits.csv.gz"]


def _read(home: Path) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(_file(home)[0], "rt") as stream:
        table = np.loadtxt(stream, delimiter=",", dtype=np.int64)
    images = to_nchw((table[:, :-1].reshape(-1, 8, 8) * 255 // 16).astype(np.uint8))
    return images, table[:, -1]


def _load(home: Path) -> dict[str, Split]:
    images, labels = _read(home)
    # The file has no official split: its last fifth is the test set.
    return Split(images, labels).divided(np.arange(len(images)) >= 1437)


def _load_forms(home: Path) -> dict[str, Split]:
    images, labels = _read(home)
    forms = np.searchsorted(FORMS, np.arange(len(images)), side="right").astype(np.int64) - 1
    return Split(images, labels, groups=forms).divided(forms >= len(FORMS) - TESTED)


_DIGITS = DataSource(
    **said("digits"),
    classes=10,
    shape=(1, 8, 8),
    sizes={"train": 1437, "test": 360},
    mean=(0.3046,),
    std=(0.3754,),
    files=_file,
    load=_load,
)
SOURCES = [
    _DIGITS,
    replace(
        _DIGITS,
        **said("digits-writers"),
        sizes={"train": 1415, "test": 382},
        load=_load_forms,
        kind=SURROGATE,
    ),
]
