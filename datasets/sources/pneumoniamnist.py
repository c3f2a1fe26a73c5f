"""PneumoniaMNIST (Yang et al. 2023; films of Kermany et al. 2018): 5,856 chest films of children at
28 x 28 pixels.

Read from `pneumoniamnist.npz` with MedMNIST's arrays. The films' histograms are equalised as those
of the other films are; the reference's blur, which belongs to films of some thousand pixels, would
here be as wide as a rib and is left out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from datasets import films
from datasets.folders import one_file, reading
from datasets.npz import described, read_arrays
from datasets.source import FINDINGS, Annotation, DataSource, Split, said, whole_numbers

SIZE = 28
SPLITS = {"train": "train", "valid": "val", "test": "test"}
"""By the name here, what MedMNIST calls it."""
_ARRAYS = {
    f"{name}_{what}": stored
    for name in SPLITS.values()
    for what, stored in (("images", f"uint8 (n, {SIZE}, {SIZE})"), ("labels", "0 or 1 (n, 1)"))
}
_files = one_file("pneumoniamnist.npz")


def _load(home: Path) -> dict[str, Split]:
    path = _files(home)[0]
    arrays = read_arrays(path, _ARRAYS)
    splits: dict[str, Split] = {}
    with reading(path, f"a MedMNIST file. {described(_ARRAYS)}"):
        for split, name in SPLITS.items():
            raw = arrays[f"{name}_images"]
            if raw.dtype != np.uint8:
                raise ValueError(f"{name}_images are {raw.dtype}, not uint8")
            images = np.stack([films.equalise(film) for film in raw])[:, None]
            labels = whole_numbers(arrays[f"{name}_labels"].reshape(-1), f"{path}: {name}_labels")
            splits[split] = Split(images, labels, {"findings": labels[:, None].astype(np.uint8)})
    return splits


SOURCES = [
    DataSource(
        **said("pneumoniamnist"),
        classes=2,
        shape=(1, SIZE, SIZE),
        sizes={"train": 4_708, "valid": 524, "test": 624},
        mean=films.MEAN,
        std=films.STD,
        files=_files,
        load=_load,
        stand_ins=("phantom-films-public",),
        annotations={
            "findings": Annotation(FINDINGS, 1, "pneumonia or a normal film", ("pneumonia",))
        },
    )
]
