"""Damages files of every kind that the suite reads, and says what came of each: refused in one
line that names the file, computed again, or read with the same content. Else it is a fault.

`python -m tests.damage` does `--each` of every kind and prints counts; `tests/test_damage.py` does
a part.
"""

from __future__ import annotations

import argparse
import pickle
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import h5py
import nibabel
import numpy as np
import torch
from PIL import Image
from scipy.io import savemat

from datasets.films import read_film
from datasets.nifti import read_volume
from datasets.npz import read_arrays
from datasets.nuclei import read_objects
from datasets.sources.cifar import read_batch
from datasets.sources.fastmri import slices_of
from datasets.sources.mnist import read_idx
from federation.cache import Stage, StageCache, StageRequest
from federation.channel import Transfer
from federation.snapshots import Snapshots
from reports.pages.result_files import Result
from reports.pages.sheet import Sheet
from reports.tables.resultset import read_set
from results import published
from results.files import DataError, ResultsError, read_sealed_json, write_sealed_json
from results.frame import read_records
from results.store import CellCache, TableFiles, write_sealed_csv
from tests.reports.written_results import record, write_results

SAME, AGAIN, REFUSED = "the same content", "computed again", "refused"


@dataclass(frozen=True)
class Kind:
    """A kind of file: `write` makes them in a folder, `read` gives all that they hold (or None if
    it is to be computed again), and `damaged` matches the names of those that are damaged.
    """

    name: str
    write: Callable[[Path], None]
    read: Callable[[Path], Any]
    damaged: str = "*"
    cache: bool = False
    """Whether a damaged one is computed again, and never refused."""


def mutated(raw: bytes, source: random.Random) -> bytes:
    """The content after one accident."""
    at, other = source.randrange(len(raw)), source.randrange(len(raw))
    first, last = sorted((at, other))
    return source.choice(
        [
            raw[:at] + bytes([raw[at] ^ 1 << source.randrange(8)]) + raw[at + 1 :],
            raw[:at] + bytes([source.randrange(256)]) + raw[at + 1 :],
            raw[:at] + bytes([source.choice(b"0123456789")]) + raw[at + 1 :],
            raw[:at],
            raw[: raw.rfind(b"\n", 0, at) + 1],
            raw[:at] + raw[at + 1 :],
            raw[:first] + raw[last:],
            raw[:last] + raw[first:],
            raw[:at] + b"\0" * 16 + raw[at + 16 :],
            raw[first:] + raw[:first],
            b"",
        ]
    )


def outcome(kind: Kind, folder: Path, whole: Any, path: Path) -> str:
    """What reading gives. AssertionError if it is none of the three, or no message names a file."""
    try:
        found = kind.read(folder)
    except (DataError, ResultsError) as error:
        told = str(error)
    else:
        told = ""
    if told:
        assert not kind.cache, f"{kind.name}: {path.name} stops a run: {told}"
        assert path.stem.split(".")[0] in told, f"{kind.name}: names no file: {told}"
        assert "\n" not in told, f"{kind.name}: more than a line: {told}"
        return REFUSED
    if found is None:
        return AGAIN
    assert found == whole, f"{kind.name}: another content is read from {path.name}"
    return SAME


def damages(kind: Kind, each: int, source: random.Random) -> Iterator[str]:
    """What comes of `each` accidents to files of the kind, and of a directory in place of each."""
    with tempfile.TemporaryDirectory() as folder:
        good = Path(folder) / "good"
        good.mkdir()
        kind.write(good)
        whole = kind.read(good)
        assert whole is not None
        names = sorted(p.relative_to(good) for p in good.rglob(kind.damaged) if p.is_file())
        for number in range(-len(names), each):
            # In a place of the same length of path, since a note may name it.
            place = Path(folder) / "made"
            shutil.copytree(good, place)
            path = place / (names[number] if number < 0 else source.choice(names))
            raw = path.read_bytes()
            if number < 0 or not raw:
                path.unlink()
                path.mkdir()
            else:
                changed = mutated(raw, source)
                if changed == raw:
                    shutil.rmtree(place)
                    continue
                path.write_bytes(changed)
            yield outcome(kind, place, whole, path)
            shutil.rmtree(place)


RECORD = record("global-dlad", "dataset=mnist distribution=iid", 0.9, cell="ab" * 32, code="c")


