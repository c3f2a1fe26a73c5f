"""Finds data: which sources exist, which are present, and what stands in for one that is not."""

import functools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

from fedtables.datasets import sources as source_package
from fedtables.datasets.access import AccessError, refuse
from fedtables.datasets.decoded import splits_of
from fedtables.datasets.digests import data_digest, verified
from fedtables.datasets.npz import check_npz
from fedtables.datasets.source import (
    FINDINGS,
    IGNORE,
    INSTANCES,
    MAP,
    REAL,
    SEGMENTS,
    SURROGATE,
    SYNTHETIC,
    UNVERIFIED,
    Annotation,
    DataError,
    DataSource,
    Split,
    annotated,
)
from fedtables.results.files import RefusedError, data_home
from fedtables.results.names import near
from fedtables.results.plugins import kept, listed, told


@kept(None)
def _listed() -> dict[str, tuple[DataSource, ModuleType]]:
    return listed(
        source_package,
        "SOURCES",
        DataSource,
        lambda sources: ((entry.name, entry) for entry in sources),
    )


def _told(error: Exception) -> str:
    return told(error, source_package.__path__)


def sources() -> dict[str, DataSource]:
    """Every data set in `datasets/sources/` and in the plug-ins in use, by name. Raises
    RefusedError as `listed`.
    """
    return {name: entry for name, (entry, _) in _listed().items()}


def source(name: str) -> DataSource:
    """The source called `name`. Raises DataError with the known names otherwise."""
    if name not in _listed():
        raise DataError(f"unknown data set {name!r}; {near(name, _listed())}")
    return _listed()[name][0]


@dataclass(frozen=True)
class ResolvedData:
    """The data a cell will really use. Plain values only: it travels to worker processes."""

    asked: str
    used: str
    origin: str
    """real, surrogate (other real images), synthetic (generated), or unverified: the digest of the
    samples is not known."""
    digest: str
    """Of the decoded samples, targets and groups; empty while planning without the files."""
    note: str

    @property
    def stands_in(self) -> bool:
        """Whether another set than the one that was asked for is used."""
        return _whole(source(self.asked)) != _whole(source(self.used))

    @property
    def label(self) -> str:
        """For titles: `MNIST (real)`, `mnist stand-in: digits (surrogate)`."""
        if not self.stands_in:
            return f"{source(self.used).title} ({self.origin})"
        return f"{self.asked} stand-in: {source(self.used).title} ({self.origin})"


def reader_module(name: str) -> str:
    """The module that reads a source."""
    return _listed()[name][1].__name__


@kept(None)
def _content(name: str, home: Path) -> str:
    """Digest of a source's content. Once per process, since files can be many."""
    entry, reader = source(name), reader_module(name)
    generated = not _files(entry, home)  # and small: what is made to be digested is kept
    stored = functools.partial(splits_of, entry, reader, home)
    read = functools.partial(load, name) if generated else stored
    with _naming(entry, home):
        return data_digest(entry, reader, home, read)


def _files(entry: DataSource, home: Path) -> list[Path]:
    """The files of a source. Raises DataError, whatever its reader stumbles over."""
    try:
        return entry.files(home)
    except RefusedError as error:
        raise _advised(entry, str(error)) from error
    except Exception as error:
        raise _advised(
            entry,
            f"the files of {entry.title} under {home} cannot be found: {_told(error)}.",
        ) from error


def _advised(entry: DataSource, why: str) -> DataError:
    """The error of a set that cannot be used: why, and how to get it."""
    stop = "" if why.endswith(".") else "."
    return DataError(why if entry.how_to_get in why else f"{why}{stop} {entry.how_to_get}")


@contextmanager
def _naming(entry: DataSource, home: Path) -> Iterator[None]:
    """Inside, every error is a DataError that says where, and how to get the set: a file may be
    damaged in a way that its decoder has no name for.
    """
    try:
        yield
    except AccessError:
        raise
    except Exception as error:
        planned = isinstance(error, RefusedError)
        why = str(error) if planned else f"it cannot be read: {_told(error)}. Get it again."
        files = [str(path) for path in _files(entry, home)]
        if str(home) not in why and (files or not why.startswith(entry.title)):
            why = f"{os.path.commonpath(files) if files else entry.title}: {why}"
        raise _advised(entry, why) from error


