"""Runs one cell: data, partition, federation, method, evaluation, record."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measures import (
    attention,
    exchange,
    findings,
    leakage,
    segmentations,
    transferability,
)
from benchmarks.measures.traffic import measure_traffic
from benchmarks.running.events import Context
from benchmarks.scenarios import sites
from benchmarks.scenarios.scenario import build_federation
from benchmarks.tables import registry
from benchmarks.tables.cells import Cell
from benchmarks.tables.spec import Scalar
from federation.channel import Channel
from federation.checkpoint import Checkpoint
from federation.events import StageEvent
from federation.execution import Execution
from federation.federation import Federation
from federation.fitting import fit
from federation.method import Method
from federation.seeds import Seeds
from federation.stages import StageCache
from federation.tasks import MultiLabel
from federation.training import predict, unit_range
from methods.fedsa import FedSA
from metrics.classification import median_of_last
from metrics.inception import adapted_inception_score, inception_score
from metrics.names import LOWER, facts
from privacy.plan import RELEASED, TRUST
from results.record import FAILED, Measurement, Record

RECORDED = (
    "torch",
    "torchvision",
    "timm",
    "numpy",
    "scipy",
    "scikit-learn",
    "scikit-image",
    "opacus",
    "monai",
    "torchmetrics",
    "safetensors",
    "pillow",
    "matplotlib",
)
"""Packages whose versions a record names: those that compute, and those that read, store and
draw."""
OF_ONE_TASK = frozenset({"accuracy", "miou"})
"""Metrics that one kind of task has and others lack: classes of images, and of pixels."""


def make_method(entry: registry.MethodEntry, config: Mapping[str, Scalar]) -> Method:
    """The method with the fields that the configuration sets as `<name>.<field>`."""
    prefix = f"{entry.name}."
    return entry.load()(
        **{n.removeprefix(prefix): v for n, v in config.items() if n.startswith(prefix)}
    )


def prepare_device(device: str, threads: int, execution: Execution) -> None:
    """Threads, determinism and the precision of products for this process."""
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision("high" if execution.precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = execution.precision == "tf32"
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


def run_cell(
    cell: Cell,
    context: Context,
    progress: Callable[[str, float], None] = lambda text, share: None,
    on_stage: Callable[[StageEvent], None] = lambda event: None,
    make_cache: Callable[..., StageCache] = StageCache,
) -> tuple[Record, str]:
    """Run a cell. Never raises for what goes wrong inside: the record says `failed` and why; also
    the traceback.

    `make_cache` takes the arguments of StageCache.
    """
    started = time.monotonic()
    stages = make_cache(Path(context.stages), on_stage, context.newer_than, cell.device)
    channel = Channel()
    common: dict[str, Any] = {
        "table": cell.table,
        "row": cell.row,
        "column": cell.column,
        "seed": cell.seed,
        "seeds": Seeds.moving(cell.seed_axes, cell.seed).to_json(),
        "profile": cell.profile,
        "protocol": cell.protocol,
        "cell": cell.key,
        "code": cell.code,
        "config": dict(cell.config),
        "data": asdict(cell.data),
        "public": asdict(cell.public) if cell.public is not None else {},
        "private": asdict(cell.private) if cell.private is not None else {},
        "others": tuple(asdict(other) for other in cell.others),
        "machine": machine(cell, context),
    }
    trace = ""
    try:
        prepare_device(cell.device, cell.threads, cell.execution)
        measurements, statistic, spent = _measure(cell, stages, channel, progress)
        outcome: dict[str, Any] = {"measurements": measurements, "statistic": statistic, **spent}
    except Exception as error:
        trace = traceback.format_exc()
        outcome = {
            "status": FAILED,
            "reason": f"{type(error).__name__}: {error}".splitlines()[0][:500],
        }
    computed = [event for event in stages.events if event.computed]
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    record = Record(
        **common,
        **outcome,
        bytes_up=channel.total("up"),
        bytes_down=channel.total("down"),
        bytes_by_kind=channel.by_kind(),
        finished=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        seconds=round(time.monotonic() - started, 3),
        stages={"computed": len(computed), "reused": len(stages.events) - len(computed)},
        peak_memory_mb=round(usage / (2**20 if sys.platform == "darwin" else 2**10), 1),
    )
    return record, trace


def _measure(
    cell: Cell, stages: StageCache, channel: Channel, progress: Callable[[str, float], None]
) -> tuple[tuple[Measurement, ...], str, dict[str, Any]]:
    """The cell's numbers, how they were made from the run, and the record's entries on the privacy
    spent and for a picture.
    """
    config = dict(cell.config)
    entry = registry.find_method(cell.method, cell.plugins)
    method = make_method(entry, config)
    seeds = Seeds.moving(cell.seed_axes, cell.seed)
    federation = build_federation(
        config,
        cell.data,
        seeds,
        stages,
        type(method),
        device=cell.device,
        channel=channel,
        progress=progress,
        public=cell.public,
        private=cell.private,
        others=cell.others,
        execution=cell.execution,
    )
    if cell.measure == "classes":
        found = Measurement(
            cell.metrics[0], classes_of_slot(federation, str(config["partition.slot"]))
        )
        return (found,), "the partition itself", {}
    if cell.measure == "leakage" and not leakage.needs_fit(config):
        return *leakage.measure(config, federation, method, None), {}
    fitted = fit(federation, method)
    declared = (
        method.sends
        if federation.privacy.protection is None
        else federation.privacy.protection.kinds
    )
    undeclared = {t.kind for t in channel.ledger if t.direction == "up"} - declared
    if undeclared:
        where = "sends" if federation.privacy.protection is None else "protected"
        raise ValueError(
            f"{cell.method} sends {', '.join(sorted(undeclared))} without declaring it in `{where}`"
        )
    if cell.measure == "segmentations":
        measurements, how, arrays = segmentations.measure(federation, fitted)
        return measurements, how, {**privacy_spent(federation), "arrays": arrays}
    if cell.measure == "attention":
        measurements, how, arrays = attention.measure(
            federation, fitted, 100 if cell.unit == "percent" else 1
        )
        return measurements, how, {**privacy_spent(federation), "arrays": arrays}
    if cell.measure == "exchange" and not method.oracle:
        measurements, how = measure_fitted(cell, federation, method, fitted)
        followed = build_federation(
            config,
            cell.data,
            seeds,
            StageCache(None, device="meta"),
            type(method),
            device="meta",
            public=cell.public,
            private=cell.private,
            others=cell.others,
        )
        exchanged = exchange.properties(channel.ledger, exchange.uses_public(method, followed))
        return (*measurements, *exchange.measurements(exchanged)), how, privacy_spent(federation)
    return *measure_fitted(cell, federation, method, fitted), privacy_spent(federation)


def measure_fitted(
    cell: Cell, federation: Federation, method: Method, fitted: Sequence[Checkpoint]
) -> tuple[tuple[Measurement, ...], str]:
    """The cell's numbers from what the method left, and how they were made."""
    config = dict(cell.config)
    if cell.measure == "samples":
        return measure_samples(cell, federation, fitted)
    if cell.measure == "bandwidth":
        metric = cell.metrics[0]
        scale = 100 if cell.unit == "percent" and facts(metric).share else 1
        return measure_traffic(
            metric, scale, fitted, federation.channel.ledger, getattr(method, "rounds", None)
        )
    if cell.measure == "leakage":
        return leakage.measure(config, federation, method, fitted[0].samples)
    if cell.measure == "findings":
        tested = next(
            source for source in cell.sources if source.asked == config["evaluation.test"]
        )
        seeds = Seeds.moving(cell.seed_axes, cell.seed)
        test, labelled = sites.test_set(config, tested, seeds, cell.device)
        scale = 100 if cell.unit == "percent" else 1
        return findings.measure(
            federation, fitted, test, labelled, findings.overlapping(config), tested.label, scale
        )
    if cell.measure == "selection":
        return transferability.selections(fitted, config)
    if cell.measure == "transferability":
        selecting = make_method(registry.find_method("fedsa"), config)
        assert isinstance(selecting, FedSA)
        scale = 100 if cell.unit == "percent" else 1
        return transferability.measure(
            federation, selecting, int(config["transfer.teacher"]), fitted, scale
        )
    counted = [c for c in fitted if not cell.role or c.owner in owners(federation, cell.role)]
    found: list[Measurement] = []
    others = OF_ONE_TASK - set(
        federation.task.metric_names
    )  # a table may have columns of several tasks
    for metric in [metric for metric in cell.metrics if metric not in others]:
        histories = [checkpoint.history[metric] for checkpoint in counted]
        scale = 100 if cell.unit == "percent" and facts(metric).share else 1
        if cell.measure == "curve":
            means = np.mean(histories, axis=0) * scale
            found += [Measurement(metric, float(v), f"epoch={e}") for e, v in enumerate(means, 1)]
        else:
            values = [statistic_of(metric, history, config) for history in histories]
            found.append(Measurement(metric, float(np.mean(values)) * scale))
    how = "epochs" if cell.measure == "curve" else statistic_name(histories, config)
    text = [f"{how}, mean over models" if len(counted) > 1 else how]
    if isinstance(federation.task, MultiLabel):
        text += findings.told(
            federation.evaluation.test_set, federation.task.findings, federation.task.findings
        )
    return tuple(found), "; ".join(text)


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
        "trust": TRUST[plan.mechanism],
        "public": "clients' sizes",
    }
    return {"epsilon": protection.accountant.epsilon(), "delta": plan.delta, "privacy": about}


