"""The cache in one file, so that another machine goes on with a run that this one has no time for.

A pack is a zip of the cache's own files: records of finished cells, and stages. Whoever reads them
checks them as ever: what was changed on the way counts as damaged, and what other code or packages
computed as absent, and is computed again. Records beside a table are taken over in the same way.
"""

import io
import json
import math
import re
import zipfile
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from fedtables.results.cached import CELL, HEADER, STAGE, entries
from fedtables.results.files import SEAL, ResultsError, write_atomic
from fedtables.results.frame import read_records
from fedtables.results.record import OK, Record
from fedtables.results.store import OTHER_CODE, CellCache
from fedtables.results.zips import MEGABYTES, check_member

NAME = re.compile(rf"{CELL}\.json|{STAGE}\.(json|safetensors)")
"""Of a file of the cache, below its folder."""
DAMAGED = (
    *(OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError),
    MemoryError,
)
"""What a file raises that is no pack, or a damaged one."""
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Packed:
    """What went into a pack, or out of one into a cache."""

    cells: int = 0
    stages: int = 0
    left: int = 0
    """Cells and stages for which there was no room, or that the cache had already."""


def write_pack(home: Path, output: Path, megabytes: float) -> Packed:
    """Write the cache in the folder `home` to the file `output`: cells first, then stages, the
    newest of each first, as long as they take no more than `megabytes`, not compressed.

    Raises ResultsError if there is nothing to pack, or `output` cannot be written.
    """
    room, counts = megabytes * MEGABYTE, Counter[str]()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for kind in ("cells", "stages"):
            for entry in entries(home, kind):
                files = entry.files[::-1]  # the header last, which makes a stage whole
                try:
                    content = [path.read_bytes() for path in files]
                except OSError:  # removed meanwhile
                    continue
                size = sum(map(len, content))
                if size > room:
                    counts["left"] += 1
                    continue
                room -= size
                counts[kind] += 1
                for path, raw in zip(files, content, strict=True):
                    archive.writestr(path.relative_to(home).as_posix(), raw)
    if not counts:
        raise ResultsError(f"{home} has no finished cell or stage: there is nothing to pack")
    write_atomic(output, stream.getvalue())
    return Packed(**counts)


def read_pack(pack: Path, home: Path, megabytes: float = MEGABYTES) -> Packed:
    """Put what a pack holds into the cache in the folder `home`, but for what is there already.

    Raises ResultsError, before anything is written, for a file that is no pack, that holds other
    files, or more than `megabytes` of them, not compressed; and for one that is damaged.
    """
    counts = Counter[str]()
    try:
        with zipfile.ZipFile(pack) as archive:
            members = archive.infolist()
            names = [member.filename for member in members]
            other = [name for name in names if not NAME.fullmatch(name)]
            if other:
                raise ResultsError(f"{pack} is not a pack: it holds {other[0]!r}")
            for member in members:
                check_member(member)
            size = sum(member.file_size for member in members) / MEGABYTE
            if size > megabytes:
                raise ResultsError(
                    f"{pack} unpacks to {size:,.0f} MB, more than {megabytes:g}. If you trust it,"
                    f" give --megabytes {math.ceil(size)}"
                )
            for name in names:
                there = (home / name).exists()
                if not there:
                    write_atomic(home / name, archive.read(name))
                if name.endswith(HEADER):
                    counts["left" if there else name.partition("/")[0]] += 1
    except DAMAGED as error:
        why = str(error) or type(error).__name__
        raise ResultsError(f"{pack} cannot be read as a pack: {why}") from error
    return Packed(**counts)


def packed_records(file: Path, home: Path) -> list[Record]:
    """The finished cells that a pack or a table's records hold, as they lie in the cache of the
    folder `home` after `read_pack` or `take_records`; of a damaged cell nothing.
    """
    if file.suffix == ".jsonl":
        keys = [record.cell for record in read_records(file) if record.status == OK]
    else:
        with zipfile.ZipFile(file) as archive:
            keys = [Path(name).stem for name in archive.namelist() if name.startswith("cells/")]
    found = map(CellCache(home).stored, keys)
    return [record for record in found if record is not None]


def take_records(path: Path, home: Path) -> Packed:
    """Put the finished cells of a table's `.records.jsonl` into the cache in the folder `home`, but
    for those that it has already, by whatever code.

    Raises ResultsError for a file that is absent, damaged, or of a version that sealed nothing.
    """
    if not path.exists():
        raise ResultsError(f"there is no {path}")
    records = read_records(path)
    if not all(SEAL in json.loads(line) for line in path.read_text("utf-8").splitlines()):
        raise ResultsError(f"{path} is of a version that sealed nothing: compute these cells again")
    cache, counts = CellCache(home), Counter[str]()
    for record in records:
        if record.status != OK:
            continue
        there, why = cache.get(record.cell, record.code)
        left = there is not None or why == OTHER_CODE
        if not left:
            cache.put(replace(record, contract=()))  # told anew when a table is written
        counts["left" if left else "cells"] += 1
    return Packed(**counts)
