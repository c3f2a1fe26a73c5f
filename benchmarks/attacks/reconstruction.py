"""Attacks that reconstruct a client's images from what it shares: the message, the attack, and how
near it comes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from federation.cache import Stage, StageCache, StageRequest, content_digest
from federation.training.inputs import Normalisation, unit_range
from metrics.images import match
from models.catalogue import network_digest
from privacy.attacks.dlg import deep_leakage
from privacy.attacks.idlg import improved_deep_leakage, leaked_label
from privacy.attacks.inverting import invert_gradients
from privacy.attacks.threat import ThreatModel, share

Kind = Literal["dlg", "idlg", "inverting"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ITERATIONS = {"dlg": 300, "idlg": 300, "inverting": 4800}
"""By default: those of each attack's released code."""
RECOVERED = 30.0
"""PSNR (dB) above which an image counts as recovered: a mean squared error below a thousandth of
the squared range."""


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


@dataclass(frozen=True)
class Recovered:
    """What an attack made of one message, in the order of the private images that it resembles
    most.
    """

    images: Tensor
    """Shape (n, c, h, w), float32 in [0, 1]."""
    labels: Tensor
    """Classes (n,)."""
    distance: float
    """`Reconstruction.distance`."""
    starts: int
    """Starts that were tried."""


def to_units(images: Tensor, normalise: Normalisation) -> Tensor:
    """Images (n, c, h, w) as a network takes them, back in [0, 1]; what lies outside is clamped."""
    mean, std = (
        torch.tensor(values).to(images)[:, None, None] for values in (normalise.mean, normalise.std)
    )
    return (images * std + mean).clamp(0, 1)


def double(model: nn.Module) -> nn.Module:
    """A copy of `model` in float64, in which attacks compute; in float32 on MPS, which has no
    double precision.
    """
    duplicate = copy.deepcopy(model)
    return duplicate if next(duplicate.parameters()).device.type == "mps" else duplicate.double()


def attack_message(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    classes: int,
    attack: Attack,
    normalise: Normalisation,
    generator: torch.Generator,
) -> Recovered:
    """Attack what a client shares of uint8 `images` (n, c, h, w) and their `targets` (n,), n being
    that of the threat model.

    The client computes its message in the precision of `model`, as in training; the attacker has
    weights and message, and computes in float64. DLG finds the labels, iDLG reads them off; for
    Inverting Gradients they are read off where that can be done, else known, as its authors assume.
    Starts are drawn from `generator`. Raises ValueError for what an attack cannot do,
    FloatingPointError if no start had a finite distance.
    """
    inputs = normalise(unit_range(images))
    shared = share(model, inputs, targets, attack.threat)
    attacked, shape = double(model), (images.shape[1], images.shape[2], images.shape[3])
    effort: dict[str, Any] = {
        "generator": generator,
        "iterations": attack.iterations,
        "restarts": attack.restarts,
    }
    if attack.kind == "inverting":
        single = attack.threat.images == 1 and attack.threat.local_steps == 1
        known = (
            torch.tensor([leaked_label(shared, classes, attack.threat)], device=targets.device)
            if single
            else targets
        )
        low, high = (
            normalise(torch.full_like(inputs[:1, :, :1, :1], value))[0] for value in (0.0, 1.0)
        )
        reconstruction = invert_gradients(
            attacked, shared, shape, known, classes, attack.threat, bounds=(low, high), **effort
        )
    else:
        reconstruction = {"dlg": deep_leakage, "idlg": improved_deep_leakage}[attack.kind](
            attacked, shared, shape, classes, attack.threat, **effort
        )
    recovered, labels = (
        to_units(reconstruction.images, normalise).float(),
        reconstruction.labels.argmax(dim=1),
    )
    order = match(recovered, unit_range(images))
    return Recovered(
        recovered[order], labels[order], reconstruction.distance, reconstruction.starts
    )


def reconstructions(
    stages: StageCache,
    label: str,
    network: str,
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    classes: int,
    attack: Attack,
    normalise: Normalisation,
    generator_of: Callable[[int], torch.Generator],
    progress: Callable[[str, float], None] = lambda text, share: None,
) -> Stage:
    """The attack on every message of a client that holds uint8 `images` (n, c, h, w) of classes
    `targets` (n,), through `model`, a `network` of the catalogue; a stage.

    Consecutive images share a message; `generator_of(i)` gives the starts of the one that begins
    with image i, and is named by its seed in the stage's key. The stage holds `images` (n, c, h, w)
    in [0, 1], `labels` (n,), and for each image the `distances` (n,) and `starts` (n,) of its
    message. Raises ValueError for a number of images that messages do not divide.
    """
    per_message = attack.threat.images
    if len(images) % per_message:
        raise ValueError(f"{len(images)} images are not whole messages of {per_message}")
    firsts = range(0, len(images), per_message)

    def compute() -> Stage:
        recovered = []
        for first in firsts:
            progress(f"{label}: image {first + 1}/{len(images)}", first / len(images))
            message = slice(first, first + per_message)
            one = attack_message(
                model,
                images[message],
                targets[message],
                classes,
                attack,
                normalise,
                generator_of(first),
            )
            recovered.append(one)
        tensors = {
            "images": torch.cat([one.images for one in recovered]),
            "labels": torch.cat([one.labels for one in recovered]),
            "distances": (
                torch.tensor(
                    [one.distance for one in recovered], dtype=torch.float64
                ).repeat_interleave(per_message)
            ),
            "starts": torch.tensor([one.starts for one in recovered]).repeat_interleave(
                per_message
            ),
        }
        return Stage(tensors)

    inputs = {
        "model": [network, network_digest(network), content_digest(model.state_dict())],
        "private": content_digest({"images": images, "targets": targets}),
        "classes": classes,
        "attack": asdict(attack),
        "normalise": repr(normalise),
        "starts": [generator_of(first).initial_seed() for first in firsts],
        "device": [images.device.type, torch.get_num_threads()],
    }
    return stages.get(StageRequest("reconstruction", label, inputs, compute, __name__))