def state(name: str, home: Path | None = None) -> str:
    """Whether a source is there, and whether its content is known, as far as that can be told
    without reading it: `absent`, `unusable` (damaged, or there in part), `present, verified`, ...
    """
    entry, reader = source(name), reader_module(name)
    home = home or data_home()
    if entry.kind == SYNTHETIC:
        return "generated"
    try:
        check(name, home)
        if not is_present(name, home):
            return "absent"
        with _naming(entry, home):
            found = data_digest(entry, reader, home) if entry.embedded else _content(name, home)
    except DataError:
        return "unusable"
    word = "present" if entry.embedded else "bundled"
    if found in verified(name):
        return f"{word}, verified"
    return f"{word}, unverified" + ("" if found or not verified(name) else " as yet")


def is_present(name: str, home: Path | None = None) -> bool:
    """Whether the source can be read from the data home (generated and bundled sets always can).
    Raises DataError if it is there in part.
    """
    entry = source(name)
    return entry.embedded == "" or bool(_files(entry, home or data_home()))


def check(name: str, home: Path | None = None) -> None:
    """Raise DataError if a file of the source is damaged, as far as that can be told without
    reading all of it.
    """
    entry = source(name)
    for path in _files(entry, home or data_home()):
        if not path.is_file():
            raise _advised(entry, f"{path} is no file, or a link to nothing.")
        if path.suffix.lower() == ".npz":
            with _naming(entry, path.parent):
                check_npz(path, {})


def _whole(entry: DataSource) -> str:
    """The name of the set that a source is, perhaps with fewer pixels."""
    return entry.reduced_from or entry.name


def _best(wanted: DataSource, home: Path, side: int, but_not: str) -> DataSource | None:
    """What is used for `wanted`: itself, or the best that stands in for it; None if all are absent.
    Raises DataError if it is there in part, or a better one than is whole.
    """
    if is_present(wanted.name, home):
        return wanted
    for entry in map(source, wanted.stand_ins):
        fine = not entry.reduced_from or 0 < side <= min(entry.shape[1:])
        taken = but_not and _whole(entry) == _whole(source(but_not))
        if fine and not taken and is_present(entry.name, home):
            return entry
    return None


def resolve(
    name: str,
    *,
    embedded: bool = False,
    require_real: bool = False,
    home: Path | None = None,
    but_not: str = "",
    side: int = 0,
) -> ResolvedData:
    """Decide which data a table column uses: the real set, else a surrogate, else a synthetic one.
    It is real, or a surrogate, only if the digest of its content is known; else it is unverified.

    `embedded` (the smoke profile) takes the stand-in that needs no files, so that a run is the same
    everywhere. `but_not` is a set that must not stand in, since it is used already, `side` the
    pixels that images are brought to, if that is known: a form of the set that has as many is the
    real set. Raises DataError if the set is absent or unverified and `require_real` is given, or if
    a present file is damaged.
    """
    home = home or data_home()
    wanted = source(name)
    if embedded and wanted.embedded:
        used = source(wanted.embedded)
    else:
        best = _best(wanted, home, side, but_not)
        if best is None and not require_real:
            raise DataError(
                f"{wanted.title} is not under {home}, and nothing can stand in for it."
                f" {wanted.how_to_get}"
            )
        used = best or source(wanted.embedded)
    same = used.kind == wanted.kind == REAL and _whole(used) == _whole(wanted)
    if require_real and not same:
        why = f"it is not under {home}. {wanted.how_to_get}"
        if embedded:
            why = "this profile always uses embedded data; take --profile cpu, gpu or paper"
        raise DataError(f"--require-real: {wanted.title} is needed, but {why}")
    check(used.name, home)
    content = _content(used.name, home)
    if used.kind == SYNTHETIC:
        origin = SYNTHETIC
    elif content not in verified(used.name):
        origin = UNVERIFIED
    else:
        origin = REAL if same else SURROGATE
    if require_real and origin != REAL:
        raise DataError(
            f"--require-real: {used.title} is under {home}, but its content (SHA-256 {content}) is"
            " none of those that are known, so that nothing says it is real. Get the official"
            f" files, or leave out the option: tables then say unverified. {wanted.how_to_get}"
        )
    return ResolvedData(name, used.name, origin, content, used.note)


