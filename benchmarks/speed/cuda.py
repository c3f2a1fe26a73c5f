"""What a GPU is worth to this suite, in one command: `python -m benchmarks.speed.cuda`.

Three tables, and a file. How many images a second each network of the tables trains on, at
the papers' sizes and in each way of running that there is, with the memory that it takes; those of
most work come first, and what the time is not enough for is said. How long a distillation step of
FedIOD's Table 1 takes, with its 20 clients one after another and together. And for each method of
the league, at smoke, whether two runs on the device are equal to the last digit, and whether
samples, bytes and epsilon are those of a CPU; its metric differs as between two seeds, for orders
are drawn on the device. The file is a calibration that `plan --gpu FILE` reads.

    python -m benchmarks.speed.cuda --output h100.json
    python -m benchmarks plan --profile paper --gpu h100.json

`--device cpu` runs the same on a core, which takes long but at `--profile smoke`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
import torch
from rich.console import Console

from benchmarks.commands.asked import table_names
from benchmarks.running.events import Context
from benchmarks.running.execute import prepare_device, run_cell
from benchmarks.running.gpus import calibration
from benchmarks.running.hours import SUITE
from benchmarks.running.planning import cells_of, make_plans
from benchmarks.running.speed import Speed, flops_per_sample, training_speed
from benchmarks.speed.teachers import PAPER, PAPER_STEP, federation_of, fediod_step
from benchmarks.tables import registry
from benchmarks.tables.cells import Cell
from benchmarks.tables.expansion import expand
from benchmarks.tables.selection import Selection
from federation.costs import Workload
from federation.execution import Execution
from results.files import write_atomic
from results.record import OK, Record
from results.sourcecode import source_libraries

WAYS = {
    "fp32": Execution(),
    "tf32": Execution(precision="tf32"),
    "bf16": Execution(precision="bf16"),
    "bf16, CUDA graphs": Execution(precision="bf16", compile="reduce-overhead"),
    "fp32, replayed": Execution(compile="graphs"),
    "bf16, replayed": Execution(precision="bf16", compile="graphs"),
    "tf32, replayed": Execution(precision="tf32", compile="graphs"),
    "tf32, replayed, 16 side by side": Execution(precision="tf32", compile="graphs", stacked=16),
    "bf16, replayed, 16 side by side": Execution(precision="bf16", compile="graphs", stacked=16),
}
TEACHERS, STEPS, FIRST_STEPS = 20, 10, 3
"""Of FedIOD's step: clients, steps that are timed, and those before."""
STEP_WAYS = {
    "fp32": Execution(),
    "tf32": Execution(precision="tf32"),
    "bf16": Execution(precision="bf16"),
}
LARGE_STEP = 1e12
"""FLOPs of a step that fills a GPU by itself: several such are not measured together."""
ON_CUDA = ("tf32", "CUDA graphs", "replayed")
"""Of ways that no CPU has."""
WORKLOADS = Path(__file__).with_name("workloads.csv")
LEAGUE = "league/mnist"
EQUAL = ("local_samples", "server_samples", "bytes_up", "bytes_down", "epsilon")
"""What a record of any device has."""
MUCH = 0.02
"""Share of all work from which on a network is measured in further batches."""
SHARE = 0.7
"""Of the time, for speeds."""


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
    ways = ways_on(asked.device, WAYS)
    print(f"{device_name(asked.device)}, torch {torch.__version__}, profile {asked.profile}\n")
    print(f"| network | images | batch | {' | '.join(ways)} |")
    print(f"|---|---|---|{'---|' * len(ways)}")
    measured: dict[Workload, dict[str, Speed | str]] = {}
    for load in loads:
        if time.monotonic() - begun > SHARE * 60 * asked.minutes:
            print(f"\nthe time was over with {len(loads) - len(measured)} networks to go")
            break
        measured[load] = {way: speed_of(load, asked.device, how) for way, how in ways.items()}
        shown = " | ".join(map(shown_speed, measured[load].values()))
        size = " x ".join(map(str, load.image_shape))
        print(f"| {load.network} | {size} | {load.batch_size} | {shown} |", flush=True)
        text = calibration(
            device_name(asked.device), source_libraries("benchmarks.running.speed"), measured
        )
        write_atomic(asked.output, text)
    print("\nimages a second, and GiB allocated at most\n")
    if time.monotonic() - begun < SHARE * 60 * asked.minutes:
        changes = PAPER if asked.profile == "paper" else {}
        settings = PAPER_STEP if asked.profile == "paper" else {}
        print("| FedIOD's step | seconds |\n|---|---|")
        for way, how in ways_on(asked.device, STEP_WAYS).items():
            print(f"| {way} | {step_time(asked.device, how, changes, settings)} |", flush=True)
        print()
    print("| method | twice | samples, bytes and epsilon | CPU | here | seconds of both |")
    print("|---|---|---|---|---|---|")
    for cell in league():
        if time.monotonic() - begun > 60 * asked.minutes:
            print("\nthe time was over before every method was checked")
            break
        print(f"| {' | '.join(checked(cell, asked.device))} |", flush=True)


