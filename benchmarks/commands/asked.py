"""What a command was asked for, checked against what there is: tables, plug-ins, a device, Ray."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedtables.benchmarks.papers import FIRST
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.readers import check_device_name
from fedtables.benchmarks.tables.request import Request
from fedtables.benchmarks.tables.spec import SpecError

if TYPE_CHECKING:
    from fedtables.benchmarks.running.ray_executor import Cluster
    from fedtables.benchmarks.tables.selection import Selection
    from fedtables.federation.execution import Execution


def table_names(names: Sequence[str], protocol: str = "paper") -> list[str]:
    """Table names, with a paper's key standing for all of its tables that the protocol has, but for
    what prepares others. Raises SpecError if unknown.
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
            expanded += known
            if not known:
                raise SpecError(f"no table of {name} can be regenerated yet")
        else:
            registry.find_table(name)
            expanded.append(name)
    return expanded


def some_tables(tables: Sequence[str]) -> Sequence[str]:
    """The tables themselves. Raises SpecError if there is none."""
    if not tables:
        raise SpecError(
            f"name a table. A first one: fedtables reproduce {FIRST} (about two"
            f" minutes). There are: {', '.join(registry.all_tables())}"
        )
    return tables


def selected(request: Request, tables: Sequence[str]) -> Selection:
    """What of `tables` a request asks for. Raises SpecError, also if it has settings and the tables
    are of several papers.
    """
    from fedtables.benchmarks.tables.selection import Selection, parse_methods, typed_settings

    add, drop = parse_methods(request.methods)
    settings = request.settings or {}
    papers = {paper.key: paper for paper, _ in map(registry.find_table, tables)}
    if settings and len(papers) > 1:
        raise SpecError(f"--set works on tables of one paper; these belong to {', '.join(papers)}")
    paper = next(iter(papers.values()), None)
    overrides = typed_settings(settings, paper) if paper and settings else ()
    return Selection(
        profile=request.profile,
        protocol=request.protocol,
        seeds=request.seeds,
        only=request.only,
        add=add,
        drop=tuple(map(registry.current, drop)),
        require_real=request.require_real,
        device=request.run_device,
        threads=request.threads,
        execution=request.execution,
        overrides=overrides,
        may_lose=request.replace,
    )


def check_execution(execution: Execution, device: str) -> None:
    """Raise SpecError for a way of running that the device or the machine does not have."""
    if execution.precision == "tf32" and not device.startswith("cuda"):
        raise SpecError(
            f"--precision tf32 needs a CUDA device, and this run is on {device}; use fp32 or bf16"
        )
    if execution.compile == "graphs" and not device.startswith("cuda"):
        raise SpecError(
            f"--compile graphs needs a CUDA device, and this run is on {device}; use --compile"
            " default"
        )
    if execution.compiled and not any(
        shutil.which(name) for name in (os.environ.get("CXX", "g++"), "g++", "clang++")
    ):
        raise SpecError(
            "--compile default needs a C++ compiler; install g++ or clang++, or leave --compile off"
        )


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
            f"--device {device}: this machine has no usable CUDA device ({_why_no_cuda()}); use"
            " --device cpu, or --profile cpu for less work"
        )
    if ":" in device and int(device.partition(":")[2]) >= torch.cuda.device_count():
        raise SpecError(
            f"--device {device}: this machine has {torch.cuda.device_count()} CUDA devices"
        )
    if device == "mps" and not torch.backends.mps.is_available():
        raise SpecError("--device mps: this machine has no usable MPS device; use --device cpu")


DRIVER = Path("/proc/driver/nvidia/version")
"""Where Linux tells of NVIDIA's driver."""


def _why_no_cuda() -> str:
    """What may keep PyTorch from CUDA: a variable, its build, or the driver."""
    import torch

    here = f"PyTorch {torch.__version__}"
    if not os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip():
        return "CUDA_VISIBLE_DEVICES hides all"
    if torch.version.cuda is None:
        return f"{here} is a build without CUDA"
    try:
        found = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)", DRIVER.read_text())
    except OSError:
        return f"{here} finds no NVIDIA driver"
    driver = found[1] if found else "of an unknown version"
    return f"{here} needs a driver for CUDA {torch.version.cuda}, and driver {driver} is installed"


def make_cluster(request: Request) -> Cluster | None:
    """The Ray cluster that a request asks for, or None: then this machine must have the device.
    Raises SpecError.
    """
    if request.ray:
        from fedtables.benchmarks.running.ray_executor import cluster_of, reach

        cluster = cluster_of(request)
        reach(cluster)
        return cluster
    if request.num_cpus or request.num_gpus is not None:
        raise SpecError(
            "--num-cpus and --num-gpus say how Ray runs cells; add --ray local, or a cluster's"
            " address"
        )
    check_device(request.run_device)
    return None
