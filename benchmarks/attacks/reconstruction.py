"""What attacks make of a client's messages, as a stage: images in the order of the true ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from federation.cache import Stage, StageCache, StageRequest, content_digest
from federation.training.inputs import Normalisation, unit_range
from metrics.images import match
from models.catalogue import network_digest
from privacy.attacks.by_name import Attack, reconstruct

RECOVERED = 30.0
"""PSNR (dB) above which an image counts as recovered: a mean squared error below a thousandth of
the squared range."""


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
    """`ReconstructedImages.distance`."""
    starts: int
    """Starts that were tried."""


def to_units(images: Tensor, normalise: Normalisation) -> Tensor:
    """Images (n, c, h, w) as a network takes them, back in [0, 1]; what lies outside is clamped."""
    mean, std = (
        torch.tensor(values).to(images)[:, None, None] for values in (normalise.mean, normalise.std)
    )
    return (images * std + mean).clamp(0, 1)


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
    that of the threat model. As `reconstruct`, which takes them as `normalise` makes them.
    """
    inputs = normalise(unit_range(images))
    low, high = (
        normalise(torch.full_like(inputs[:1, :, :1, :1], value))[0] for value in (0.0, 1.0)
    )
    reconstruction = reconstruct(
        model, inputs, targets, classes, attack, bounds=(low, high), generator=generator
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
