"""Recomputes a random sample of the cells of a result set, and compares every number with the
recorded one.

A cell is built from its record and the spec, and computed from nothing: no finished cell and no
stage is reused. On the hardware, and with the package versions, of the record every measurement
must be the same to the last digit; elsewhere it must lie within the tolerance that `reports
compare` has for one seed. Texts, bytes and epsilon must be equal anywhere.
"""

import csv
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fedtables.benchmarks.running.events import Context, Event
from fedtables.benchmarks.running.pool import run_pool
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.cells import Cell, with_plugins
from fedtables.benchmarks.tables.selection import Selection, table_rows
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.benchmarks.tables.sweep import SUFFIX
from fedtables.datasets import catalogue
from fedtables.datasets.catalogue import ResolvedData
from fedtables.federation.execution import DEFAULT, Execution
from fedtables.reports.comparing.comparable import MACHINE, other_versions
from fedtables.reports.comparing.rule import Rule
from fedtables.reports.tables.resultset import check_agree, read_table
from fedtables.reports.tables.units import scale_of
from fedtables.results.files import DataError, ResultsError
from fedtables.results.frame import read_records
from fedtables.results.plugins import place, plugged_in
from fedtables.results.record import OK, Measurement, Record

MATCH, MISMATCH, NOT_VERIFIABLE = "match", "mismatch", "not verifiable"
OTHER_CELL = (
    "the cell has another digest now: its table's spec, or the record, was changed since; check"
    " out its commit"
)
PINNED = "pinned.csv"
"""Beside results: which of them stand as of their commit."""


@dataclass(frozen=True)
class Verification:
    """What became of one cell."""

    record: Record
    word: str
    """`match`, `mismatch` or `not verifiable`."""
    why: str = ""
    """By which rule it matches, what differs, or what stands in the way."""
    again: Record | None = None
    """The cell as it was computed now."""


def pinned_tables(path: Path) -> dict[str, str]:
    """Tables of a folder that stand as of the commit of their records, and why: lines `table,why`
    of its `pinned.csv`; none if there is no such file. Raises ResultsError for other lines.
    """
    try:
        rows = list(csv.reader((path / PINNED).read_text(encoding="utf-8").splitlines()))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if rows[:1] != [["table", "why"]] or any(len(row) != 2 for row in rows):
        raise ResultsError(f"{path / PINNED}: its lines are not `table,why`")
    return {row[0]: row[1] for row in rows[1:]}


def finished_records(path: Path, within: float = math.inf, present: bool = False) -> list[Record]:
    """Records of finished cells that took at most `within` seconds: of a `.records.jsonl`, of the
    one beside a table's CSV, or of all in a folder but those of its pinned tables. If `present`,
    only of cells whose data sets are here.

    Raises ResultsError if there is none, or if a line is not a record.
    """
    if path.is_dir():
        pinned = pinned_tables(path)
        files = [
            file
            for file in sorted(path.rglob("*.records.jsonl"))
            if "/".join(file.parts[-2:]).partition(".")[0] not in pinned
        ]
    else:
        files = [path.with_suffix(".records.jsonl") if path.suffix == ".csv" else path]
    finished: list[Record] = []
    for file in files:
        records = read_records(file)
        table = file.with_name(file.name.replace(".records.jsonl", ".csv"))
        if table.exists():
            check_agree(table, read_table(table), records)
        finished += [
            record
            for record in records
            if record.status == OK
            and record.seconds <= within
            and (not present or _has_data(record))
        ]
    if not finished:
        raise ResultsError(
            f"{path} has no record of a finished cell that fits; give a folder, CSV or"
            " records of `reproduce`"
        )
    return finished


def _has_data(record: Record) -> bool:
    """Whether the data sets that a cell read are here; of sets that nobody knows `rebuild` tells
    more.
    """
    kinds = (record.data, record.public, record.private, *record.others)
    try:
        return all(catalogue.is_present(kind["used"]) for kind in kinds if kind)
    except (DataError, KeyError):
        return True


def draw(records: Sequence[Record], count: int, seed: int) -> list[Record]:
    """`count` of the records at random, in their order; all if there are fewer. Equal seeds draw
    equal records.
    """
    chosen = random.Random(seed).sample(range(len(records)), min(count, len(records)))
    return [records[position] for position in sorted(chosen)]


def present(recorded: dict[str, str]) -> ResolvedData:
    """The recorded data, which must be here. Raises DataError if they are absent, or others."""
    wanted = ResolvedData(**recorded)
    resolved = catalogue.resolve(wanted.used)
    if resolved.used != wanted.used:
        raise DataError(
            f"{catalogue.source(wanted.used).title} is not under {catalogue.data_home()}"
        )
    if resolved.digest != wanted.digest:
        raise DataError(
            f"{wanted.used} is not the data set of the record: its decoded content has another"
            " digest"
        )
    return wanted


