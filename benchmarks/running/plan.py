"""What cells would cost, before anyone starts them: what `follow` finds, added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.running.follow import Follower, PlannedCell, PlannedStage, planned_data
from benchmarks.tables.cells import Cell
from datasets import catalogue
from datasets.catalogue import ResolvedData
from federation.costs import Work, Workload


@dataclass
class Plan:
    """Work, bytes and memory of a set of cells."""

    cells: int = 0
    needed: Counter[str] = field(default_factory=Counter)
    """Stages that the cells ask for, by kind."""
    distinct: Counter[str] = field(default_factory=Counter)
    """Of these, the ones to compute: the others are shared."""
    work: Work = field(default_factory=Work)
    peak_bytes: int = 0
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
    _peaks: dict[str, int] = field(default_factory=dict)
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
        before = self.work
        self.cells += 1
        if any(key not in self._seen for key in cell.asks):
            self.bytes_sent += cell.bytes_up + cell.bytes_down
        self.work += cell.rest
        for key in cell.asks:
            self._ask(key, stages)
        work = max([cell.peak_bytes, *(self._peaks[key] for key in cell.asks)])
        self.peak_bytes = max(self.peak_bytes, cell.held_bytes + work)
        if cell.workload is not None:
            added = self.work - before
            own = Counter({(share.load, share.replayable): share.flops for share in added.shares})
            shared = sum(share.flops for share in added.shares if share.replayable)
            own[cell.workload, True] += added.replayable_flops - shared
            own[cell.workload, False] += added.flops - own.total()
            self.workloads += own
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

    def _ask(self, key: str, stages: Mapping[str, PlannedStage]) -> None:
        stage = stages[key]
        self.needed[stage.kind] += 1
        if key in self._seen:
            return
        self._seen.add(key)
        self.distinct[stage.kind] += 1
        self.work += stage.work
        for other in stage.needs:
            self._ask(other, stages)
        self._peaks[key] = max([stage.peak_bytes, *(self._peaks[key] for key in stage.needs)])


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
