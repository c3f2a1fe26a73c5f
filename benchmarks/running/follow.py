"""Follows cells on the `meta` device: the same code path as a run, with the work booked instead of
done.

What a cell asks for is kept by stage, so that stages which cells share can be counted once, in
whatever set of cells. It is kept on disk too, under everything that determines it.
"""

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedtables.benchmarks.running.budget import length, parts_on_meta
from fedtables.benchmarks.scenarios.assembly import assemble, make_method
from fedtables.benchmarks.scenarios.configuration import Configuration
from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.cells import Cell
from fedtables.benchmarks.tables.spec import ON_CUDA, SpecError
from fedtables.datasets.catalogue import ResolvedData
from fedtables.datasets.source import UNVERIFIED
from fedtables.federation.cache import Stage, StageCache, StageRequest, Together
from fedtables.federation.channel import Channel
from fedtables.federation.costs import Meter, Work, Workload, metering
from fedtables.federation.data import MOST_ON_DEVICE
from fedtables.federation.federation import Federation
from fedtables.federation.fitting import fit
from fedtables.federation.inside.networks import HeterogeneousClientsError
from fedtables.federation.memory import Answers, Memory
from fedtables.federation.method import Method
from fedtables.federation.parts import Run, bytes_of
from fedtables.federation.seeds import Seeds
from fedtables.federation.surroundings import put_back
from fedtables.results.files import cache_home, digest, read_sealed_json, write_sealed_json
from fedtables.results.sourcecode import source_digest

IS = "is"
"""Where a plan on disk has the kind of an object."""


@dataclass(frozen=True)
class PlannedStage:
    """What a stage takes, beside the stages that it asks for itself."""

    kind: str
    work: Work
    memory: Memory
    needs: tuple[str, ...]
    """Keys of the stages that it asks for, in order."""


@dataclass(frozen=True)
class PlannedCell:
    """What a cell takes."""

    method: str
    asks: tuple[str, ...] = ()
    """Keys of the stages that it asks for."""
    rest: Work = field(default_factory=Work)
    """Outside of stages."""
    memory: Memory = Memory()  # noqa: RUF009
    held: Memory = Memory()  # noqa: RUF009
    """Of its samples and targets, all the while."""
    bytes_up: int = 0
    bytes_down: int = 0
    workload: Workload | None = None
    """What its clients train."""
    unplanned: str = ""
    """What it does beside, whose end nobody knows (`Measure.unplanned`)."""


class Follower:
    """Follows cells, and keeps what their stages take."""

    def __init__(self) -> None:
        self._meter = Meter()
        self._cache = _RecordingCache(self._meter)
        self.stages = self._cache.stages
        self._cells: dict[str, PlannedCell] = {}

    def follow(self, cell: Cell) -> PlannedCell:
        """What a cell takes, from disk if it has been followed before.

        Raises SpecError with the reason for a cell that cannot be planned, DataError for absent or
        damaged data.
        """
        if cell.key not in self._cells:
            path = _path(cell)
            try:
                kept = _made(read_sealed_json(path))
            except FileNotFoundError:
                kept = None
            if kept is None:
                planned = self._followed(cell)
                stages = {key: self.stages[key] for key in self._closure(planned.asks)}
                write_sealed_json(path, _plain({"cell": planned, "stages": stages}))
            else:
                planned = kept["cell"]
                self.stages |= kept["stages"]
            self._cells[cell.key] = planned
        return self._cells[cell.key]

    def _closure(self, keys: Sequence[str]) -> Iterator[str]:
        for key in keys:
            yield key
            yield from self._closure(self.stages[key].needs)

    @put_back()
    def _followed(self, cell: Cell) -> PlannedCell:
        measure = registry.find_measure(cell.measure)
        unplanned = measure.unplanned(dict(cell.config))
        if not measure.needs_fit(dict(cell.config)):
            return PlannedCell(cell.method, unplanned=unplanned)
        data, seeds = _planned_sets(cell), Seeds.moving(cell.seed_axes, cell.seed)
        config, meter = {**dict(cell.config), **length(cell, data)}, self._meter
        method = make_method(registry.find_method(cell.method), config)
        channel = Channel()
        used = data.target.used
        meter.scope = digest([cell.method, sorted(config.items()), cell.seed, used])
        with metering(meter), self._cache.recording() as asks:
            try:
                parts = parts_on_meta(cell, data, seeds)
                held = parts.held()
                meter.held, size = frozenset(held), bytes_of(held)
                mapped = {k: t for k, t in held.items() if getattr(t, "mapped", False)}
                meter.on_host = size > MOST_ON_DEVICE
                federation = assemble(
                    parts,
                    Configuration.parse(config),
                    type(method),
                    Run(seeds, self._cache, "meta", channel),
                )
                meter.kind = _kind(method, federation)
                fit(federation, method)
            except (NotImplementedError, RuntimeError) as error:
                raise SpecError(
                    f"{cell} cannot be planned: on the `meta` device, where tensors have sizes and"
                    f" no values, PyTorch says: {error}"
                ) from error
            except (ValueError, HeterogeneousClientsError) as error:
                raise SpecError(f"{cell} cannot be planned: {error}") from error
            return PlannedCell(
                cell.method,
                tuple(asks),
                meter.work,
                meter.memory,
                Memory(0 if meter.on_host else size, size - bytes_of(mapped)),
                channel.total("up"),
                channel.total("down"),
                Workload(
                    federation.clients[0].network,
                    federation.networks.image_shape,
                    federation.task.outputs,
                    federation.local.batch_size,
                ),
                unplanned,
            )