def load(name: str, home: Path | None = None) -> Mapping[str, Split]:
    """The splits of a source. Raises DataError if it is absent or damaged, AccessError while a
    method fits.
    """
    refuse(f"the data set {name} is closed while a method fits; it has what its federation gives")
    return _load(name, home)


@kept(4)
def _load(name: str, home: Path | None) -> Mapping[str, Split]:
    entry = source(name)
    home = home or data_home()
    if not is_present(name, home):
        raise DataError(f"{entry.title} is not under {home}. {entry.how_to_get}")
    with _naming(entry, home):
        splits = splits_of(entry, reader_module(name), home)
        _check(entry, splits)
    return splits


load.cache_clear = _load.cache_clear  # type: ignore[attr-defined]


# -- what a reader gives --


def _check(entry: DataSource, splits: Mapping[str, Split]) -> None:
    """Raise DataError unless the splits are as the source says."""
    missing = [split for split in entry.sizes if split not in splits]
    if missing:
        raise DataError(f"{entry.title}: its reader gives no split {missing[0]!r}")
    if not entry.shared_groups:
        check_groups(entry.title, splits)
    for split, stated in entry.sizes.items():
        samples = splits[split]
        size = len(samples) if entry.about else stated
        size = min(size, len(samples)) if entry.up_to else size
        if (
            samples.images.shape != (size, *entry.shape)
            or not 0 <= samples.labels.min() <= samples.labels.max() < entry.classes
        ):
            raise DataError(
                f"{entry.title}: images {samples.images.shape}, labels {samples.labels.min()} to"
                f" {samples.labels.max()} in split {split!r}, expected {(size, *entry.shape)} with"
                f" {entry.classes} classes. The files are not the official ones."
            )
        if samples.images.dtype != entry.dtype:
            raise DataError(
                f"{entry.title}: samples are {samples.images.dtype} in split {split!r}, expected"
                f" {entry.dtype}."
            )
        check_annotations(entry, samples)


def check_groups(title: str, splits: Mapping[str, Split]) -> None:
    """Raise DataError if a group has samples in two of the splits."""
    seen: dict[int, str] = {}
    for name, split in splits.items():
        for group in [] if split.groups is None else np.unique(split.groups).tolist():
            if group in seen:
                raise DataError(
                    f"{title}: group {group} has samples in the splits {seen[group]!r} and {name!r}"
                )
            seen[group] = name


def check_annotations(entry: DataSource, split: Split) -> None:
    """Raise DataError unless the split has the annotations that the source states, in their shapes,
    classes and values.
    """
    for name, annotation in entry.annotations.items():
        if fault := _fault(annotation, annotated(split, name), split.images.shape):
            raise DataError(f"{entry.title}: annotation {name!r} {fault}")


def _fault(annotation: Annotation, array: np.ndarray, samples: tuple[int, ...]) -> str:
    """What is wrong with an annotation of samples of this shape; empty if nothing is."""
    kind, size, (count, _, *sides) = annotation.kind, annotation.size, samples
    own = {SEGMENTS: sides, INSTANCES: sides, FINDINGS: [size]}.get(kind, [size, *sides])
    if array.shape != (count, *own):
        return f"has shape {array.shape}, expected {(count, *own)}"
    dtypes = {INSTANCES: ("uint16",), MAP: ("uint8", "float32")}.get(kind, ("uint8",))
    if array.dtype.name not in dtypes:
        return f"of kind {kind} is {array.dtype}, expected {' or '.join(dtypes)}"
    if kind == INSTANCES:
        for number, objects in enumerate(array):
            if not np.bincount(objects.reshape(-1))[1:].all():
                return (
                    f"of sample {number} leaves out object numbers; they are 1 to {objects.max()},"
                    " of which all have pixels"
                )
    if kind == SEGMENTS and ((array >= size) & (array != IGNORE)).any():
        return f"has classes beyond the {size} that there are"
    if kind == FINDINGS and ((array > 1) & (array != IGNORE)).any():
        return f"has values other than 0, 1 and {IGNORE}"
    return ""
