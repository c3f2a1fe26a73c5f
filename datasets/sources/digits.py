"""scikit-learn's bundled digits: 1,797 real handwritten digits, no download. The default of the
smoke profile.
"""

import gzip
import importlib.util
from pathlib import Path

import numpy as np

from fedtables.datasets.source import DataSource, Split, said, to_nchw


def _file(home: Path) -> list[Path]:
    # Located without importing scikit-learn, which would cost every start a second.
    spec = importlib.util.find_spec("sklearn")
    return [Path(str(spec and spec.origin)).parent / "datasets" / "data" / "digits.csv.gz"]


def _load(home: Path) -> dict[str, Split]:
    with gzip.open(_file(home)[0], "rt") as stream:
        table = np.loadtxt(stream, delimiter=",", dtype=np.int64)
    images = to_nchw((table[:, :-1].reshape(-1, 8, 8) * 255 // 16).astype(np.uint8))
    # The file has no official split: its last fifth is the test set.
    return Split(images, table[:, -1]).divided(np.arange(len(images)) >= 1437)


SOURCES = [
    DataSource(
        **said("digits"),
        classes=10,
        shape=(1, 8, 8),
        sizes={"train": 1437, "test": 360},
        mean=(0.3046,),
        std=(0.3754,),
        files=_file,
        load=_load,
    )
]
