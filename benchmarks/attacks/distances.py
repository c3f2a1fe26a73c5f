"""How far what a client gives away lies from its private images: FedIOD's Figure 4.

For all the Fréchet distance, by the features of an ImageNet network, between n of a row's images
(`Source`) and the n private images that were attacked.
"""

from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor

from fedtables.benchmarks.attacks.reconstruction import Attacked, reconstructions
from fedtables.benchmarks.scenarios.configuration import (
    EvaluationSettings,
    NetworkSettings,
    read_section,
)
from fedtables.benchmarks.tables.measure import Config, FittedCell, Taken
from fedtables.federation.client import Client, Shard
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.training.inputs import unit_range
from fedtables.metrics.generated import frechet_distance, title
from fedtables.metrics.images import WINDOW, psnr, ssim
from fedtables.privacy.attacks.gradients import KINDS, Attack, Kind
from fedtables.privacy.attacks.threat import BatchNorm, Shares, ThreatModel
from fedtables.results.numbers import Count
from fedtables.results.record import Measurement

GENERATED, PRIVATE, NOISE = "generated", "private", "noise"
NEAREST_GENERATED, NEAREST_PUBLIC = "nearest-generated", "nearest-public"
Source = Literal[Kind, "generated", "private", "noise", "nearest-generated", "nearest-public"]
"""Where the images of a row come from: an attack, the method's generator, the client, or nowhere;
or for each attacked image the nearest of many, which a server has without an attack."""


@dataclass(frozen=True)
class AttackSettings:
    """`attack.*`: which images a row has, and how they are made."""

    images_by: Source
    images: Count
    """Private images of a client that are attacked, and images on either side of a distance."""
    clients: Count
    network: str = ""
    """The kind of network whose messages are attacked."""
    shares: Shares = "gradient"
    batch_size: Count = 1
    """Images behind a message."""
    local_steps: Count = 1
    """Steps behind an update."""
    batch_norm: BatchNorm = "eval"
    iterations: Count = 300
    restarts: Count = 4

    def attack(self, local_lr: float) -> Attack:
        """The attack. Raises ValueError for settings that contradict each other."""
        threat = ThreatModel(
            self.shares, self.batch_size, self.local_steps, local_lr, self.batch_norm
        )
        return Attack(cast(Kind, self.images_by), threat, self.iterations, self.restarts)


def measure(run: FittedCell) -> Taken:
    """Distances by client, and their mean in the column `client=average`; for attacks also the
    medians of PSNR and SSIM. Raises ValueError for a method that has nothing of the kind, and where
    too few clients hold enough images.
    """
    from fedtables.models import extractors  # imports much that other cells have no use for

    config, federation = run.config, run.federation
    samples = run.fitted[0].samples if run.fitted else None
    settings = read_section(config, "attack", AttackSettings)
    source, count = settings.images_by, settings.images
    _check(source, run.method, samples, count)
    named = read_section(config, "evaluation", EvaluationSettings).extractor
    extractor = extractors.load(named, federation.networks.device)

    def features(images: Tensor) -> Tensor:
        return extractor.features(images if images.shape[1] == 3 else images.expand(-1, 3, -1, -1))

    clients = drawn_clients(federation, settings.clients, count)
    distances: list[dict[str, float]] = []
    for client in clients:
        federation.progress(f"client {client.index + 1}", len(distances) / len(clients))
        private, targets = client.run(_private_images, federation, client, count)
        truth = unit_range(private[:count])
        if source in KINDS:
            images = _recovered(config, federation, client, private[:count], targets[:count])
        else:
            images = _others(source, federation, client, private, samples)
        values = {"fid": frechet_distance(features(images), features(truth))}
        if source in (*KINDS, NEAREST_GENERATED, NEAREST_PUBLIC):
            values |= likeness(images, truth)
        distances.append(values)
    measurements = []
    for metric in distances[0]:
        found = [values[metric] for values in distances]
        measurements += [
            Measurement(metric, value, f"client={number}") for number, value in enumerate(found, 1)
        ]
        measurements.append(Measurement(metric, sum(found) / len(found), "client=average"))
    how = title(extractor.name, extractor.title) + f", {count} images on either side"
    if count < extractor.feature_dim:  # a covariance is singular by too few images
        how += f" (n = {count} is below the {extractor.feature_dim:,} features: compare rows only)"
    numbers = ", ".join(str(client.index + 1) for client in clients)
    text = f"{how}; clients {numbers} of {len(federation.clients)}"
    return Taken(tuple(measurements), text)


