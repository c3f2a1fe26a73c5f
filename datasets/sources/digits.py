"""scikit-learn's bundled digits: 1,797 real handwritten digits, no download. The default of the
smoke profile.
"""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path

import numpy as np

from datasets.source import DataSource, Split, to_nchw


def _file(home: Path) -> list[Path]:
    # Located without importing scikit-learn, which would cost every start a second.
    spec = importlib.util.find_spec("sklearn")
    return (
        [Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz"]
        if spec and spec.origin
        else []
    )


def _load(home: Path) -> dict[str, Split]:
    with gzip.open(_file(home)[0], "rt") as stream:
        table = np.loadtxt(stream, delimiter=",", dtype=np.int64)
    images = to_nchw((table[:, :-1].reshape(-1, 8, 8) * 255 // 16).astype(np.uint8))
    labels = table[:, -1]
    # The file has no official split: its last fifth is the test set.
    return {
        "train": Split(images[:1437], labels[:1437]),
        "test": Split(images[1437:], labels[1437:]),
    }


SOURCES = [
    DataSource(
        name="digits",
        title="scikit-learn digits",
        classes=10,
        shape=(1, 8, 8),
        sizes={"train": 1437, "test": 360},
        mean=(0.3046,),
        std=(0.3754,),
        licence="CC BY 4.0 (UCI Optical Recognition of Handwritten Digits, Alpaydin and Kaynak)",
        how_to_get="It comes with scikit-learn.",
        files=_file,
        load=_load,
        note="8 x 8 pixels",
    )
]
