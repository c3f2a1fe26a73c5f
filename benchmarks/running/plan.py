"""What cells would cost, before anyone starts them: what `follow` finds, added up."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from benchmarks.running.execute import prepare_device
from benchmarks.running.follow import Follower, PlannedCell, PlannedStage, Workload, planned_data
from benchmarks.tables.cells import Cell
from datasets import catalogue
from datasets.catalogue import ResolvedData
from federation.costs import Meter, Work
from federation.tasks.base import Task
from federation.tasks.classification import Classification
from federation.tasks.segmentation import Segmentation
from federation.training.execution import DEFAULT
from federation.training.loops import Normalisation, TrainingPlan, channels_last, train
from models.catalogue import build, entry

SAMPLE = 1.5e11
"""FLOPs of one measurement on a core: a few seconds of it."""


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
    bytes_up: Counter[str] = field(default_factory=Counter)
    """Bytes that one run of each method sends, by method: the largest over columns."""
    bytes_down: Counter[str] = field(default_factory=Counter)
    bytes_sent: int = 0
    """Of the distinct fits of all cells, both ways."""
    data: dict[str, str] = field(default_factory=dict)
    """What each data set asked for will be, or how to get it."""
    missing: set[str] = field(default_factory=set)
    """Of these, what is still to get."""
    unplanned: Counter[str] = field(default_factory=Counter)
    """What cells do beside, whose end nobody knows, and how many do."""
    workloads: Counter[Workload] = field(default_factory=Counter)
    """FLOPs of cells, by what their clients train."""
    _seen: set[str] = field(default_factory=set)
    """Keys of the stages that are counted."""

    def add(self, cell: PlannedCell, stages: Mapping[str, PlannedStage]) -> None:
        """Add a cell; stages that it shares with cells added before cost nothing."""
        before = self.work.flops
        self.cells += 1
        if any(key not in self._seen for key in cell.asks):
            self.bytes_sent += cell.bytes_up + cell.bytes_down
        self.work += cell.rest
        self.peak_bytes = max(self.peak_bytes, cell.peak_bytes)
        for key in cell.asks:
            self._ask(key, stages)
        if cell.workload is not None:
            self.workloads[cell.workload] += self.work.flops - before
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
        self.peak_bytes = max(self.peak_bytes, stage.peak_bytes)
        for other in stage.needs:
            self._ask(other, stages)

    def hours(self, speed: float) -> float:
        """Hours of one device (GPU or core) at `speed` FLOP/s."""
        return self.work.flops / speed / 3600

    def measured_speed(self, device: str, seconds: float = 1.0) -> float:
        """FLOP/s at which `device`, or one core, trains the client network of most of the work, on
        random images, smaller ones where two of their size would take long; 0 for no work.
        """
        if not self.workloads:
            return 0.0
        load = self.workloads.most_common(1)[0][0]
        channels, *sides = load.image_shape
        flops, count = _flops_per_sample(load, sides), 8 * load.batch_size
        if device == "cpu":
            made = entry(load.network)
            while 2 * flops > SAMPLE and all(
                side % (2 * made.multiple) == 0 and side >= 2 * made.smallest for side in sides
            ):
                sides = [side // 2 for side in sides]
                flops = _flops_per_sample(load, sides)
            count = max(2, min(count, int(SAMPLE / flops)))
        batch_size = min(load.batch_size, count)
        shape = (count, channels, *sides)
        images = torch.randint(0, 256, shape, dtype=torch.uint8, device=device)
        dense = entry(load.network).makes == "maps"
        task: Task = Segmentation(load.outputs) if dense else Classification(load.outputs)
        targets = torch.randint(0, load.outputs, (count, *(sides if dense else ())), device=device)
        training = TrainingPlan(epochs=1, batch_size=batch_size)
        normalise = Normalisation((0.5,) * channels, (0.25,) * channels)
        model = channels_last(build(load.network, channels, load.outputs, sides).to(device))
        threads = torch.get_num_threads()
        prepare_device(device, 1, DEFAULT)
        try:
            times: list[float] = []
            while len(times) < 2 or sum(times) < seconds:
                started = time.monotonic()
                train(
                    model,
                    images,
                    targets,
                    task.loss,
                    training,
                    normalise=normalise,
                    generator=torch.Generator(device),
                )
                times.append(time.monotonic() - started)
        finally:
            torch.set_num_threads(threads)
        # The first is slower: memory is fetched, kernels are chosen.
        return count * flops / min(times)


def _flops_per_sample(load: Workload, sides: Sequence[int]) -> float:
    """Of a training step."""
    channels = load.image_shape[0]
    with torch.device("meta"):
        counted = build(load.network, channels, load.outputs, sides)
    meter = Meter()
    meter.book_training(counted, torch.empty((1, channels, *sides)), epochs=1, batch_size=1)
    return meter.work.flops


def _availability(data: ResolvedData) -> str:
    entry = catalogue.source(data.asked)
    return data.label if data.digest else f"{entry.title} is not present. {entry.how_to_get}"


def make_plan(
    cells: Sequence[Cell],
    follower: Follower | None = None,
    report: Callable[[Cell], None] = lambda cell: None,
) -> Plan:
    """What `cells` would do together. A `follower` keeps what it has followed for the next plan;
    `report` is told each cell before it is followed.

    Raises SpecError for a cell that cannot be planned.
    """
    follower, plan = follower or Follower(), Plan()
    for cell in cells:
        report(cell)
        plan.note_data(cell)
        plan.add(follower.follow(cell), follower.stages)
    return plan