def workloads(tables: Sequence[str], profile: str, console: Console) -> list[Workload]:
    """The networks of these tables, or of all papers', each with the outputs and in the batches of
    most of its work, and in others that have much of all work; those of most work first.
    """
    names = table_names(list(tables or registry.papers()))
    cells = cells_of(names, Selection(profile=profile), console)
    plan = make_plans(cells, console)[SUITE]
    loads: list[Workload] = []
    for load, flops in plan.workloads.most_common():
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


def ways_on(device: str, ways: Mapping[str, Execution]) -> dict[str, Execution]:
    """Those that a device has."""
    return {
        name: execution
        for name, execution in ways.items()
        if device != "cpu" or not any(word in name for word in ON_CUDA)
    }


def step_time(
    device: str,
    execution: Execution,
    changes: Mapping[str, object],
    settings: Mapping[str, object],
    teachers: int = TEACHERS,
) -> str:
    """Seconds of a distillation step of FedIOD, and the GiB that were allocated at most."""
    prepare_device(device, torch.get_num_threads(), execution)
    on_cuda = device.startswith("cuda")
    try:
        step = fediod_step(federation_of(teachers, execution, device, **changes), **settings)
        for _ in range(FIRST_STEPS):
            step()
        if on_cuda:
            torch.cuda.synchronize(device)
            torch.cuda.reset_peak_memory_stats(device)
        started = time.monotonic()
        for _ in range(STEPS):
            step()
        if on_cuda:
            torch.cuda.synchronize(device)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return "out of memory"
    except Exception as error:  # as of speeds
        return type(error).__name__
    seconds = (time.monotonic() - started) / STEPS
    memory = f", {torch.cuda.max_memory_allocated(device) / 2**30:.1f}" if on_cuda else ""
    return f"{seconds:.4f}{memory}"


def shown_speed(speed: Speed | str) -> str:
    if isinstance(speed, str):
        return speed
    memory = f", {speed.peak_bytes / 2**30:.1f}" if speed.peak_bytes else ""
    return f"{speed.samples:,.0f}{memory}"


def league() -> list[Cell]:
    """A cell for each method of the league, at smoke."""
    rows: dict[str, Cell] = {}
    only = {"distribution": "dirichlet-1"}
    for cell in expand(*registry.find_table(LEAGUE), Selection(only=only)):
        rows.setdefault(cell.row, cell)
    return list(rows.values())


def checked(cell: Cell, device: str) -> list[str]:
    """Whether two runs of a cell on `device` are equal, whether they cost what a run on a CPU
    costs, and the metric on both.
    """
    here = replace(cell, device=device)
    found = [fresh(cell), fresh(here), fresh(here)]
    failed = [record.reason for record in found if record.status != OK]
    if failed:
        return [cell.row, "failed", failed[0], "", "", ""]
    on_cpu, first, second = found
    unlike = [n for n in EQUAL if getattr(on_cpu, n) != getattr(first, n)]
    return [
        cell.row,
        "equal" if first.measurements == second.measurements else "differ",
        f"differ: {', '.join(unlike)}" if unlike else "equal",
        *(f"{record.measurements[0].value:.2f}" for record in (on_cpu, first)),
        f"{first.seconds + second.seconds:.1f}",
    ]


def fresh(cell: Cell) -> Record:
    """The cell's record, computed now."""
    with tempfile.TemporaryDirectory() as stages:
        return run_cell(cell, Context(stages))[0]


if __name__ == "__main__":
    main()
