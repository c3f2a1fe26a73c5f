"""What a table would cost, before anyone starts it: the same code path, run on the `meta` device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks import registry
from benchmarks.cells import Cell
from benchmarks.execute import make_method
from benchmarks.scenario import build_federation
from benchmarks.spec import SpecError
from datasets import catalogue
from datasets.catalogue import ResolvedData
from datasets.source import REAL
from federation.channel import Channel
from federation.costs import Meter, metering
from federation.federation import HeterogeneousClientsError
from federation.fitting import fit
from federation.seeds import Seeds
from federation.stages import StageCache
from results.files import digest

SUSTAINED = {"paper": 10e12, "cpu": 50e9, "smoke": 10e9}
"""FLOP/s assumed for time estimates: per GPU (a data-centre GPU in fp32, small images), per CPU core otherwise."""


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

    def hours(self, profile: str) -> float:
        """Estimated hours on one device (GPU or core)."""
        return self.meter.flops / SUSTAINED[profile] / 3600


def _planned_data(data: ResolvedData, profile: str) -> ResolvedData:
    """At the paper's scale the official set, present or not; in other profiles what a run would use."""
    if profile != "paper" or data.used == data.asked:
        return data
    return ResolvedData(data.asked, data.asked, REAL, "", "not present")


def _availability(data: ResolvedData) -> str:
    entry = catalogue.source(data.asked)
    return data.label if data.digest else f"{entry.title} is not present. {entry.how_to_get}"


def make_plan(cells: Sequence[Cell]) -> Plan:
    """Follow every cell on the `meta` device and add up what it would do."""
    plan = Plan(cells=len(cells))
    stages = StageCache(None, device="meta")
    with metering(plan.meter):
        for cell in cells:
            data = _planned_data(cell.data, cell.profile)
            for found in (cell.data, cell.public):
                if found is not None:
                    plan.data[found.asked] = _availability(_planned_data(found, cell.profile))
            if cell.measure == "classes":
                continue
            config = dict(cell.config)
            plan.meter.scope = digest([cell.method, sorted(config.items()), cell.seed, data.used])
            method = make_method(registry.find_method(cell.method, cell.plugins), config)
            channel = Channel()
            federation = build_federation(
                config,
                data,
                Seeds.moving(cell.seed_axes, cell.seed),
                stages,
                type(method),
                device="meta",
                channel=channel,
                public=None if cell.public is None else _planned_data(cell.public, cell.profile),
            )
            try:
                fit(federation, method)
            except (NotImplementedError, RuntimeError) as error:
                raise SpecError(
                    f"{cell} cannot be planned: a method needs the values of tensors, and a plan has only their sizes ({error})"
                ) from error
            except (ValueError, HeterogeneousClientsError) as error:
                raise SpecError(f"{cell} cannot be planned: {error}") from error
            plan.bytes_up[cell.method] = max(plan.bytes_up[cell.method], channel.total("up"))
            plan.bytes_down[cell.method] = max(plan.bytes_down[cell.method], channel.total("down"))
    for event in stages.events:
        plan.needed[event.kind] += 1
        plan.distinct[event.kind] += event.computed
    return plan
