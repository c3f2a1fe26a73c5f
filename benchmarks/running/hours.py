"""How fast GPUs and this machine train, and the table of hours: what tables, papers and the suite
cost, as `plan` counts it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf, log
from pathlib import Path

import torch

from fedtables.benchmarks.running.plan import Plan
from fedtables.benchmarks.running.speed import Speed, training_speed
from fedtables.benchmarks.tables.spec import SpecError, usual_device, usual_execution
from fedtables.federation.costs import Workload
from fedtables.federation.execution import Execution
from fedtables.results.files import ResultsError
from fedtables.results.names import near


@dataclass(frozen=True)
class Device:
    """A GPU, or a core, and how fast it trains the networks of these tables."""

    title: str
    speed: float
    """FLOP/s of training; 0 if it is not known."""
    source: str
    """Where the speed comes from."""
    speeds: Mapping[Workload, float] = field(default_factory=dict)
    """FLOP/s of what was measured by itself."""
    launched: Device | None = None
    """The same in steps whose kernels are launched one by one, which has all that CUDA graphs
    cannot hold where these are the speeds of replayed ones."""
    memory: int = 0
    """Bytes; 0 if it is not known."""

    def hours(self, plan: Plan) -> float:
        """What a plan takes of it."""
        seconds = 0.0
        for (load, replayable), flops in plan.workloads.items():
            device = self if replayable or self.launched is None else self.launched
            if device.speed:
                seconds += flops / device.speed_of(load)
        return seconds / 3600

    def speed_of(self, load: Workload) -> float:
        """Of what was measured of the same network on images as large, with as many outputs if it
        can be, the speed of what comes nearest in its batch; else the device's.
        """
        network = load.network, load.image_shape
        near = min(
            (m for m in self.speeds if (m.network, m.image_shape) == network),
            key=lambda m: (
                m.outputs != load.outputs,
                abs(log(m.batch_size / load.batch_size)),
            ),
            default=None,
        )
        return self.speed if near is None else self.speeds[near]


def device_here(profile: str) -> str:
    """Where this machine runs a profile: on CUDA if the profile does and there is a GPU."""
    return usual_device(profile) if torch.cuda.is_available() else "cpu"


def this_machine(plan: Plan, profile: str) -> Device:
    """This machine's GPU, or one core, at the speed at which it trains the network of most of a
    plan's work, as runs of the profile do.
    """
    device = device_here(profile)
    loads = [load for load, _ in plan.networks.most_common(1)]

    def measured(how: Execution) -> Device:
        speed = training_speed(loads[0], device, how).flops if loads else 0.0
        title = "core" if device == "cpu" else "GPU"
        return Device(title, speed, "measured just now, with the network of most work")

    how = usual_execution(profile, device)
    if how.compile != "graphs":
        return measured(how)
    return replace(measured(how), launched=measured(replace(how, compile="off")))


GB, GIB = 10**9, 2**30
SUITE = "all"
"""The key of the sum over everything."""
REPLAYED = "replayed"
"""In the name of a way of running whose steps are CUDA graphs."""
MEASURED = Path(__file__).parents[1] / "speed" / "nvidia-h200.json"
"""What `fedtables.benchmarks.speed.cuda` measured."""
RESNET18 = Workload("resnet18", (1, 28, 28), 10, 250)
PEAK, A100_PEAK = 989e12, 312e12
"""FLOP/s in bf16 without sparsity of the SXM forms of H200 and H100, and of A100: NVIDIA's data
sheets."""


def find_gpus(names: str) -> list[Device]:
    """The GPUs of `h100,a100`; of a calibration file (`fedtables.benchmarks.speed.cuda`) one for
    each way of running that was measured.

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


def calibration(
    device: str, versions: Mapping[str, str], measured: Mapping[Workload, Mapping[str, Speed | str]]
) -> str:
    """What was measured on a device, by network and way of running it, as the text of a file."""
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
    content = {"device": device, "versions": dict(versions), "measured": entries}
    return json.dumps(content, indent=1) + "\n"


def read_calibration(path: Path) -> list[Device]:
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
            ways = entry.pop("ways")
            load = Workload(**{**entry, "image_shape": tuple(entry["image_shape"])})
            for way, speed in ways.items():
                if isinstance(speed, dict) and (flops := float(speed["flops"])) > 0:
                    by_way.setdefault(way, {})[load] = flops
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SpecError(f"--gpu {path}: no calibration that can be read: {error!r}") from error
    if not by_way:
        raise SpecError(f"--gpu {path}: it has no measured speed")
    devices: dict[str, Device] = {}
    for way, speeds in by_way.items():
        launched = devices.get(way.partition(",")[0]) if REPLAYED in way else None
        others = f"; what no graph holds, by {launched.title}" if launched is not None else ""
        devices[way] = Device(
            f"{device}, {way}",
            min(speeds.values()),
            f"the slowest of {len(speeds)} networks that were measured, where one was not"
            f" ({path.name}){others}",
            speeds,
            launched,
        )
    return list(devices.values())