def owners(federation: Federation, role: str) -> set[str]:
    """Checkpoint owners whose network is of the kind `role`."""
    return {f"client-{client.index}" for client in federation.clients if client.role == role}


def statistic_of(metric: str, history: Sequence[float], config: Mapping[str, Scalar]) -> float:
    """A run's number from its history: the median of the last epochs, or what the released code
    reports, the best.

    With `evaluation.at`, a share of the epochs, what the run had reached there.
    """
    history = history[: max(1, round(float(config.get("evaluation.at", 1.0)) * len(history)))]
    if config.get("evaluation.statistic") == "best":
        return min(history) if facts(metric).better == LOWER else max(history)
    return median_of_last(history, int(config["evaluation.last_epochs"]))


def statistic_name(histories: Sequence[Sequence[float]], config: Mapping[str, Scalar]) -> str:
    """The statistic in words."""
    length = min(len(history) for history in histories)
    share = float(config.get("evaluation.at", 1.0))
    if share < 1:
        length = max(1, round(share * length))
    if config.get("evaluation.statistic") == "best":
        return (
            f"best of {length} epochs or rounds by test accuracy (optimistic, as the authors' code"
            " reports it)"
        )
    last = min(int(config["evaluation.last_epochs"]), length)
    return (
        f"median of the last {last} epochs"
        if last > 1
        else f"after the last of {length} epochs or rounds"
    )