def rebuild(record: Record, found: Callable[[dict[str, str]], ResolvedData] = present) -> Cell:
    """The cell of a record, from the spec as it is now; `found` has the data that are recorded.
    Raises SpecError or DataError if that is not the cell recorded.
    """
    if absent := {*record.plugins} - {place(plugin).name for plugin in plugged_in()}:
        raise SpecError(f"the cell's plug-in {min(absent)} is not given (--plugin)")
    paper, table = registry.find_table(record.table.removesuffix(SUFFIX))
    printed = record.row in [row.key for row in table.rows]
    chosen = Selection(add=() if printed else (record.row,))
    row = next(row for row in table_rows(table, chosen) if row.key == record.row)
    machine = record.machine
    cell = Cell(
        table=record.table,
        row=row.key,
        column=record.column,
        method=row.method,
        role=row.role,
        measure=table.measure,
        metrics=table.metrics,
        unit=table.unit,
        seed=record.seed,
        seed_axes=table.seed_axes or paper.seed_axes,
        profile=record.profile,
        protocol=record.protocol,
        config=tuple(sorted(record.config.items())),
        data=found(record.data),
        public=found(record.public) if record.public else None,
        private=found(record.private) if record.private else None,
        others=tuple(found(other) for other in record.others),
        device=machine["device"],
        threads=machine["threads"],
        execution=Execution(**{name: machine[name] for name in asdict(DEFAULT) if name in machine}),
    )
    own = record.lineage[:1]
    former = next((name for name in own if registry.current(name) == row.method), row.method)
    if replace(cell, method=former).key != record.cell:
        raise SpecError(OTHER_CELL)
    config = {registry.current_setting(name): value for name, value in record.config.items()}
    return with_plugins(replace(cell, config=tuple(sorted(config.items()))))


def rebuilt(
    record: Record,
    check_device: Callable[[str], None] | None = None,
    found: Callable[[dict[str, str]], ResolvedData] = present,
) -> Cell | str:
    """The cell of a record, or why there is none that can be run."""
    try:
        cell = rebuild(record, found)
        if check_device is not None and cell.device != "cpu":
            check_device(cell.device)
        return cell
    except (SpecError, DataError) as error:
        return str(error)
    except (KeyError, TypeError, ValueError) as error:
        return f"the record is incomplete: {type(error).__name__}: {error}"


def compare_records(record: Record, again: Record, unit: str) -> tuple[list[str], str]:
    """What differs between a record and the cell computed again, and the rule by which they were
    compared.

    `unit` is the table's: how it prints shares.
    """
    elsewhere = _elsewhere(record.machine, again.machine)
    rule = f"within tolerance, for {'; '.join(elsewhere)}" if elsewhere else "to the last digit"
    if again.status != OK:
        return [f"failed: {again.reason}"], rule
    old, new = _by_name(record.measurements), _by_name(again.measurements)
    differing = [
        f"{' '.join(name).strip()} is measured {'now' if name in new else 'no longer'}"
        for name in old.keys() ^ new.keys()
    ]
    for name in old.keys() & new.keys():
        if not _agree(old[name], new[name], name[0], unit, exact=not elsewhere):
            differing.append(f"{' '.join(name).strip()} {old[name]!r} -> {new[name]!r}")
    for field_name in ("bytes_up", "bytes_down", "bytes_by_kind", "epsilon", "delta"):
        before, after = getattr(record, field_name), getattr(again, field_name)
        if before != after:
            differing.append(f"{field_name} {before} -> {after}")
    return sorted(differing), rule


def _by_name(measurements: Sequence[Measurement]) -> dict[tuple[str, str], float | str]:
    return {(m.metric, m.column): m.value for m in measurements}


def _agree(old: float | str, new: float | str, metric: str, unit: str, *, exact: bool) -> bool:
    if exact or isinstance(old, str) or isinstance(new, str):
        return repr(old) == repr(new)  # not-a-number equals itself here
    return abs(new - old) <= scale_of(metric, unit).allowance(Rule().tolerance, old)


def _elsewhere(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What makes equal numbers too much to ask: other hardware, or other versions of the packages
    that both records name.
    """
    hardware = [
        f"{name} {new.get(name)}, then {old[name]}"
        for name in MACHINE
        if name in old and old[name] != new.get(name)
    ]
    packages = other_versions(old.get("packages", {}), new.get("packages", {}))
    return hardware + [f"{name} {now}, then {then}" for name, (then, now) in packages.items()]


def verify_records(
    records: Sequence[Record],
    jobs: int,
    context: Context,
    on_event: Callable[[Cell, Event], None],
    check_device: Callable[[str], None],
) -> list[Verification]:
    """The verdict on each record, in order. `context` names an empty stage folder; `check_device`
    raises SpecError.
    """
    verdicts: dict[int, Verification] = {}
    cells: dict[int, Cell] = {}
    for position, record in enumerate(records):
        cell = rebuilt(record, check_device)
        if isinstance(cell, str):
            verdicts[position] = Verification(record, NOT_VERIFIABLE, cell)
        else:
            cells[position] = cell
    positions, todo = list(cells), list(cells.values())
    for event in run_pool(todo, context, jobs):
        cell, position = todo[event.cell], positions[event.cell]
        on_event(cell, event)
        if event.record is not None:
            differing, rule = compare_records(records[position], event.record, cell.unit)
            word, why = (MISMATCH, "; ".join(differing)) if differing else (MATCH, rule)
            verdicts[position] = Verification(records[position], word, why, event.record)
    return [verdicts[position] for position in range(len(records))]


def exit_code(verdicts: Sequence[Verification]) -> int:
    """0 if all that could be verified match, 1 if one does not, 2 if none could be."""
    words = {verdict.word for verdict in verdicts}
    return 1 if MISMATCH in words else 0 if MATCH in words else 2