def _gpu(title: str, memory: int, share: float, source: str) -> Device:
    """A GPU of `memory` GB that trains at a share of the speeds that were measured, in bf16."""
    said = f"{source}; other networks as ResNet-18"
    ways = {device.title.partition(", ")[2]: device for device in read_calibration(MEASURED)}

    def at(way: str) -> Device:
        speeds = {load: share * speed for load, speed in ways[way].speeds.items()}
        return Device(title, speeds[RESNET18], said, speeds, memory=memory * GB)

    return replace(at("bf16, replayed"), launched=at("bf16"))


GPUS = {
    "h200": _gpu(
        "NVIDIA H200 (141 GB)", 141, 1.0,
        "three networks measured in bf16 (docs/results/speed.md)",
    ),
    "h100": _gpu(
        "NVIDIA H100 (80 GB)", 80, 1.0,
        "derived, not measured: as an H200, which has the same peak in bf16",
    ),
    "a100": _gpu(
        "NVIDIA A100 (80 GB)", 80, A100_PEAK / PEAK,
        "derived, not measured: an H200's by the peaks in bf16, 312 / 989 TFLOP/s",
    ),
}  # fmt: skip


def headings(gpus: Sequence[Device]) -> list[str]:
    """The columns of `rows`."""
    return [
        "table",
        "cells",
        "stages",
        "EFLOPs",
        *(f"hours on {gpu.title}" for gpu in gpus),
        "GB sent",
        "GiB of memory",
        "GiB of the host",
    ]


def rows(plans: Mapping[str, Plan], gpus: Sequence[Device]) -> Iterator[list[str]]:
    """A line for every plan: tables `paper/table`, sums of papers `paper` and of `SUITE`."""
    for name, plan in plans.items():
        yield [
            name,
            f"{plan.cells:,}",
            f"{plan.distinct.total():,}",
            shown(plan.work.flops / 1e18),
            *(shown(gpu.hours(plan)) for gpu in gpus),
            shown(plan.bytes_sent / GB),
            f"{plan.memory.device / GIB:,.2f}",
            f"{plan.memory.host / GIB:,.2f}",
        ]


def shown(number: float) -> str:
    """A number in three digits, or all of those before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def too_large(plans: Mapping[str, Plan], gpus: Sequence[Device]) -> Iterator[str]:
    """What is to be said of each GPU whose memory is too small for some tables' largest cells."""
    for gpu in gpus:
        most = gpu.memory or inf
        tables = [n for n, plan in plans.items() if not is_sum(n) and plan.memory.device > most]
        if tables:
            yield f"More memory than one {gpu.title} has: {', '.join(tables)}"


def remarks(plans: Mapping[str, Plan], gpus: Sequence[Device]) -> Iterator[str]:
    """What is to be said below the table: speeds with their sources, and what is not in it."""
    for gpu in gpus:
        yield f"{gpu.title}: {gpu.speed:.1e} FLOP/s, {gpu.source}"
    yield from too_large(plans, gpus)
    for work, cells in plans[SUITE].unplanned.items():
        yield f"not planned, cells: {cells}: {work}"


def is_sum(name: str) -> bool:
    """Whether a line is a sum over tables."""
    return "/" not in name


PAGE = """# Hours

A table's line is what it takes alone, with one seed. Bold lines are sums: they count shared work
once. Hours are FLOPs over the speed of one GPU in bf16, with CUDA graphs. Networks unlike ResNet-18
may take several times as long. GB are those of all runs, both ways. Memory is that of the largest
process, its samples among it, beside the framework: of the GPU, and of its host. Samples above 24
GiB stay in the host's.
"""


def page_at(path: Path) -> str:
    """The page that a section is written into, new if there is none. Raises ResultsError for a file
    that is not UTF-8 text.
    """
    try:
        return path.read_text(encoding="utf-8") if path.exists() else PAGE
    except (OSError, UnicodeDecodeError) as error:
        raise ResultsError(f"cannot read {path}: {error}. Name another file.") from error


def placed(section: str, page: str) -> str:
    """A page with a profile's section in it, in the place of the older one if it has one."""
    heading = section.partition("\n")[0]
    before, _, old = f"{page.rstrip()}\n\n".partition(f"{heading}\n")
    _, rest, after = old.partition("\n## ")
    return f"{before}{section}{rest}{after.rstrip()}".rstrip() + "\n"


def markdown(
    plans: Mapping[str, Plan], asked: Sequence[str], profile: str, gpus: Sequence[Device]
) -> str:
    """A profile's section: the table of hours of the tables and papers that were `asked` for, the
    source of each GPU's speed, and what is not in it.
    """
    command = " ".join(["fedtables plan", *asked, "--profile", profile])
    lines = [headings(gpus), ["---", *["---:"] * (len(headings(gpus)) - 1)]]
    for row in rows(plans, gpus):
        lines.append([f"**{text}**" for text in row] if is_sum(row[0]) else row)
    paragraphs = [
        f"## Profile `{profile}`",
        f"`{command} --markdown FILE` counts this without running a cell.",
        "\n".join(f"| {' | '.join(line)} |" for line in lines),
        "\n".join(f"- {text}." for text in remarks(plans, gpus)),
    ]
    return "\n\n".join(paragraphs) + "\n"