class _RecordingCache(StageCache):
    """Keeps what every stage takes by itself, and which others it asks for."""

    def __init__(self, meter: Meter):
        super().__init__(None, device="meta")
        self.stages: dict[str, PlannedStage] = {}
        self._meter = meter
        self._known: dict[str, Stage] = {}
        self._asked: list[str] = []

    @contextlib.contextmanager
    def recording(self) -> Iterator[list[str]]:
        """Inside, the meter has what is done from here on, without the stages that are asked for;
        their keys are in the list.
        """
        outer, self._asked = self._asked, []
        try:
            with self._meter.having(work=Work(), memory=Memory(), answers=Answers()):
                yield self._asked
        finally:
            self._asked = outer

    def get_all(
        self,
        requests: Sequence[StageRequest],
        together: Together | None = None,
        groups: Sequence[Sequence[int]] = (),
    ) -> list[Stage]:
        return [self._recorded(request, request.key) for request in requests]

    def _recorded(self, request: StageRequest, key: str) -> Stage:
        self._asked.append(key)
        if key not in self._known:
            with self.recording() as needs:
                self._known[key] = request.compute()
                work, memory = self._meter.work, self._meter.memory
            self.stages[key] = PlannedStage(request.kind, work, memory, tuple(needs))
        return self._known[key]


def _path(cell: Cell) -> Path:
    """Where a cell's plan is kept: by its configuration, its data and all code that follows it."""
    key = digest([cell.key, cell.code, source_digest(__name__)])
    return cache_home() / "plans" / key[:2] / f"{key}.json"


KINDS = {kind.__name__: kind for kind in (PlannedCell, PlannedStage, Memory, Work, Workload)}


def _plain(value: Any) -> Any:
    """Objects of these kinds as plain JSON values."""
    return json.loads(
        json.dumps(value, default=lambda made: {IS: type(made).__name__, **vars(made)})
    )


def _made(value: Any) -> Any:
    """The reverse of `_plain`."""
    if isinstance(value, list):
        return tuple(map(_made, value))
    if not isinstance(value, dict):
        return value
    fields = {name: _made(part) for name, part in value.items()}
    return KINDS[fields.pop(IS)](**fields) if IS in fields else fields


def planned_data(data: ResolvedData, profile: str) -> ResolvedData:
    """In profiles of the paper's networks the official set, present or not; in others what a run
    would use.
    """
    if profile not in ON_CUDA or data.used == data.asked:
        return data
    return ResolvedData(data.asked, data.asked, UNVERIFIED, "", "not present")


def _planned_sets(cell: Cell) -> DataSets:
    """The data sets of a cell as they are planned with."""
    return DataSets(
        planned_data(cell.data, cell.profile),
        None if cell.public is None else planned_data(cell.public, cell.profile),
        None if cell.private is None else planned_data(cell.private, cell.profile),
        tuple(planned_data(other, cell.profile) for other in cell.others),
    )


def _kind(method: Method, federation: Federation) -> str:
    """What tells methods and federations apart whose steps cost differently (`Meter.kind`)."""
    clients = [[client.network, repr(client.task)] for client in federation.clients]
    protection = federation.privacy.protection
    return digest(
        [
            repr(method),
            clients,
            federation.networks.server,
            list(federation.networks.image_shape),
            repr([federation.task, federation.local, federation.server, federation.augmentation]),
            repr(protection.plan if protection is not None else None),
        ]
    )