def _stage(folder: Path) -> StageRequest:
    def compute() -> Stage:
        (folder / "computed").write_text("")
        return Stage({"x": torch.arange(6.0)}, {"history": {"accuracy": [0.25]}})

    return StageRequest("kind", "label", {"seed": 1}, compute, "federation.cache")


def _write_stage(folder: Path) -> None:
    StageCache(folder).get(_stage(folder))
    (folder / "computed").unlink()


def _read_stage(folder: Path) -> Any:
    """The stage; one that was computed again must be whole the next time."""
    stage = StageCache(folder).get(_stage(folder))
    found = [stage.tensors["x"].tolist(), stage.info]
    assert found == [[0.0, 1, 2, 3, 4, 5], {"history": {"accuracy": [0.25]}}]
    if not (folder / "computed").exists():
        return found
    (folder / "computed").unlink()
    StageCache(folder).get(_stage(folder))
    assert not (folder / "computed").exists(), "a mended stage is not found again"
    return None


class _Part:
    """Something with a state, as a fit hands it to its rounds."""

    def __init__(self, value: float):
        self.state = {"weight": torch.full((3,), value), "steps": 2}

    def state_dict(self) -> dict[str, Any]:
        return self.state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state = state


def _write_snapshots(folder: Path) -> None:
    snapshots = Snapshots(folder / "fit-running", every=0)
    for number in (1, 2):
        ledger = [Transfer(number, "up", "parameters", 0, 10, 1)]
        snapshots.offer(number, {"model": _Part(number)}, {"accuracy": [0.5] * number}, ledger)


def _read_snapshots(folder: Path) -> Any:
    """What a fit goes on from: None for an earlier round than the last, which is right as it is."""
    part = _Part(0)
    number, history, ledger = Snapshots(folder / "fit-running").resume({"model": part})
    assert part.state["weight"].tolist() == [number] * 3
    assert history == ({"accuracy": [0.5] * number} if number else {})
    assert [transfer.round for transfer in ledger] == ([number] if number else [])
    return number if number == 2 else None


def _write_cell(folder: Path) -> None:
    CellCache(folder).put(RECORD)


def _read_cell(folder: Path) -> Any:
    """The record; one that is computed again must be there the next time."""
    found, _ = CellCache(folder).get(RECORD.cell, RECORD.code)
    if found is None:
        CellCache(folder).put(RECORD)
        assert CellCache(folder).get(RECORD.cell, RECORD.code)[0] == RECORD
    return found


def _write_note(folder: Path) -> None:
    write_sealed_json(folder / "note.json", {"digest": "ab" * 32, "sizes": [1, 2.5]})


def _read_note(folder: Path) -> Any:
    found = read_sealed_json(folder / "note.json")
    _write_note(folder)
    assert read_sealed_json(folder / "note.json")
    return found


CLAIMS = [
    {"id": f"c{n}", "claim": f"claim, {n}", "verdict": word, "in_print": "yes", "seeds": "3"}
    for n, word in enumerate(("holds", "does not hold"))
]


def _table(folder: Path) -> TableFiles:
    return TableFiles(folder, "smoke", "dlad/table2")


def _write_claims(folder: Path) -> None:
    write_sealed_csv(folder / "smoke" / "dlad" / "table2.claims.csv", CLAIMS)


def _read_claims(folder: Path) -> Any:
    return Result("smoke", "dlad", "table2", _table(folder).base).claims


def _read_table(folder: Path) -> Any:
    found = read_set(folder / "smoke")
    return [list(found.cells.values()), found.records]


ARRAYS = {"x_train": np.arange(48, dtype=np.uint8).reshape(3, 4, 4), "y_train": np.arange(3)}


def _lists(arrays: dict[str, np.ndarray]) -> Any:
    return {name: [array.tolist(), str(array.dtype)] for name, array in arrays.items()}


def _write_batch(folder: Path) -> None:
    images = np.arange(6144, dtype=np.uint8).reshape(2, 3072)
    content = {"labels": [3, 4], "data": images, "filenames": ["a.png", "b.png"]}
    (folder / "batch").write_bytes(pickle.dumps(content, protocol=2))


def _read_batch(folder: Path) -> Any:
    """Shapes and types alone: a pickle has no sum, and what it holds is seen by its digest."""
    images, labels = read_batch(folder / "batch", "labels")
    return [images.shape[1:], labels.dtype.str] if images.shape[1:] == (3, 32, 32) else None


