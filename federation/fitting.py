"""Runs a method: its whole fit is a stage, with the ledger, which cells share."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from fedtables.federation.cache import Stage, StageCache, StageRequest, content_digest
from fedtables.federation.data import Checkpoint, History
from fedtables.federation.federation import Federation
from fedtables.federation.method import Fitted, Method, as_a_run
from fedtables.federation.samples import aside
from fedtables.federation.snapshots import Snapshots
from fedtables.results.sourcecode import source_digest


def fit(federation: Federation, method: Method, name: str = "") -> list[Checkpoint]:
    """What `method.fit` leaves: the global model, or one model per client; computed once per
    configuration. Errors call the method `name`, by its class if empty.

    The channel's ledger and the privacy spent are afterwards as if the method had just run. Raises
    TypeError if `fit` returned something else than a module or checkpoints, AccessError and
    ValueError as `Method.fit`.
    """

    def compute() -> Stage:
        base = federation.stages.cache.path(request)
        if base is not None:
            running = base.with_name(f"{base.name}-running.pt")
            federation.stages.snapshots = Snapshots(running, federation.stages.cache.newer_than)
        run = as_a_run(type(method).fit, name)  # whatever class has it
        checkpoints = as_checkpoints(federation, run(method, federation))
        if federation.stages.snapshots is not None:
            federation.stages.snapshots.discard()
        return _as_stage(checkpoints, federation)

    inputs = {
        **federation.stages.identity(),
        "fitting": source_digest(__name__),
        "method": [
            type(method).__qualname__,
            {name: str(value) for name, value in asdict(method).items()},
        ],
    }
    request = StageRequest("fit", type(method).__name__, inputs, compute, type(method).__module__)
    stage = federation.stages.cache.get(request)
    federation.channel.load_state_dict(stage.info["ledger"])
    if federation.privacy.protection is not None:
        federation.privacy.protection.load_state_dict(stage.info["protection"])
    return _checkpoints(stage, federation.stages.cache)


def as_checkpoints(federation: Federation, fitted: Fitted) -> list[Checkpoint]:
    """`fitted` as a list, with the histories that the suite has measured; a bare module is the
    server's network and has none.

    What was learnt is measured as the networks that the checkpoints name. A history that does not
    end with what they have is of something else, and this alone is kept.
    """
    if isinstance(fitted, torch.nn.Module):
        return [_measured(federation, federation.networks.checkpoint(fitted), {})]
    checkpoints = []
    for checkpoint in listed(fitted):
        local = federation.stages.measured.get(checkpoint.lineage)
        if local is None:
            history = federation.evaluation.history_of(checkpoint.owner)
            checkpoints.append(_measured(federation, checkpoint, history))
        elif content_digest(local.state) == content_digest(checkpoint.state):
            checkpoints.append(local)
        else:
            checkpoints.append(_measured(federation, checkpoint, {}))
    return checkpoints


def _measured(federation: Federation, checkpoint: Checkpoint, history: History) -> Checkpoint:
    """The checkpoint with `history` if that ends with what its network has on the test set, else
    with this alone; values of other names stay.
    """
    tasks = {f"client-{client.index}": client.task for client in federation.clients}
    model = federation.networks.module(checkpoint)
    with aside():
        found = federation.evaluation.test(model, tasks.get(checkpoint.owner))
    # But for what a device's rounding moves.
    ends = [(history.get(metric) or [math.inf])[-1] for metric in found]
    known = all(history.get(metric) for metric in found)
    if not known or not np.allclose(ends, list(found.values()), rtol=1e-3, atol=0, equal_nan=True):
        history = {**history, **{metric: [value] for metric, value in found.items()}}
    return dataclasses.replace(checkpoint, history=history)


def listed(fitted: Checkpoint | Sequence[Checkpoint]) -> list[Checkpoint]:
    """The checkpoints that `fit` returned where that was no module. Raises TypeError for others."""
    checkpoints = [fitted] if isinstance(fitted, Checkpoint) else fitted
    kind = type(fitted).__name__
    if isinstance(checkpoints, Sequence) and checkpoints:
        others = [type(c).__name__ for c in checkpoints if not isinstance(c, Checkpoint)]
        if not others:
            return list(checkpoints)
        kind += f" of {others[0]}"
    raise TypeError(
        f"fit returned {kind}; it must return a module, a checkpoint, or one checkpoint per client"
    )


def _as_stage(checkpoints: Sequence[Checkpoint], federation: Federation) -> Stage:
    tensors: dict[str, torch.Tensor] = {}
    about: list[dict[str, Any]] = []
    for number, checkpoint in enumerate(checkpoints):
        stored = federation.stages.cache.reference(checkpoint.state)
        if stored is None:
            tensors |= {
                f"{number}/state/{name}": tensor for name, tensor in checkpoint.state.items()
            }
        if checkpoint.samples is not None:
            tensors[f"{number}/samples"] = checkpoint.samples
        facts = {
            name: getattr(checkpoint, name)
            for name in ("network", "outputs", "owner", "lineage", "history")
        }
        about.append({"stored": stored, "facts": facts})
    references = [entry["stored"] for entry in about if entry["stored"] is not None]
    ledger = federation.channel.state_dict()
    spent = (
        federation.privacy.protection.state_dict()
        if federation.privacy.protection is not None
        else {}
    )
    return Stage(
        tensors,
        {"checkpoints": about, "ledger": ledger, "references": references, "protection": spent},
    )


def _checkpoints(stage: Stage, stages: StageCache) -> list[Checkpoint]:
    checkpoints = []
    for number, about in enumerate(stage.info["checkpoints"]):
        prefix = f"{number}/state/"
        state: Mapping[str, torch.Tensor]
        if about["stored"] is not None:
            state = stages.referenced(about["stored"])
        else:
            state = {
                name.removeprefix(prefix): stage.tensors[name]
                for name in stage.tensors
                if name.startswith(prefix)
            }
        checkpoints.append(
            Checkpoint(
                state=state, samples=stage.tensors.get(f"{number}/samples"), **about["facts"]
            )
        )
    return checkpoints
