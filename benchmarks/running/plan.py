"""What a table would cost, before anyone starts it: the same code path, run on the `meta`
device.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from benchmarks.running.execute import make_method, prepare_device
from benchmarks.scenarios.assembly import Run, build_federation
from benchmarks.scenarios.configuration import Configuration
from benchmarks.scenarios.scenario import DataSets
from benchmarks.tables import registry
from benchmarks.tables.cells import Cell
from benchmarks.tables.spec import SpecError
from datasets import catalogue
from datasets.catalogue import ResolvedData
from datasets.source import REAL
from federation.caching.cache import StageCache
from federation.channel import Channel
from federation.costs import Meter, metering
from federation.fitting import fit
from federation.parts.networks import HeterogeneousClientsError
from federation.seeds import Seeds
from federation.tasks.base import Task
from federation.tasks.classification import Classification
from federation.tasks.segmentation import Segmentation
from federation.training.execution import DEFAULT
from federation.training.loops import Normalisation, TrainingPlan, channels_last, train
from models.catalogue import build, entry
from results.files import digest

GPU, GPU_SPEED = "NVIDIA H100 (80 GB)", 11e12
"""A GPU by name, and FLOP/s at which it trained the wide ResNet-8 in batches of 16 in fp32, the
lowest of what was measured there (docs/performance.md, On CUDA; ResNet-18 came to 18.8e12)."""
SAMPLE = 1.5e11
"""FLOPs of one measurement on a core: a few seconds of it."""


@dataclass(frozen=True)
class Workload:
    """A client's training, as far as its speed goes."""

    network: str
    image_shape: tuple[int, ...]
    outputs: int
    batch_size: int


@dataclass
class Plan:
    """Work, bytes and memory of a set of cells."""

    cells: int = 0
    needed: Counter[str] = field(default_factory=Counter)
    """Stages that the cells ask for, by kind."""
    distinct: Counter[str] = field(default_factory=Counter)
    """Of these, the ones to compute: the others are shared."""
    meter: Meter = field(default_factory=Meter)
    bytes_up: Counter[str] = field(default_factory=Counter)
    """Bytes that one run of each method sends, by method: the largest over columns."""
    bytes_down: Counter[str] = field(default_factory=Counter)
    data: dict[str, str] = field(default_factory=dict)
    """What each data set asked for will be, or how to get it."""

    workloads: Counter[Workload] = field(default_factory=Counter)
    """FLOPs of cells, by what their clients train."""

    def hours(self, speed: float) -> float:
        """Hours of one device (GPU or core) at `speed` FLOP/s."""
        return self.meter.flops / speed / 3600

    def measured_speed(self, device: str, seconds: float = 1.0) -> float:
        """FLOP/s at which `device`, or one core, trains the client network of most of the work, on
        random images; 0 for no work.
        """
        if not self.workloads:
            return 0.0
        load = self.workloads.most_common(1)[0][0]
        channels, *sides = load.image_shape
        with torch.device("meta"):
            counted = build(load.network, channels, load.outputs, sides)
        meter = Meter()
        meter.book_training(counted, torch.empty((1, *load.image_shape)), epochs=1, batch_size=1)
        count = 8 * load.batch_size
        if device == "cpu":
            count = max(2, min(count, int(SAMPLE / meter.flops)))
        batch_size = min(load.batch_size, count)
        images = torch.randint(0, 256, (count, *load.image_shape), dtype=torch.uint8, device=device)
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
        return count * meter.flops / min(times)


def _planned_data(data: ResolvedData, profile: str) -> ResolvedData:
    """At the paper's scale the official set, present or not; in other profiles what a run would
    use.
    """
    if profile != "paper" or data.used == data.asked:
        return data
    return ResolvedData(data.asked, data.asked, REAL, "", "not present")


def _planned_sets(cell: Cell) -> DataSets:
    """The data sets of a cell as they are planned with."""
    return DataSets(
        _planned_data(cell.data, cell.profile),
        None if cell.public is None else _planned_data(cell.public, cell.profile),
        None if cell.private is None else _planned_data(cell.private, cell.profile),
        tuple(_planned_data(other, cell.profile) for other in cell.others),
    )


def _availability(data: ResolvedData) -> str:
    entry = catalogue.source(data.asked)
    return data.label if data.digest else f"{entry.title} is not present. {entry.how_to_get}"


def make_plan(cells: Sequence[Cell]) -> Plan:
    """Follow every cell on the `meta` device and add up what it would do."""
    plan = Plan(cells=len(cells))
    stages = StageCache(None, device="meta")
    with metering(plan.meter):
        for cell in cells:
            for source in cell.sources:
                plan.data[source.asked] = _availability(_planned_data(source, cell.profile))
            config = dict(cell.config)
            if not registry.find_measure(cell.measure).needs_fit(config):
                continue  # an attack ends where it succeeds: nobody knows when
            data = _planned_sets(cell)
            used = data.target.used
            plan.meter.scope = digest([cell.method, sorted(config.items()), cell.seed, used])
            method = make_method(registry.find_method(cell.method, cell.plugins), config)
            channel = Channel()
            try:
                federation = build_federation(
                    Configuration.parse(config),
                    data,
                    type(method),
                    Run(Seeds.moving(cell.seed_axes, cell.seed), stages, "meta", channel),
                )
            except ValueError as error:
                raise SpecError(f"{cell} cannot be planned: {error}") from error
            workload = Workload(
                federation.clients[0].network,
                federation.networks.image_shape,
                federation.task.outputs,
                federation.local.batch_size,
            )
            before = plan.meter.flops
            try:
                fit(federation, method)
            except (NotImplementedError, RuntimeError) as error:
                raise SpecError(
                    f"{cell} cannot be planned: a method needs the values of tensors, and a plan"
                    f" has only their sizes ({error})"
                ) from error
            except (ValueError, HeterogeneousClientsError) as error:
                raise SpecError(f"{cell} cannot be planned: {error}") from error
            plan.workloads[workload] += plan.meter.flops - before
            plan.bytes_up[cell.method] = max(plan.bytes_up[cell.method], channel.total("up"))
            plan.bytes_down[cell.method] = max(plan.bytes_down[cell.method], channel.total("down"))
    for event in stages.events:
        plan.needed[event.kind] += 1
        plan.distinct[event.kind] += event.computed
    return plan
