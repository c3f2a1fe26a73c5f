"""What attacks make of a client's messages, as a stage: images in the order of the true ones."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor, nn

from fedtables.federation.cache import Stage, StageCache, StageRequest, content_digest
from fedtables.federation.training.inputs import Normalisation, unit_range
from fedtables.metrics.images import match
from fedtables.models.catalogue import network_digest
from fedtables.privacy.attacks.gradients import Attack, reconstruct
from fedtables.privacy.attacks.matching import ReconstructedImages


@dataclass(frozen=True)
class Attacked:
    """Through which network a client's messages are attacked, and how."""

    network: str
    """Its name in the catalogue."""
    model: nn.Module
    """The network with the weights that the server sent."""
    classes: int
    attack: Attack
    normalise: Normalisation
    """From [0, 1] to what the network sees."""
    generator_of: Callable[[int], torch.Generator]
    """Of the starts for the message that begins with image i."""

    def message(self, images: Tensor, targets: Tensor, first: int) -> ReconstructedImages:
        """What is found of a message of uint8 `images` (n, c, h, w) and their `targets` (n,), in
        [0, 1] and in the order of the private images that it resembles most.
        """
        truth = unit_range(images)
        black, white = (
            self.normalise(torch.full_like(truth[:1, :, :1, :1], value))[0] for value in (0.0, 1.0)
        )
        found = reconstruct(
            self.model,
            self.normalise(truth),
            targets,
            self.classes,
            self.attack,
            (black, white),
            self.generator_of(first),
        )
        recovered = to_units(found.images, self.normalise).float()
        order = match(recovered, truth)
        return replace(found, images=recovered[order], labels=found.labels[order])


def to_units(images: Tensor, normalise: Normalisation) -> Tensor:
    """Images (n, c, h, w) as a network takes them, back in [0, 1]; what lies outside is clamped."""
    mean, std = (
        torch.tensor(values).to(images)[:, None, None] for values in (normalise.mean, normalise.std)
    )
    return (images * std + mean).clamp(0, 1)


def reconstructions(
    stages: StageCache,
    label: str,
    attacked: Attacked,
    images: Tensor,
    targets: Tensor,
    progress: Callable[[str, float], None] = lambda text, share: None,
) -> Stage:
    """The attack on every message of a client that holds uint8 `images` (n, c, h, w) of classes
    `targets` (n,); consecutive images share a message. A stage: `images` (n, c, h, w) in [0, 1],
    `labels` (n,), and by image the `distances` (n,) and `starts` (n,) of its message.
    """
    firsts = attacked.attack.messages(len(images))

    def compute() -> Stage:
        found = []
        for first in firsts:
            progress(f"{label}: image {first + 1}/{len(images)}", first / len(images))
            part = slice(first, first + firsts.step)
            found.append(attacked.message(images[part], targets[part], first))
        distances = torch.tensor([one.distance for one in found], dtype=torch.float64)
        starts = torch.tensor([one.starts for one in found])
        return Stage(
            {
                "images": torch.cat([one.images for one in found]),
                "labels": torch.cat([one.labels.argmax(dim=1) for one in found]),
                "distances": distances.repeat_interleave(firsts.step),
                "starts": starts.repeat_interleave(firsts.step),
            }
        )

    network = attacked.network
    inputs = {
        "model": [network, network_digest(network), content_digest(attacked.model.state_dict())],
        "private": content_digest({"images": images, "targets": targets}),
        "classes": attacked.classes,
        "attack": asdict(attacked.attack),
        "normalise": repr(attacked.normalise),
        "starts": [attacked.generator_of(first).initial_seed() for first in firsts],
        "device": [images.device.type, torch.get_num_threads()],
    }
    return stages.get(StageRequest("reconstruction", label, inputs, compute, __name__))
