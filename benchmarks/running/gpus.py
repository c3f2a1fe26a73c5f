"""Throughputs of GPUs, for hours that are estimated from FLOPs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.tables.spec import SpecError
from federation.costs import Workload
from results.names import near

if TYPE_CHECKING:
    from benchmarks.running.plan import Plan
    from benchmarks.running.speed import Speed

    Measured = Mapping[Workload, Mapping[str, Speed | str]]


@dataclass(frozen=True)
class GPU:
    """A GPU, and how fast it trains the networks of these tables."""

    title: str
    speed: float
    """FLOP/s of training."""
    source: str
    """Where the speed comes from."""
    speeds: Mapping[Workload, float] = field(default_factory=dict)
    """FLOP/s of what was measured by itself."""
    launched: GPU | None = None
    """The same in steps whose kernels are launched one by one, which has all that CUDA graphs
    cannot hold where these are the speeds of replayed ones."""
    memory: int = 0
    """Bytes; 0 if it is not known."""

    def holds(self, plan: Plan) -> bool:
        """Whether its memory is large enough for a plan, as far as that is known."""
        return not self.memory or plan.peak_bytes <= self.memory

    def hours(self, plan: Plan) -> float:
        """What a plan takes of it."""
        if self.launched is None:
            return plan.hours(self.speed, self.speeds)
        held, others = plan.split()
        return held.hours(self.speed, self.speeds) + self.launched.hours(others)


REPLAYED = "replayed"
"""In the name of a way of running whose steps are CUDA graphs."""
H100 = 11e12
H100_PEAK, A100_PEAK = 67e12, 19.5e12
"""FLOP/s in fp32 of the SXM forms, NVIDIA's data sheets; their memories differ less, 3.35 and 2.04
TB/s."""
GPUS = {
    "h100": GPU(
        "NVIDIA H100 (80 GB)",
        H100,
        "measured: the wide ResNet-8 in batches of 16, the slowest of what was measured there"
        " (docs/performance.md, On CUDA)",
        memory=80 * 10**9,
    ),
    "a100": GPU(
        "NVIDIA A100 (80 GB)",
        H100 * A100_PEAK / H100_PEAK,
        "derived, not measured: the H100's by the ratio of both data sheets' peaks in fp32,"
        " 19.5 / 67 TFLOP/s",
        memory=80 * 10**9,
    ),
}


def find_gpus(names: str) -> list[GPU]:
    """The GPUs of `h100,a100`; of a calibration file (`benchmarks.speed.cuda`) one for each way of
    running that was measured.

    Raises SpecError with near names for an unknown one, and for a file that is no calibration.
    """
    found = []
    for name in dict.fromkeys(names.split(",")):
        if name.endswith(".json"):
            found += read_calibration(Path(name))
        elif name in GPUS:
            found.append(GPUS[name])
        else:
            raise SpecError(f"--gpu {name}: its speed is not known; {near(name, GPUS)}")
    return found


def calibration(device: str, versions: Mapping[str, str], measured: Measured) -> str:
    """What was measured on a device, as the text of a file: a line for each network, with each
    way of running it.
    """
    entries = [
        {
            **asdict(load),
            "ways": {
                way: speed if isinstance(speed, str) else asdict(speed)
                for way, speed in ways.items()
            },
        }
        for load, ways in measured.items()
    ]
    lines = ",\n  ".join(json.dumps(entry) for entry in entries)
    head = f'"device": {json.dumps(device)},\n "versions": {json.dumps(dict(versions))}'
    return f'{{{head},\n "measured": [\n  {lines}\n ]}}\n'


def read_calibration(path: Path) -> list[GPU]:
    """The device of a calibration file, once for each way of running, of most work first measured;
    where a way has no number for a network, the slowest of its numbers holds, and what a way that
    replays steps cannot replay runs as its precision does without.

    Raises SpecError for a file that cannot be read or is no calibration.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        device = str(content["device"])
        by_way: dict[str, dict[Workload, float]] = {}
        for entry in content["measured"]:
            load = Workload(
                str(entry["network"]),
                tuple(map(int, entry["image_shape"])),
                int(entry["outputs"]),
                int(entry["batch_size"]),
            )
            for way, speed in entry["ways"].items():
                if isinstance(speed, dict) and (flops := float(speed["flops"])) > 0:
                    by_way.setdefault(way, {})[load] = flops
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SpecError(f"--gpu {path}: no calibration that can be read: {error!r}") from error
    if not by_way:
        raise SpecError(f"--gpu {path}: it has no measured speed")
    gpus: dict[str, GPU] = {}
    for way, speeds in by_way.items():
        launched = gpus.get(way.partition(",")[0]) if REPLAYED in way else None
        others = f"; what no graph holds, by {launched.title}" if launched is not None else ""
        gpus[way] = GPU(
            f"{device}, {way}",
            min(speeds.values()),
            f"the slowest of {len(speeds)} networks that were measured, where one was not"
            f" ({path.name}){others}",
            speeds,
            launched,
        )
    return list(gpus.values())
