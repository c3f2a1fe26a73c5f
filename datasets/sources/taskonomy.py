"""Taskonomy (Zamir et al. 2018): photographs of rooms in about 500 buildings, each annotated for
many tasks.

The layout is the official one (data/README.md of github.com/StanfordVL/taskonomy, read together
with the loader of github.com/EPFL-VILAB/omnidata): in the folder `taskonomy` of the data home, the
files

    {domain}/taskonomy/{building}/point_{i}_view_{j}_domain_{domain}.png

as omnidata's download tool writes them, or `{building}_{domain}/{domain}/point_...`, as the
archives unpack, or `{domain}/{building}/point_...`; and the lists of buildings
`train_val_test_{fullplus,full,medium,tiny}.csv`, at the top or in `splits_taskonomy`, of which the
longest that is there says which building is in which split (`val` is `valid` here). The domains
read are those of `ANNOTATIONS`, `rgb` and `class_object`, whose files hold probabilities of
ImageNet's 1,000 classes; the class is the likeliest. Semantic segments are pseudo-labels: 0 is
uncertain (here 255), 1 background, then sixteen classes of COCO.

All of it is 11 TB, and even the smallest partition too large for memory. So at most `MOST` images
of each split are read, evenly spaced over its sorted names, and reduced to 64 x 64 pixels, maps as
the mean of the pixels that one covers, segments as the one in the middle. An image that lacks a
file is left out.
"""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from fedtables.datasets.folders import Spelling, in_part, inside, listed, read_table, reading
from fedtables.datasets.pictures import LOSSLESS, converted, opened
from fedtables.datasets.source import (
    IGNORE,
    MAP,
    SEGMENTS,
    Annotation,
    DataSource,
    Split,
    said,
    whole_numbers,
)

SIZE = 64
MOST = {"train": 10_000, "valid": 2_000, "test": 2_000}
PARTITIONS = ("fullplus", "full", "medium", "tiny")
SEMANTIC = (
    "background, bottle, chair, couch, potted plant, bed, dining table, toilet, tv, microwave,"
    " oven, toaster, sink, refrigerator, book, clock, vase"
)
"""Classes: after the background taskbank/assets/web_assets/pseudosemantics/
coco_selected_classes.txt."""
CLASSES = 1 + SEMANTIC.count(",")
FULL_SCALE = {
    "depth_euclidean": 8000 / 65535,
    "edge_occlusion": 0.04,
    "edge_texture": 0.25,
    "keypoints2d": 0.025,
}
"""Shares of the 16-bit range that are stored as 255, and all above them, for most maps use little
of it: what omnidata's task_configs.py clamps to, for `edge_occlusion` and `keypoints2d` in comments
of the copy in EPFL-VILAB's MultiMAE."""

ANNOTATIONS = {
    "depth_euclidean": Annotation(
        MAP,
        1,
        "distance from the camera in units of 1/512 m, 0 to 8000; 255 also where it is unknown",
    ),
    "normal": Annotation(MAP, 3, "surface normals, 127-centred"),
    "edge_occlusion": Annotation(
        MAP, 1, "edges of the scanned surfaces, 0 to 0.04 of the 16-bit range"
    ),
    "edge_texture": Annotation(MAP, 1, "edges of the photograph, 0 to 0.25 of the 16-bit range"),
    "keypoints2d": Annotation(
        MAP, 1, "heat map of keypoints of the photograph, 0 to 0.025 of the 16-bit range"
    ),
    "segment_semantic": Annotation(SEGMENTS, CLASSES, SEMANTIC),
}
_ENDINGS = {"class_object": "class_object.npy", "segment_semantic": "segmentsemantic.png"}
_DOMAINS = ("rgb", "class_object", *ANNOTATIONS)
_RGB = r"(point_.*_view_.*)_domain_rgb\.png"
View = dict[str, Path]
"""The files of one image, by domain."""


def _buildings(home: Path) -> dict[str, list[str]]:
    """Names of buildings by split, of the longest list that is there; empty if there is none."""
    for name in PARTITIONS:
        for folder in (home, home / "splits_taskonomy"):
            path = folder / f"train_val_test_{name}.csv"
            if path.is_file():
                columns = {"train": "train", "valid": "val", "test": "test"}
                rows = read_table(path, ("id", *columns.values()))
                return {
                    split: [row["id"] for row in rows if row[column] == "1"]
                    for split, column in columns.items()
                }
    return {}


def _folder(home: Path, building: str, domain: str) -> Path | None:
    """Where the files of a domain of a building are, in any of the layouts."""
    layouts = (
        home / domain / "taskonomy" / building,
        home / f"{building}_{domain}" / domain,
        home / domain / building,
    )
    return next((folder for folder in layouts if folder.is_dir()), None)


