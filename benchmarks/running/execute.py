"""Runs one cell: data, partition, federation, method, evaluation, record."""

import contextlib
import gc
import os
import platform
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from fedtables.benchmarks.running.budget import length
from fedtables.benchmarks.running.events import (
    DEVICE_FAULT,
    OUT_OF_MEMORY,
    Context,
    Event,
    record_of,
)
from fedtables.benchmarks.running.machine import peak_memory_mb
from fedtables.benchmarks.scenarios.assembly import build_federation, make_method
from fedtables.benchmarks.scenarios.configuration import (
    Configuration,
    EvaluationSettings,
    read_section,
)
from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.cells import Cell
from fedtables.benchmarks.tables.measure import Config, FittedCell, Measure, Taken
from fedtables.federation.cache import StageCache
from fedtables.federation.channel import Channel
from fedtables.federation.data import Checkpoint
from fedtables.federation.events import StageEvent
from fedtables.federation.execution import Execution
from fedtables.federation.federation import Federation, show_spent
from fedtables.federation.fitting import fit
from fedtables.federation.parts import Run
from fedtables.federation.samples import LOCAL, SERVER, counted
from fedtables.federation.seeds import Seeds
from fedtables.federation.surroundings import as_now, put_back
from fedtables.federation.watching import Point, watched
from fedtables.metrics.settling import has_settled
from fedtables.privacy.plan import RELEASED, TRUST
from fedtables.results.record import FAILED, Record
from fedtables.results.sourcecode import file_source_digest

RESTRICTING = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MKL_CBWR")
"""Variables that keep PyTorch, oneDNN or MKL from the instructions that the processor has."""


def prepare_device(device: str, threads: int, execution: Execution) -> None:
    """Threads, determinism and the precision of products for this process."""
    torch.set_num_threads(threads)
    tf32 = execution.tf32_on(device)
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32
    if device.startswith("cuda"):
        os.environ.setdefault(
            "CUBLAS_WORKSPACE_CONFIG", ":4096:8"
        )  # cuBLAS looks when it starts, and promises nothing without
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
        torch.use_deterministic_algorithms(True, warn_only=True)
        # Else every new tensor is filled, by a kernel of its own, for programs that read what they
        # have not written.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


@put_back()
def run_cell(
    cell: Cell,
    context: Context,
    send: Callable[[Event], None] = lambda event: None,
    position: int = 0,
) -> tuple[Record, str]:
    """Run a cell. Never raises for what goes wrong inside: the record says `failed` and why; also
    the traceback. Flags, generators and environment variables are afterwards as before.

    What happens until it is done is sent, as of cell number `position`.
    """

    def on_stage(stage: StageEvent) -> None:
        send(Event("stage", position, stage=stage))

    def on_point(point: Point) -> None:
        send(Event("point", position, point=point))

    started = time.monotonic()
    owner = ".".join(file_source_digest(Path(path)) for path in cell.plugins)
    stages = StageCache(Path(context.stages), on_stage, context.newer_than, cell.device, owner)
    channel = Channel()
    trace = ""
    try:
        prepare_device(cell.device, cell.threads, cell.execution)
        point = on_point if context.watched else None
        with registry.used(cell.plugins), watched(point), as_now():
            taken, entries = _measured(cell, stages, channel, _progress(send, position))
        outcome: dict[str, Any] = {**vars(taken), **entries}
    except (Exception, SystemExit) as error:
        trace = traceback.format_exc()
        ends = "the method ends its process: " if isinstance(error, SystemExit) else ""
        reason = f"{ends}{type(error).__name__}: {error}".splitlines()[0][:500]
        if _lacks_memory(error):
            hint = (
                "try fewer --jobs or --stacked, of which each needs memory of its own, or another"
                " --compile than graphs, which keep what a step needs"
            )
            reason = f"{OUT_OF_MEMORY}: {hint} ({reason})"
        elif _is_of_cuda(error):
            reason = f"{DEVICE_FAULT}: {reason}"
        outcome = {"status": FAILED, "reason": reason}
    if cell.device.startswith("cuda"):  # workers beside this one need what it would keep
        gc.collect()
        with contextlib.suppress(RuntimeError):  # after some errors a device does nothing more
            torch.cuda.empty_cache()
    computed = [event for event in stages.events if event.computed]
    record = record_of(
        cell,
        **outcome,
        seeds=asdict(Seeds.moving(cell.seed_axes, cell.seed)),
        machine=machine(cell, context),
        bytes_up=channel.total("up"),
        bytes_down=channel.total("down"),
        bytes_by_kind=channel.by_kind(),
        finished=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        seconds=round(time.monotonic() - started, 3),
        stages={"computed": len(computed), "reused": len(stages.events) - len(computed)},
        peak_memory_mb=peak_memory_mb(),
    )
    return record, trace


def _progress(send: Callable[[Event], None], position: int) -> Callable[[str, float], None]:
    """Sends how far a cell is, at most five times a second."""
    last = 0.0

    def progress(text: str, share: float) -> None:
        nonlocal last
        if time.monotonic() - last > 0.2:
            last = time.monotonic()
            send(Event("progress", position, text=text, share=share))

    return progress


def _lacks_memory(error: BaseException) -> bool:
    """Whether a device's lack of memory is behind an error: torch's own, or of CUDA or a library,
    which have no type for it.
    """
    words = ("CUDA error: out of memory", "STATUS_ALLOC_FAILED")
    return _behind(error, torch.OutOfMemoryError, words)