def likeness(images: Tensor, truth: Tensor) -> dict[str, float]:
    """Median PSNR and, if they are as large as its window, SSIM of images (n, c, h, w)."""
    values = {"psnr": float(psnr(images, truth).median())}
    if min(images.shape[2:]) >= WINDOW:
        values["ssim"] = float(ssim(images, truth).median())
    return values


def _check(source: str, method: Method, samples: Tensor | None, count: int) -> None:
    name = method.title or type(method).__name__
    if source in KINDS and "parameters" not in method.sends:
        raise ValueError(
            f"{name} shares no parameters, so its clients send no gradient or update to be attacked"
        )
    if source in (GENERATED, NEAREST_GENERATED) and samples is None:
        raise ValueError(f"{name} generated no images to measure; set its samples above 0")
    if samples is not None and len(samples) < count:
        raise ValueError(
            f"{name} generated {len(samples)} images, fewer than the {count} of attack.images"
        )


def drawn_clients(federation: Federation, count: int, images: int) -> list[Client]:
    """`count` clients drawn from the attack axis among those that hold twice `images`: as many to
    attack, as many beside. Raises ValueError if there are fewer.
    """
    able = [client for client in federation.clients if client.size >= 2 * images]
    if len(able) < count:
        raise ValueError(
            f"{len(able)} of {len(federation.clients)} clients hold {2 * images} images, {count}"
            " are needed; lower attack.clients or attack.images"
        )
    order = federation.streams.seeds.numpy("attack", "clients").permutation(len(able))
    return [able[position] for position in order[:count]]


def _private_images(
    shard: Shard, federation: Federation, client: Client, count: int
) -> tuple[Tensor, Tensor]:
    """On the client: 2 x `count` images uint8 and their classes; the first half is attacked."""
    order = federation.streams.seeds.numpy("attack", "images", client.index)
    chosen = order.permutation(len(shard))[: 2 * count]
    positions = torch.from_numpy(chosen).to(federation.networks.device)
    return shard.images_at(positions), shard.targets_at(positions)


def _others(
    source: str, federation: Federation, client: Client, private: Tensor, samples: Tensor | None
) -> Tensor:
    """A row's images that no attack makes, float32 (n, c, h, w) in [0, 1]."""
    seeds, count = federation.streams.seeds, len(private) // 2
    if source == PRIVATE:
        return unit_range(private[count:])
    if source == NOISE:
        generator = seeds.torch("attack", "noise", client.index)
        drawn = torch.rand(count, *federation.networks.image_shape, generator=generator)
        return drawn.to(private.device)
    known = federation.public.images if source == NEAREST_PUBLIC else samples
    assert known is not None
    if source == GENERATED:
        chosen = seeds.numpy("attack", "samples", client.index).permutation(len(known))[:count]
        return unit_range(known[torch.from_numpy(chosen).to(known.device)])
    return nearest(unit_range(private[:count]), unit_range(known.to(private.device)))


def nearest(images: Tensor, others: Tensor) -> Tensor:
    """For each of `images` (n, c, h, w) the nearest of `others` (m, c, h, w), as (n, c, h, w)."""
    return others[torch.cdist(images.flatten(1), others.flatten(1)).argmin(dim=1)]


def _recovered(
    config: Config, federation: Federation, client: Client, images: Tensor, targets: Tensor
) -> Tensor:
    """What an attack makes of the client's messages in the first round."""
    settings = read_section(config, "attack", AttackSettings)
    attack = settings.attack(float(config["local.lr"]))
    network = read_section(config, "network", NetworkSettings).named(settings.network)
    victim = Attacked(
        network,
        federation.networks.initial(network),
        federation.task.outputs,
        attack,
        federation.normalise,
        lambda first: federation.streams.seeds.torch("attack", attack.kind, client.index, first),
    )
    numbers = f"{client.index + 1} of {len(federation.clients)}"
    label = f"client {numbers} ({attack.kind}, {network})"
    found = reconstructions(
        federation.stages.cache, label, victim, images, targets, federation.progress
    )
    return found.tensors["images"]
