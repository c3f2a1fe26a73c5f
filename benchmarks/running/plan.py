"""What cells would cost, before anyone starts them: what `follow` finds, added up; and how long the
rows of a table take on this machine.

Minutes are by the seconds that records tell of the same cells, else by this machine's measured
speed. What a record's machine and this one need for the same work is compared by their speeds at a
standard load, in processor time, which other programs hardly change.
"""

import contextlib
import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import or_
from pathlib import Path

import pandas as pd

from fedtables.benchmarks.running.execute import kernels
from fedtables.benchmarks.running.follow import Follower, PlannedCell, PlannedStage, planned_data
from fedtables.benchmarks.running.speed import training_speed
from fedtables.benchmarks.tables.cells import Cell
from fedtables.benchmarks.tables.spec import ON_CUDA
from fedtables.datasets import catalogue
from fedtables.datasets.catalogue import ResolvedData
from fedtables.federation.costs import Work, Workload
from fedtables.federation.memory import Memory
from fedtables.results.files import COMMITTED, RUNS, ResultsError
from fedtables.results.frame import read_records
from fedtables.results.record import OK, Record
from fedtables.results.sourcecode import ROOT

STANDARD = Workload("resnet8-narrow", (3, 16, 16), 10, 100)
"""What machines are compared by: the network of CIFAR-10 under `cpu`."""
CORES: Mapping[str, float] = {
    "cpu family 26, model 2": 5300,
    "cpu family 25, model 17": 3300,
    "cpu family 6, model 167": 4600,
}
"""Images of the standard load that a core trains in a second, by the processor's model as records
have it: of the machines that made most of the committed records. The first, an AMD EPYC, is from
`results/reference/speed.json`; the second, another, was measured by `training_speed` with both
cores busy; the third, an Intel Xeon, stands to the first as their records of FedAvgM in
fediod/table1: 3,790 and 4,325 samples a second."""


@dataclass
class Plan:
    """Work, bytes and memory of a set of cells."""

    cells: int = 0
    needed: Counter[str] = field(default_factory=Counter)
    """Stages that the cells ask for, by kind."""
    distinct: Counter[str] = field(default_factory=Counter)
    """Of these, the ones to compute: the others are shared."""
    work: Work = field(default_factory=Work)
    memory: Memory = Memory()  # noqa: RUF009
    """Of the cell that needs most, its samples and targets among them."""
    bytes_up: Counter[str] = field(default_factory=Counter)
    """Bytes that one run of each method sends, by method: the largest over columns."""
    bytes_down: Counter[str] = field(default_factory=Counter)
    sent: dict[tuple[str, str], int] = field(default_factory=dict)
    """Bytes of one run, both ways, by row and column; of one table alone."""
    bytes_sent: int = 0
    """Of the distinct fits of all cells, both ways."""
    data: dict[str, str] = field(default_factory=dict)
    """What each data set asked for will be, or how to get it."""
    missing: set[str] = field(default_factory=set)
    """Of these, what is still to get."""
    unplanned: Counter[str] = field(default_factory=Counter)
    """What cells do beside, whose end nobody knows, and how many do."""
    workloads: Counter[tuple[Workload, bool]] = field(default_factory=Counter)
    """All FLOPs, by the network that is trained and by whether CUDA graphs can hold its steps;
    where the network is not known, and of passes without training, by the one that a cell's clients
    train."""
    _seen: set[str] = field(default_factory=set)
    """Keys of the stages that are counted."""
    _peaks: dict[str, Memory] = field(default_factory=dict)
    """What each of these needs at most, with the stages that it asks for."""

    @property
    def networks(self) -> Counter[Workload]:
        """FLOPs by the network that is trained."""
        found: Counter[Workload] = Counter()
        for (load, _), flops in self.workloads.items():
            found[load] += flops
        return found

    def add(self, cell: PlannedCell, stages: Mapping[str, PlannedStage]) -> None:
        """Add a cell; stages that it shares with cells added before cost nothing."""
        self.cells += 1
        if any(key not in self._seen for key in cell.asks):
            self.bytes_sent += cell.bytes_up + cell.bytes_down
        added = sum((self._ask(key, stages) for key in cell.asks), cell.rest)
        self.work += added
        own = functools.reduce(or_, (self._peaks[key] for key in cell.asks), cell.memory)
        self.memory |= cell.held + own
        if cell.workload is not None:
            found = Counter({(load, replayable): flops for load, replayable, flops in added.shares})
            shared = sum(flops for _, replayable, flops in added.shares if replayable)
            found[cell.workload, True] += added.replayable_flops - shared
            found[cell.workload, False] += added.flops - found.total()
            self.workloads += found
            for sent, size in (
                (self.bytes_up, cell.bytes_up),
                (self.bytes_down, cell.bytes_down),
            ):
                sent[cell.method] = max(sent[cell.method], size)
        if cell.unplanned:
            self.unplanned[cell.unplanned] += 1

    def note_data(self, cell: Cell) -> None:
        """Note what the cell's data sets will be."""
        for source in cell.sources:
            data = planned_data(source, cell.profile)
            self.data[source.asked] = _availability(data)
            if not data.digest:
                self.missing.add(source.asked)

    def _ask(self, key: str, stages: Mapping[str, PlannedStage]) -> Work:
        """Count a stage; returns the work of what was not counted before."""
        stage = stages[key]
        self.needed[stage.kind] += 1
        if key in self._seen:
            return Work()
        self._seen.add(key)
        self.distinct[stage.kind] += 1
        added = sum((self._ask(other, stages) for other in stage.needs), stage.work)
        needed = (self._peaks[other] for other in stage.needs)
        self._peaks[key] = functools.reduce(or_, needed, stage.memory)
        return added


