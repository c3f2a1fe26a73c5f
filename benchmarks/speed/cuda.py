"""What a GPU is worth to this suite, in one command: `python -m fedtables.benchmarks.speed.cuda`.

A table, and a file: how many images a second each network of the tables trains on, at the papers'
sizes and in each way of running that there is, with the memory that it takes. Those of most work
come first, and what the time is not enough for is said. The file is a calibration that `plan --gpu
FILE` reads. Whether methods repeat themselves on a GPU, `tests/test_devices.py` says.

    python -m fedtables.benchmarks.speed.cuda --output h100.json
    fedtables plan --profile paper --gpu h100.json

`--device cpu` runs the same on a core, which takes long but at `--profile smoke`.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import torch
from rich.console import Console

from fedtables.benchmarks.commands.asked import table_names
from fedtables.benchmarks.running.follow import Follower
from fedtables.benchmarks.running.hours import SUITE, calibration
from fedtables.benchmarks.running.planning import cells_of, make_plans
from fedtables.benchmarks.running.speed import Speed, flops_per_sample, training_speed
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.selection import Selection
from fedtables.federation.costs import Workload
from fedtables.federation.execution import Execution
from fedtables.results.files import write_atomic
from fedtables.results.sourcecode import source_libraries

WAYS = {
    "fp32": Execution(),
    "tf32": Execution(precision="tf32"),
    "bf16": Execution(precision="bf16"),
    "fp32, replayed": Execution(compile="graphs"),
    "bf16, replayed": Execution(precision="bf16", compile="graphs"),
    "tf32, replayed": Execution(precision="tf32", compile="graphs"),
    "tf32, replayed, 16 side by side": Execution(precision="tf32", compile="graphs", stacked=16),
    "bf16, replayed, 16 side by side": Execution(precision="bf16", compile="graphs", stacked=16),
}
LARGE_STEP = 1e12
"""FLOPs of a step that fills a GPU by itself: several such are not measured together."""
ON_CUDA = ("tf32", "replayed")
"""Of ways that no CPU has."""
WORKLOADS = Path(__file__).with_name("workloads.csv")
MUCH = 0.02
"""Share of all work from which on a network is measured in further batches."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="What a GPU is worth to this suite.")
    parser.add_argument("tables", nargs="*", help="papers or tables; all papers if none is named")
    parser.add_argument("--list", action="store_true", help=f"write {WORKLOADS.name} anew, no more")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--profile", default="paper", help="whose networks are measured")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--output", type=Path, default=Path("calibration.json"))
    asked = parser.parse_args(arguments)
    begun, console = time.monotonic(), Console(stderr=True)
    if asked.list:
        write_workloads(workloads([], "paper", console))
        return
    if asked.tables or asked.profile != "paper":
        loads = workloads(asked.tables, asked.profile, console)
    else:
        loads = read_workloads()
    others = ON_CUDA if asked.device == "cpu" else ()
    ways = {way: how for way, how in WAYS.items() if not any(word in way for word in others)}
    print(f"{device_name(asked.device)}, torch {torch.__version__}, profile {asked.profile}\n")
    print(f"| network | images | batch | {' | '.join(ways)} |")
    print(f"|---|---|---|{'---|' * len(ways)}")
    measured: dict[Workload, dict[str, Speed | str]] = {}
    for load in loads:
        if time.monotonic() - begun > 60 * asked.minutes:
            print(f"\nthe time was over with {len(loads) - len(measured)} networks to go")
            break
        measured[load] = {way: speed_of(load, asked.device, how) for way, how in ways.items()}
        shown = " | ".join(map(shown_speed, measured[load].values()))
        size = " x ".join(map(str, load.image_shape))
        print(f"| {load.network} | {size} | {load.batch_size} | {shown} |", flush=True)
        text = calibration(
            device_name(asked.device),
            source_libraries("fedtables.benchmarks.running.speed"),
            measured,
        )
        write_atomic(asked.output, text)
    print("\nimages a second, and GiB allocated at most\n")


def workloads(tables: Sequence[str], profile: str, console: Console) -> list[Workload]:
    """The networks of these tables, or of all papers', each with the outputs and in the batches of
    most of its work, and in others that have much of all work; those of most work first.
    """
    names = table_names(list(tables or registry.papers()))
    cells = cells_of(names, Selection(profile=profile), console)
    plan = make_plans(cells, console, Follower())[SUITE]
    loads: list[Workload] = []
    for load, flops in plan.networks.most_common():
        network = load.network, load.image_shape
        batches = [own.batch_size for own in loads if (own.network, own.image_shape) == network]
        much = flops > MUCH * plan.work.flops
        if not batches or (much and load.batch_size not in batches):
            loads.append(load)
    return loads


def write_workloads(loads: Sequence[Workload]) -> None:
    rows = [{**asdict(load), "image_shape": "x".join(map(str, load.image_shape))} for load in loads]
    pd.DataFrame(rows).to_csv(WORKLOADS, index=False)


def read_workloads() -> list[Workload]:
    """Those of all papers at the papers' sizes, as `--list` wrote them: planning them takes seven
    minutes, which are not a GPU's to wait for.
    """
    return [
        Workload(
            row.network,
            tuple(map(int, row.image_shape.split("x"))),
            row.outputs,
            row.batch_size,
        )
        for row in pd.read_csv(WORKLOADS).itertuples()
    ]


def device_name(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else "CPU core"


def speed_of(load: Workload, device: str, execution: Execution) -> Speed | str:
    """The speed, or in a word why there is none."""
    try:
        step = load.batch_size * flops_per_sample(load, load.image_shape[1:])
        if execution.stacked > 1 and step > LARGE_STEP:
            return "large"
        return training_speed(load, device, execution)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return "out of memory"
    except Exception as error:  # a way that a network does not admit is a finding, not the end
        return type(error).__name__


def shown_speed(speed: Speed | str) -> str:
    if isinstance(speed, str):
        return speed
    memory = f", {speed.peak_bytes / 2**30:.1f}" if speed.peak_bytes else ""
    return f"{speed.samples:,.0f}{memory}"


if __name__ == "__main__":
    main()