def _is_of_cuda(error: BaseException) -> bool:
    """Whether CUDA or a library of it is behind an error. The process can then do no more there."""
    words = ("CUDA error", "CUDNN_STATUS_", "CUBLAS_STATUS_")
    return _behind(error, torch.AcceleratorError, words)


def _behind(error: BaseException | None, kind: type[Exception], words: Sequence[str]) -> bool:
    """Whether an error, or one that it came from, is of this kind or says one of these words."""
    while error is not None:
        if isinstance(error, kind) or any(word in str(error) for word in words):
            return True
        error = error.__cause__ or error.__context__
    return False


def _measured(
    cell: Cell, stages: StageCache, channel: Channel, progress: Callable[[str, float], None]
) -> tuple[Taken, dict[str, Any]]:
    """What the cell's measure takes from its run, and the record's entries on the method, on the
    samples seen by its fit, on the test set and the privacy spent.
    """
    data = DataSets(cell.data, cell.public, cell.private, cell.others)
    of_budget, seeds = length(cell, data), Seeds.moving(cell.seed_axes, cell.seed)
    config = {**dict(cell.config), **of_budget}
    method = make_method(registry.find_method(cell.method), config)

    def build(run: Run, other: Config) -> Federation:
        configuration = Configuration.parse({**config, **other})
        return build_federation(configuration, data, type(method), run)

    federation = build(Run(seeds, stages, cell.device, channel, progress, cell.execution), {})
    fitted: tuple[Checkpoint, ...] = ()
    seen, seconds = {LOCAL: 0, SERVER: 0}, dict[str, float]()
    measure = registry.find_measure(cell.measure)
    measure.check(config)
    if measure.needs_fit(config):
        with counted() as samples:
            fitted = tuple(fit(federation, method, cell.method))
        seen, seconds = samples.total(), samples.seconds()
        if channel.round == 0 and any(e.kind == "fit" and e.computed for e in stages.events):
            show_spent(1, federation)  # rounds show it themselves
    run = FittedCell(
        config=config,
        metrics=cell.metrics,
        unit=cell.unit,
        role=cell.role,
        name=cell.method,
        sources=cell.sources,
        seeds=seeds,
        federation=federation,
        method=method,
        fitted=fitted,
        on_meta=lambda other: build(Run(seeds, StageCache(None, device="meta"), "meta"), other),
        other_method=lambda name: make_method(registry.find_method(name), config),
    )
    taken = measure.take(run)
    entries = {
        "length": of_budget,
        "lineage": registry.lineage(cell.method),
        "local_samples": seen[LOCAL],
        "server_samples": seen[SERVER],
        "fit_seconds": {place: round(passed, 3) for place, passed in seconds.items()},
    }
    if fitted:
        entries |= {
            "settled": settled(run, measure),
            "test_samples": len(federation.evaluation.test_set.targets),
            **privacy_spent(federation),
        }
    return taken, entries


def settled(run: FittedCell, measure: Measure) -> dict[str, bool]:
    """For each of the table's metrics that the run's models have a history of: whether it had
    settled in all of them at the epoch that is looked at.
    """
    how = read_section(run.config, "evaluation", EvaluationSettings)
    found = {}
    for metric in run.metrics:
        ends = [
            has_settled(metric, history[: how.epochs(len(history))], how.settled)
            for history in measure.histories(run, metric)
        ]
        if ends and None not in ends:
            found[metric] = all(ends)
    return found


def privacy_spent(federation: Federation) -> dict[str, Any]:
    """The record's `epsilon`, `delta` and `privacy`; nothing for a run that is not private."""
    protection = federation.privacy.protection
    if protection is None:
        return {}
    plan = protection.plan
    about = {"mechanism": plan.mechanism, "notes": list(protection.notes), **protection.details}
    if plan.mechanism == RELEASED:
        return {"privacy": {**about, "noise_multiplier": plan.noise_multiplier}}
    about |= {
        **protection.accountant.to_json(),
        "unit": protection.unit,
        "trust": TRUST[plan.mechanism],
        "public": "clients' sizes",
    }
    return {"epsilon": protection.accountant.epsilon(), "delta": plan.delta, "privacy": about}


def machine(cell: Cell, context: Context) -> dict[str, Any]:
    """Where and with what the cell ran."""
    cuda = cell.device.startswith("cuda")
    name = processor_facts().get("model name") or platform.processor() or platform.machine()
    return {
        "device": cell.device,
        "hardware": torch.cuda.get_device_name(cell.device) if cuda else name,
        "cores": os.cpu_count(),
        "threads": cell.threads,
        "kernels": "" if cuda else kernels(),
        **asdict(cell.execution),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": cell.libraries,
        "commit": context.commit,
        "dirty": context.dirty,
    }


def kernels() -> str:
    """What decides how sums are rounded, beside the threads: the instructions that torch's CPU
    kernels were chosen for, the processor's model, since clouds give many models one name, and
    every variable that restricts the choice.
    """
    processor = processor_facts()
    model = [f"{name} {processor[name]}" for name in ("cpu family", "model") if name in processor]
    restricted = [f"{name}={os.environ[name]}" for name in RESTRICTING if name in os.environ]
    return ", ".join([torch.backends.cpu.get_cpu_capability(), *model, *restricted])


def processor_facts() -> dict[str, str]:
    """What Linux tells of the first processor, by name; nothing elsewhere."""
    try:
        first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
