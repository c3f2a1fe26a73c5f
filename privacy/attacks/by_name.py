"""An attack on what a client shares, by its name: DLG, iDLG or Inverting Gradients."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from privacy.attacks.dlg import deep_leakage
from privacy.attacks.idlg import improved_deep_leakage, leaked_label
from privacy.attacks.inverting import invert_gradients
from privacy.attacks.matching import ReconstructedImages
from privacy.attacks.threat import ThreatModel, share

Kind = Literal["dlg", "idlg", "inverting"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ITERATIONS = {"dlg": 300, "idlg": 300, "inverting": 4800}
"""By default: those of each attack's released code."""


@dataclass(frozen=True)
class Attack:
    """An attack, what its victim shares, and the work that is put into it."""

    kind: Kind = "dlg"
    """`dlg`, `idlg` or `inverting` (Inverting Gradients)."""
    threat: ThreatModel = field(default_factory=ThreatModel)
    """What the client shares, and how it came about."""
    iterations: int = 300
    """Of the optimiser. DLG's released code: 300 of L-BFGS; Inverting Gradients': 4,800 of Adam."""
    restarts: int = 1
    """Starts at most; the next one follows only where none succeeded."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown attack {self.kind!r}; known: {', '.join(KINDS)}")
        if self.iterations < 1 or self.restarts < 1:
            raise ValueError(
                f"iterations and restarts must be at least 1, not {self.iterations} and"
                f" {self.restarts}"
            )


def double(model: nn.Module) -> nn.Module:
    """A copy of `model` in float64, in which attacks compute; in float32 on MPS, which has no
    double precision.
    """
    duplicate = copy.deepcopy(model)
    return duplicate if next(duplicate.parameters()).device.type == "mps" else duplicate.double()


def reconstruct(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    classes: int,
    attack: Attack,
    *,
    bounds: tuple[Tensor, Tensor],
    generator: torch.Generator,
) -> ReconstructedImages:
    """Attack what a client shares of `inputs` (n, c, h, w), as `model` takes them, and their
    `targets` (n,).

    The client computes its message in the precision of `model`; the attacker has weights and
    message, and computes in float64. DLG finds the labels, iDLG reads them off; for Inverting
    Gradients they are read off where that can be done, else known, as its authors assume.
    `bounds` (c, 1, 1) are black and white. Starts are drawn from `generator`. Raises ValueError
    for what an attack cannot do, FloatingPointError if no start had a finite distance.
    """
    shared = share(model, inputs, targets, attack.threat)
    attacked, shape = double(model), (inputs.shape[1], inputs.shape[2], inputs.shape[3])
    effort: dict[str, Any] = {
        "generator": generator,
        "iterations": attack.iterations,
        "restarts": attack.restarts,
    }
    if attack.kind != "inverting":
        return {"dlg": deep_leakage, "idlg": improved_deep_leakage}[attack.kind](
            attacked, shared, shape, classes, attack.threat, **effort
        )
    if attack.threat.images == 1 and attack.threat.local_steps == 1:
        label = leaked_label(shared, classes, attack.threat)
        targets = torch.tensor([label], device=targets.device)
    return invert_gradients(
        attacked, shared, shape, targets, classes, attack.threat, bounds=bounds, **effort
    )