def _availability(data: ResolvedData) -> str:
    entry = catalogue.source(data.asked)
    return data.label if data.digest else f"{entry.title} is not present. {entry.how_to_get}"


def make_plan(
    cells: Sequence[Cell], follower: Follower | None = None, sums: Sequence[Plan] = ()
) -> Plan:
    """What `cells` would do together. A `follower` keeps what it has followed for the next plan;
    cells are added to the plans `sums` too.

    Raises SpecError for a cell that cannot be planned.
    """
    follower, own = follower or Follower(), Plan()
    for cell in cells:
        planned = follower.follow(cell)
        own.sent[cell.row, cell.column] = planned.bytes_up + planned.bytes_down
        for plan in (own, *sums):
            plan.note_data(cell)
            plan.add(planned, follower.stages)
    return own


def wall_of(rows: pd.DataFrame, jobs: int) -> float:
    """Seconds that pass where all rows of a table that are known run in one command."""
    return max(float(rows["added"].sum()) / jobs, float(rows["longest"].max()))


def within(rows: pd.DataFrame, jobs: int, limit: float) -> list[str]:
    """Rows that one command runs in `limit` seconds, the shortest first: what they share is counted
    for each.
    """
    chosen: list[str] = []
    spent = 0.0
    shortest = rows.dropna().sort_values("seconds", kind="stable").to_dict(orient="index")
    for row, time in shortest.items():
        if max((spent + time["seconds"]) / jobs, time["longest"]) <= limit:
            chosen.append(str(row))
            spent += time["seconds"]
    return chosen


def row_times(
    cells: Sequence[Cell], hours: Callable[[Plan], float], follower: Follower | None = None
) -> pd.DataFrame:
    """What each row of a table takes on this machine, by row: how many `cells`; `seconds` of one
    core or GPU, where it runs alone; those of its `longest` cell; those `added`, which no row
    before it has spent; whether they are `recorded`, for the same cells on the same kind of CPU.
    Seconds that no plan can count and no record tells of are not a number. `hours` of a plan count
    where no record tells of a row.

    Raises SpecError for a cell that cannot be planned.
    """
    follower, everything = follower or Follower(), Plan()
    by_row: dict[str, list[Cell]] = {}
    for cell in cells:
        by_row.setdefault(cell.row, []).append(cell)
    told = {} if cells[0].profile in ON_CUDA else _records(cells[0])
    times: dict[str, tuple[int, float, float, float, bool]] = {}
    for row, own in by_row.items():
        flops = [make_plan([cell], follower).work.flops for cell in own]
        before = everything.work.flops
        for cell in own:
            everything.add(follower.follow(cell), follower.stages)
        plan = make_plan(own, follower)
        alone = plan.work.flops
        found = [
            (work, seconds)
            for cell, work in zip(own, flops, strict=True)
            for seconds in _seconds(cell, told.get((cell.row, cell.column), ()))
        ]
        work, seconds = (sum(part) for part in zip(*found, strict=True)) if found else (0, 0.0)
        # Attacks, say, which train nothing that a plan counts.
        if not alone and (found or any(follower.follow(cell).unplanned for cell in own)):
            mean = seconds / len(found) if found else math.nan
            whole = mean * len(own)
            times[row] = len(own), whole, mean, whole, bool(found)
            continue
        if not (work and seconds):
            work, seconds = alone, 3600 * hours(plan)
        rate = work / seconds if seconds else 0.0
        whole, longest, added = (
            part / rate if rate else 0.0
            for part in (alone, max(flops), everything.work.flops - before)
        )
        times[row] = len(own), whole, longest, added, bool(found)
    names = ["cells", "seconds", "longest", "added", "recorded"]
    return pd.DataFrame.from_dict(times, orient="index", columns=names)


def _records(cell: Cell) -> dict[tuple[str, str], list[Record]]:
    """Finished records of the cell's table by row and column: committed ones, and the user's."""
    found: dict[tuple[str, str], list[Record]] = {}
    for folder in (ROOT / COMMITTED, RUNS):
        file = folder / cell.profile / f"{cell.table}.records.jsonl"
        with contextlib.suppress(ResultsError):  # a plan does without a damaged file
            for record in read_records(Path(file)):
                if record.status == OK:
                    found.setdefault((record.row, record.column), []).append(record)
    return found


def _seconds(cell: Cell, records: Sequence[Record]) -> list[float]:
    """What this machine would take for the cell by each record that is of the same work."""
    ways = asdict(cell.execution)
    found = []
    for record in records:
        machine = record.machine
        same = (
            all(record.config.get(name, value) == value for name, value in cell.config)
            and record.data.get("used") == cell.data.used
            and machine.get("device") == cell.device
            and machine.get("threads") == cell.threads
            and all(machine.get(name, value) == value for name, value in ways.items())
        )
        ratio = _ratio(machine.get("kernels", "")) if same else 0.0
        if ratio:
            found.append(ratio * max(record.seconds, sum(record.fit_seconds.values())))
    return found


def _ratio(there: str) -> float:
    """Seconds on this machine for one of a machine with these kernels; 0 if that is not known."""
    if there == kernels():
        return 1.0
    speed = next((speed for model, speed in CORES.items() if there.endswith(model)), 0.0)
    return speed / images_here() if speed else 0.0


@functools.cache
def images_here() -> float:
    """Images of the standard load that a core trains in a second."""
    return training_speed(STANDARD, "cpu").samples
