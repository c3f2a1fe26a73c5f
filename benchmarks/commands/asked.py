"""What a command was asked for: tables, a selection of them, a device, a cluster."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.papers import FIRST
from benchmarks.tables import bandwidth, registry
from benchmarks.tables.spec import PROFILES, PROTOCOLS, Scalar, SpecError, usual_execution
from results.names import near
from results.numbers import MOST_WHOLE, shortened, whole_number

if TYPE_CHECKING:
    from benchmarks.running.ray_executor import Cluster
    from benchmarks.tables.selection import Selection
    from federation.training.execution import Execution


def choice(option: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise SpecError(f"{option} {value}: no such value; {near(value, known)}")
    return value


def table_names(names: list[str], protocol: str = "paper", planned: bool = False) -> list[str]:
    """Table names, with a paper's key standing for all of its tables that the protocol has, but for
    what prepares others. Raises SpecError if unknown.

    With `planned` also those without a runner whose bytes are known from first principles.
    """
    expanded: list[str] = []
    for name in names:
        if name in registry.papers():
            tables = registry.papers()[name].tables
            known = [
                f"{name}/{table.key}"
                for table in tables
                if (table.released or protocol != "released") and not table.preparatory
            ]
            known += [table for table in bandwidth.tables(name) if planned and table not in known]
            expanded += known
            if not known:
                raise SpecError(
                    f"no table of {name} has a runner yet; `python -m benchmarks plan {name}` has"
                    " bytes of some"
                )
        elif planned and bandwidth.accounts(name):
            expanded.append(name)
        else:
            registry.find_table(name)
            expanded.append(name)
    return expanded


def some_tables(tables: list[str] | None) -> list[str]:
    if not tables:
        known = ", ".join(
            name for name, table in registry.all_tables().items() if table is not None
        )
        raise SpecError(
            f"which table? Try first: python -m benchmarks reproduce {FIRST} (about two"
            f" minutes). Reproducible: {known}"
        )
    return tables


def import_plugins(plugins: list[str]) -> None:
    """Import plug-ins. Raises SpecError, with its name, for a file that cannot be imported."""
    for plugin in plugins:
        registry.find_method(Path(plugin).stem.replace("_", "-"), plugins).load()


def make_selection(
    profile: str,
    protocol: str,
    only: list[str],
    methods: str,
    seeds: str,
    device: str,
    threads: int,
    require_real: bool,
    plugins: list[Path],
    precision: str = "",
    compiled: str = "",
    stacked: int = 1,
) -> Selection:
    from benchmarks.tables.selection import Selection, parse_methods, parse_only
    from federation.training.execution import COMPILE, PRECISIONS, Execution

    try:
        numbers = tuple(whole_number(seed.strip(), 0) for seed in seeds.split(","))
    except ValueError:
        numbers = ()
    if not numbers or len(set(numbers)) < len(numbers):
        raise SpecError(
            f"--seeds takes different whole numbers from 0 to {MOST_WHOLE}, separated by commas, as"
            f" in --seeds 0,1,2; got {shortened(seeds)}"
        )
    check_device_name(device)
    import_plugins([str(path) for path in plugins])  # before anything else is wrong
    add, drop = parse_methods(methods)
    usual = usual_execution(profile, device, chosen=bool(precision or compiled))
    try:
        execution = Execution(
            choice("--precision", precision or usual.precision, PRECISIONS),
            choice("--compile", compiled or usual.compile, COMPILE),
            stacked,
        )
    except ValueError as error:
        raise SpecError(f"--stacked {stacked}: {error}") from error
    return Selection(
        profile=choice("--profile", profile, PROFILES),
        protocol=choice("--protocol", protocol, PROTOCOLS),
        seeds=numbers,
        only=parse_only(only),
        add=add,
        drop=drop,
        plugins=tuple(str(path) for path in plugins),
        require_real=require_real,
        device=device,
        threads=threads,
        execution=execution,
    )


def parse_settings(
    names: list[str], pairs: list[str], plugins: tuple[str, ...]
) -> tuple[tuple[str, Scalar], ...]:
    """The settings of `--set`. Raises SpecError if the tables are of several papers."""
    from benchmarks.tables.selection import parse_overrides

    papers = {paper.key: paper for paper, _ in map(registry.find_table, names)}
    if pairs and len(papers) > 1:
        raise SpecError(f"--set takes tables of one paper, these are of {', '.join(papers)}")
    return parse_overrides(pairs, next(iter(papers.values())), plugins)


def check_execution(execution: Execution, device: str) -> None:
    """Raise SpecError for a way of running that the device or the machine does not have."""
    from federation.training.execution import CUDA_GRAPHS

    if execution.precision == "tf32" and not device.startswith("cuda"):
        raise SpecError(
            f"--precision tf32: only CUDA devices have it, this run is on {device}; use fp32 or"
            " bf16"
        )
    if execution.compile in CUDA_GRAPHS and not device.startswith("cuda"):
        raise SpecError(
            f"--compile {execution.compile}: it is for CUDA graphs, this run is on {device}; use"
            " --compile default"
        )
    if execution.compiled and not any(
        shutil.which(name) for name in (os.environ.get("CXX", "g++"), "g++", "clang++")
    ):
        raise SpecError(
            "--compile: torch.compile needs a C++ compiler; install g++ or clang++, or leave"
            " --compile off"
        )


def check_device_name(device: str) -> None:
    """Raise SpecError for what is no device's name."""
    if not re.fullmatch(r"cuda:[0-9]{1,3}", device, re.ASCII):
        choice("--device", device, ("cpu", "cuda", "mps"))


def check_device(device: str) -> None:
    """Raise SpecError if the run's device is not there. Imports torch, so only for runs that need a
    device.
    """
    check_device_name(device)
    if device == "cpu":
        return
    import torch

    if device.startswith("cuda") and not torch.cuda.is_available():
        raise SpecError(
            f"--device {device}: this machine has no usable CUDA device; use --device cpu, or"
            " --profile cpu for less work"
        )
    if ":" in device and int(device.partition(":")[2]) >= torch.cuda.device_count():
        raise SpecError(f"--device {device}: this machine has {torch.cuda.device_count()} of them")
    if device == "mps" and not torch.backends.mps.is_available():
        raise SpecError("--device mps: this machine has no usable MPS device; use --device cpu")


def make_cluster(
    address: str, cpus: float, gpus: float | None, cache: str, device: str, threads: int
) -> Cluster | None:
    """The Ray cluster of the options, or None: then this machine must have the device. Raises
    SpecError.
    """
    if address:
        from benchmarks.running.ray_executor import cluster_of, reach

        cluster = cluster_of(address, cpus, gpus, cache, device, threads)
        reach(cluster)
        return cluster
    if cpus or gpus is not None or cache:
        raise SpecError(
            "--num-cpus, --num-gpus and --ray-cache say how Ray runs cells; add --ray local, or a"
            " cluster's address"
        )
    check_device(device)
    return None
