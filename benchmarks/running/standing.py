"""What of a cache the present code has a use for."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from fedtables.benchmarks.running.verify import OTHER_CELL, present, rebuilt
from fedtables.datasets.catalogue import ResolvedData
from fedtables.results.cached import LEFTOVERS, STALE, UNTOLD, USED, Entry
from fedtables.results.files import read_sealed_json
from fedtables.results.record import Record
from fedtables.results.sourcecode import PACKAGE, code_digest, module_file
from fedtables.results.store import OTHER_CODE, CellCache


def not_accepted(records: Iterable[Record]) -> Counter[str]:
    """Why a run with the present code, packages and data does not take these finished cells, and of
    how many each reason holds.
    """
    return Counter(filter(None, (_why_not(record, present) for record in records)))


def _why_not(record: Record, found: Callable[[dict[str, str]], ResolvedData]) -> str:
    """Why a run does not take a finished cell; empty if it does."""
    cell = rebuilt(record, found=found)
    if isinstance(cell, str):
        return cell
    return "" if cell.code == record.code else OTHER_CODE


def of_entry(home: Path, entry: Entry) -> str:
    """`STALE` if no run with the present code and packages takes a thing of the cache in the folder
    `home`, `USED` if one may, whether its data are here or not; `UNTOLD` where that cannot be told:
    of other kinds than cells and stages, of plug-ins that are not given, and of older versions.
    """
    if entry.kind == "cells":
        return _of_cell(CellCache(home).stored(entry.files[0].stem))
    if entry.kind == "stages":
        return _of_stage(entry)
    return STALE if entry.kind == LEFTOVERS else UNTOLD


def _of_cell(record: Record | None) -> str:
    if record is None:  # damaged
        return STALE
    why = _why_not(record, lambda recorded: ResolvedData(**recorded))
    return {"": USED, OTHER_CODE: STALE, OTHER_CELL: STALE}.get(why, UNTOLD)


def _of_stage(entry: Entry) -> str:
    """By its own code; what it was computed from is not looked at."""
    with contextlib.suppress(FileNotFoundError):
        header = read_sealed_json(entry.files[0])
        if header is None or not entry.files[1].exists():
            return STALE
        module = header.get("module", "")
        if module.partition(".")[0] == PACKAGE:
            there = module_file(module) is not None
            return USED if there and code_digest(module) == header["code"] else STALE
    return UNTOLD