def _views(home: Path, buildings: Sequence[str], most: int) -> list[View]:
    """So many images of the buildings at most, without those that lack a file."""
    names = []
    for building in sorted(buildings):
        folders = {
            domain: folder for domain in _DOMAINS if (folder := _folder(home, building, domain))
        }
        if len(folders) == len(_DOMAINS):
            stems = (re.fullmatch(_RGB, path.name, re.I) for path in listed(folders["rgb"]))
            names += [(folders, stem[1]) for stem in stems if stem]
    found, spelling = [], Spelling()
    count = min(len(names), most)
    for folders, stem in (names[i * len(names) // count] for i in range(count)):
        endings = {domain: _ENDINGS.get(domain, f"{domain}.png") for domain in _DOMAINS}
        paths = {
            domain: spelling.find(folders[domain] / f"{stem}_domain_{ending}")
            for domain, ending in endings.items()
        }
        view = {domain: path for domain, path in paths.items() if path}
        if len(view) == len(_DOMAINS):
            found.append(view)
    return found


@inside("taskonomy")
def _found(folder: Path) -> list[tuple[str, View]]:
    """Each image to read with its split. Raises DataError for a set without its list of buildings,
    or without an image of a split.
    """
    buildings = _buildings(folder)
    if not buildings:
        raise in_part(f"{folder} lacks train_val_test_tiny.csv")
    found = {split: _views(folder, names, MOST[split]) for split, names in buildings.items()}
    for split, views in found.items():
        if not views:
            raise in_part(f"{folder} lacks images of the split {split!r}")
    return [(split, view) for split, views in found.items() for view in views]


def _files(home: Path) -> list[Path]:
    return [path for _, view in _found(home) for path in view.values()]


def read_map(path: Path, full_scale: float = 1.0) -> np.ndarray:
    """A PNG of 8 or 16 bits as uint8 (channels, 64, 64), where 255 is `full_scale` of a 16-bit
    range or all of an 8-bit one.
    """
    from PIL import Image

    with opened(path) as image:
        wide = image.mode.startswith("I")
        grey = wide or image.mode == "L"
        pixels = np.asarray(image if grey else converted(image, "RGB"), np.float32)
    share = (pixels / (65535 * full_scale if wide else 255)).clip(0, 1)
    channels = np.atleast_3d(share).transpose(2, 0, 1)
    small = [
        np.asarray(Image.fromarray(channel).resize((SIZE, SIZE), Image.Resampling.BOX))
        for channel in channels
    ]
    return np.rint(np.stack(small) * 255).astype(np.uint8)


def read_segments(path: Path) -> np.ndarray:
    """Semantic classes as uint8 (64, 64): 0 for background, 255 for uncertain.
    Raises ValueError for others.
    """
    from PIL import Image

    with opened(path, LOSSLESS) as image:
        labels = whole_numbers(
            np.asarray(image.resize((SIZE, SIZE), Image.Resampling.NEAREST)), path
        )
    if labels.ndim != 2 or labels.min() < 0 or labels.max() > CLASSES:
        raise ValueError(
            f"expected one channel of values 0 to {CLASSES}, found {labels.shape}, at most"
            f" {labels.max()}"
        )
    return np.where(labels == 0, IGNORE, labels - 1).astype(np.uint8)


def read_class(path: Path) -> int:
    """The likeliest of ImageNet's classes. Raises ValueError unless the file holds a number for
    each of the 1,000.
    """
    # Mapped: a header may promise more than fits into memory.
    scores = np.load(path, mmap_mode="r", allow_pickle=False)
    if scores.size != 1000 or scores.dtype.kind != "f" or not np.isfinite(scores).all():
        raise ValueError(f"expected 1000 probabilities, found {scores.size} {scores.dtype}")
    return int(scores.argmax())


def read_view(view: View) -> dict[str, np.ndarray]:
    """The arrays of one image by domain, 64 x 64 pixels. Raises DataError for a file that cannot be
    read.
    """
    arrays = {}
    for domain, path in view.items():
        with reading(path, "a readable file of Taskonomy"):
            if domain == "class_object":
                arrays[domain] = np.asarray(read_class(path))
            elif domain == "segment_semantic":
                arrays[domain] = read_segments(path)
            else:
                arrays[domain] = read_map(path, FULL_SCALE.get(domain, 1.0))
                channels = ANNOTATIONS[domain].size if domain in ANNOTATIONS else 3
                if len(arrays[domain]) != channels:
                    raise ValueError(f"expected {channels} channels, found {len(arrays[domain])}")
    return arrays


def _load(home: Path) -> dict[str, Split]:
    splits: dict[str, Split] = {}
    found = _found(home)
    with ThreadPoolExecutor() as pool:
        for split in MOST:
            read = [*pool.map(read_view, [view for own, view in found if own == split])]
            arrays = {domain: np.stack([view[domain] for view in read]) for domain in _DOMAINS}
            images, labels = arrays.pop("rgb"), arrays.pop("class_object").astype(np.int64)
            splits[split] = Split(images, labels, arrays)
    return splits


SOURCES = [
    DataSource(
        **said("taskonomy"),
        classes=1000,
        shape=(3, SIZE, SIZE),
        sizes=MOST,
        up_to=True,
        # Not of these images: Taskonomy's networks take values in [-1, 1].
        mean=(0.5, 0.5, 0.5),
        std=(0.5, 0.5, 0.5),
        files=_files,
        load=_load,
        stand_ins=("scenes",),
        annotations=ANNOTATIONS,
    )
]