def _write_idx(folder: Path) -> None:
    (folder / "labels").write_bytes(b"\0\0\x08\x01\0\0\0\x05" + bytes(range(5)))


def _write_published(folder: Path) -> None:
    (folder / "dlad").mkdir()
    for name in ("table3.csv", "claims.csv", published.SUMS):
        shutil.copy(published.PUBLISHED / "dlad" / name, folder / "dlad" / name)


def _read_published(folder: Path) -> Any:
    with mock.patch.object(published, "PUBLISHED", folder):
        published.published_table.cache_clear()
        published.claims.cache_clear()
        try:
            return published.published_table("dlad/table3"), published.claims("dlad")
        finally:
            published.published_table.cache_clear()
            published.claims.cache_clear()


def _write_nifti(folder: Path) -> None:
    volume = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    nibabel.save(nibabel.Nifti1Image(volume, np.eye(4)), folder / "a.nii.gz")


def _write_png(folder: Path) -> None:
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8)).save(folder / "a.png")


MAP = np.array([[0, 7, 7], [0, 0, 300]])


def _write_matlab(folder: Path, packed: bool) -> None:
    savemat(folder / "a.mat", {"inst_map": MAP.astype(float)}, do_compression=packed)


def _write_hdf5(folder: Path) -> None:
    with h5py.File(folder / "a.h5", "w") as content:
        content["reconstruction_rss"] = np.arange(18, dtype=np.float32).reshape(2, 3, 3)


KINDS = [
    Kind("finished cell", _write_cell, _read_cell, cache=True),
    Kind("stage", _write_stage, _read_stage, cache=True),
    Kind("snapshot", _write_snapshots, _read_snapshots, cache=True),
    Kind("note", _write_note, _read_note, cache=True),
    Kind(
        "records",
        lambda folder: _table(folder).write_records([RECORD, replace(RECORD, seed=1)]),
        lambda folder: read_records(_table(folder).path("records.jsonl")),
    ),
    Kind("CSV beside its records", lambda f: void(write_results(f)), _read_table, "table2.csv"),
    Kind(
        "layout",
        lambda folder: void(write_results(folder)),
        lambda folder: Sheet.read(_table(folder).path("layout.json")),
        "*.layout.json",
    ),
    Kind("claims", _write_claims, _read_claims),
    Kind(
        "npz",
        lambda folder: np.savez(folder / "a.npz", **ARRAYS),
        lambda folder: _lists(read_arrays(folder / "a.npz", dict.fromkeys(ARRAYS, ""), "Get it.")),
    ),
    Kind(
        "packed npz",
        lambda folder: np.savez_compressed(folder / "a.npz", **ARRAYS),
        lambda folder: _lists(read_arrays(folder / "a.npz", dict.fromkeys(ARRAYS, ""), "Get it.")),
    ),
    Kind("published numbers", _write_published, _read_published),
    Kind("NIfTI", _write_nifti, lambda folder: read_volume(folder / "a.nii.gz").tolist()),
    Kind("PNG", _write_png, lambda folder: read_film(folder / "a.png").tolist()),
    Kind("pickled batch", _write_batch, _read_batch),
    Kind("IDX", _write_idx, lambda folder: [len(read_idx(folder / "labels").shape)]),
    Kind(
        "MATLAB map",
        lambda folder: _write_matlab(folder, packed=False),
        lambda folder: read_objects(folder / "a.mat", (2, 3)).shape,
    ),
    Kind(
        "packed MATLAB map",
        lambda folder: _write_matlab(folder, packed=True),
        lambda folder: read_objects(folder / "a.mat", (2, 3)).tolist(),
    ),
    Kind("HDF5", _write_hdf5, lambda folder: [slices_of(folder / "a.h5").ndim]),
]
"""Of pickles, IDX, MATLAB and HDF5 files, which have no sum, only the form is compared: another
content has another digest, and is unverified. The same is true of JPEG, TIFF and BMP."""


def void(_: object) -> None:
    """Nothing, whatever was returned."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=500, help="accidents to each kind of file")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    total: Counter[str] = Counter()
    for kind in KINDS:
        counts = Counter(damages(kind, chosen.each, random.Random(chosen.seed)))
        total += counts
        told = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        print(f"{kind.name}: {told}", flush=True)
    print(f"all: {total.total()} damaged files; " + ", ".join(f"{n} {w}" for w, n in total.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
