"""FEMNIST (LEAF, Caldas et al. 2018): digits and letters of NIST Special Database 19 by writer.

The layout is LEAF's: the folder `femnist`, or `femnist/data` as LEAF itself has it, holds `train`
and `test`, each with files `*.json` of up to a hundred writers. A file has `users`, `num_samples`
and `user_data`, which gives for each user `x`, images of 784 numbers from 0 (ink) to 1 (paper), and
`y`, classes: 0 to 9 digits, 10 to 35 capitals, 36 to 61 small letters. Ink stays dark, as LEAF has
it. Numbers become whole bytes, which they were.

A group is a writer: its number is the place of its name among all names in order, so that it does
not depend on how users are spread over files. LEAF divides by sample (`-t sample`: writers are in
both splits) or by user. How many samples there are depends on its options; the sizes here are about
nine tenths and a tenth of the 805,263 that its paper states.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from fedtables.datasets.folders import in_part, inside, listed, reading
from fedtables.datasets.source import DataError, DataSource, Split, said, whole_numbers

SIDE, CLASSES = 28, 62
SPLITS = ("train", "test")
WHAT = "a file of LEAF's, with users, num_samples and user_data"

Written = tuple[np.ndarray, np.ndarray]
"""A writer's images uint8 (n, 28, 28) and classes int64 (n,)."""


@inside("femnist", "femnist/data")
def _files(folder: Path) -> list[Path]:
    """The files of both splits, or none. Raises DataError for those of one split alone."""
    found = [listed(folder / split, ".json") for split in SPLITS]
    if any(found) and not all(found):
        lacking = SPLITS[[*map(bool, found)].index(False)]
        raise in_part(f"{folder / lacking} has no file of LEAF's")
    return [path for paths in found for path in paths]


def _written(name: str, content: dict[str, Any]) -> Written:
    """What one user wrote. Raises ValueError unless it is images of 0 to 1 with a class each."""
    labels = whole_numbers(np.array(content["y"]), f"y of {name}")
    pixels = np.array(content["x"], np.float64).reshape(len(labels), SIDE, SIDE)
    if not ((pixels >= 0) & (pixels <= 1)).all():
        raise ValueError(f"x of {name} is not all from 0 to 1")
    return np.rint(pixels * 255).astype(np.uint8), labels


def read_users(path: Path) -> dict[str, Written]:
    """What each user of a file wrote. Raises DataError if it is damaged, or none of LEAF's."""
    with reading(path, WHAT):
        content = json.loads(path.read_bytes())
        users = {name: _written(name, content["user_data"][name]) for name in content["users"]}
        if [len(labels) for _, labels in users.values()] != content["num_samples"]:
            raise ValueError("its users have other numbers of samples than num_samples says")
    return users


def _load(home: Path) -> dict[str, Split]:
    by_split: dict[str, dict[str, Written]] = {split: {} for split in SPLITS}
    for path in _files(home):
        users, known = read_users(path), by_split[path.parent.name.lower()]
        if again := users.keys() & known.keys():
            raise DataError(f"{path} has the user {min(again)}, whom another file has too.")
        known |= users
    numbers = {name: n for n, name in enumerate(sorted(set().union(*by_split.values())))}
    splits = {}
    for split, users in by_split.items():
        names = [name for name in sorted(users) if len(users[name][1])]
        images, labels = (
            np.concatenate(part) for part in zip(*(users[name] for name in names), strict=True)
        )
        groups = np.repeat([numbers[name] for name in names], [len(users[n][1]) for n in names])
        splits[split] = Split(images[:, None], labels, groups=groups.astype(np.int64))
    return splits


SOURCES = [
    DataSource(
        **said("femnist"),
        classes=CLASSES,
        shape=(1, SIDE, SIDE),
        sizes={"train": 724_737, "test": 80_526},
        mean=(0.5,),  # a convention: no official file was at hand to measure
        std=(0.5,),
        files=_files,
        load=_load,
        stand_ins=("digits-writers",),
        about=True,
        shared_groups=True,
    )
]