def measure_samples(
    cell: Cell, federation: Federation, fitted: Sequence[Checkpoint]
) -> tuple[tuple[Measurement, ...], str]:
    """Inception Scores of the images that the method generated: by an ImageNet network, and by
    every local model.
    """
    from models import extractors  # imports much that other cells have no use for

    images = fitted[0].samples
    if images is None:
        raise ValueError(
            f"{cell.method} generated no images to measure; set {cell.method}.samples above 0"
        )
    extractor = extractors.load(str(dict(cell.config)["evaluation.extractor"]), cell.device)
    score, _ = inception_score(extractor.probabilities(unit_range(images)))
    local = [
        federation.networks.module(c)
        for c, client in zip(federation.local_models(), federation.clients, strict=True)
        if client.size
    ]
    adapted = adapted_inception_score(
        [predict(model, images, normalise=federation.normalise).softmax(dim=1) for model in local]
    )
    networks = ", ".join(sorted({client.network for client in federation.clients}))
    how = (
        f"{len(images):,} images in one split; plain score by {extractor.title}, adapted by"
        f" {len(local)} local models ({networks})"
    )
    return (
        Measurement("inception-score", score),
        Measurement("adapted-inception-score", adapted),
    ), how


def classes_of_slot(federation: Federation, slot: str) -> str:
    """Classes that the clients of a slot `5n+k` really hold, as DLAD's Table I prints them.

    Classes that every client holds come first, as a range where there are at least five in a row;
    then its own.
    """
    held = [{c for c, n in enumerate(client.label_counts) if n} for client in federation.clients]
    position = int(slot.partition("+")[2]) - 1
    group = {frozenset(classes) for classes in held[position::5]}
    if len(group) != 1:
        return "differs between clients of the slot"
    own = set(group.pop())
    shared = sorted(set.intersection(*held))
    if len(shared) >= 5 and shared == list(range(shared[0], shared[-1] + 1)):
        return ",".join([f"{shared[0]}-{shared[-1]}", *(str(c) for c in sorted(own - set(shared)))])
    return ",".join(str(c) for c in sorted(own))


def machine(cell: Cell, context: Context) -> dict[str, Any]:
    """Where and with what the cell ran."""
    device = torch.cuda.get_device_name() if cell.device.startswith("cuda") else processor_name()
    return {
        "device": cell.device,
        "hardware": device,
        "cores": os.cpu_count(),
        "threads": cell.threads,
        **cell.execution.to_json(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": installed_versions(),
        "commit": context.commit,
        "dirty": context.dirty,
    }


def installed_versions() -> dict[str, str]:
    """Versions of the packages in `RECORDED` that are installed."""
    found = {}
    for name in RECORDED:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def processor_name() -> str:
    """The processor's own name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(
            line.partition(":")[2].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
