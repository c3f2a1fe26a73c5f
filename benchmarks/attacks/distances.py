"""How far what a client gives away lies from its private images: FedIOD's Figure 4.

For a method that shares parameters, the images that an attack makes of a client's shared gradients;
for one that generates images, these; for comparison, other private images of the same client, and
noise. One distance for all: the Fréchet distance between n of them and the n private images that
were attacked, by the features of an ImageNet network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import torch
from torch import Tensor

from benchmarks.attacks.reconstruction import reconstructions
from benchmarks.scenarios.configuration import EvaluationSettings, NetworkSettings, read_section
from benchmarks.tables.measure import Config
from federation.client import Client, Shard
from federation.federation import Federation
from federation.method import Method
from federation.training.inputs import unit_range
from metrics.frechet import frechet_distance, is_reliable, title
from metrics.images import WINDOW, psnr, ssim
from privacy.attacks.by_name import KINDS, Attack, Kind
from privacy.attacks.threat import BatchNorm, Shares, ThreatModel
from results.numbers import Count
from results.record import Measurement

if TYPE_CHECKING:
    from models.extractors import Extractor

GENERATED, PRIVATE, NOISE = "generated", "private", "noise"
NEAREST_GENERATED, NEAREST_PUBLIC = "nearest-generated", "nearest-public"
"""For each attacked image the one of many that is nearest to it: what a server has without an
attack."""
Source = Literal[Kind, "generated", "private", "noise", "nearest-generated", "nearest-public"]
"""Where the images of a row come from: an attack, the method's generator, the client, or
nowhere."""


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


def measure(
    config: Config, federation: Federation, method: Method, samples: Tensor | None
) -> tuple[tuple[Measurement, ...], str]:
    """Distances by client, and their mean in the column `client=average`; for attacks also the
    medians of PSNR and SSIM. And how.

    `samples` are the images uint8 (m, c, h, w) that a fitted method generated. Raises ValueError
    for a method that has nothing of the kind that the configuration measures, and where too few
    clients hold enough images.
    """
    from models import extractors  # imports much that other cells have no use for

    settings = read_section(config, "attack", AttackSettings)
    source, count = settings.images_by, settings.images
    _check(source, method, samples, count)
    named = read_section(config, "evaluation", EvaluationSettings).extractor
    extractor = extractors.load(named, federation.networks.device)
    clients = drawn_clients(federation, settings.clients, count)
    distances: list[dict[str, float]] = []
    for client in clients:
        federation.progress(f"client {client.index + 1}", len(distances) / len(clients))
        private, _ = client.run(_private_images, federation, client, count)
        images = _images_of(config, settings, federation, client, samples)
        values = {
            "fid": frechet_distance(
                _features(extractor, images), _features(extractor, unit_range(private[:count]))
            )
        }
        if source in (*KINDS, NEAREST_GENERATED, NEAREST_PUBLIC):
            values |= likeness(images, unit_range(private[:count]))
        distances.append(values)
    distances.append(
        {
            metric: sum(values[metric] for values in distances) / len(distances)
            for metric in distances[0]
        }
    )
    names = [*map(str, range(1, len(clients) + 1)), "average"]
    measurements = [
        Measurement(m, v[m], f"client={name}")
        for m in distances[0]
        for name, v in zip(names, distances, strict=True)
    ]
    how = title(extractor.name, extractor.title) + f", {count} images on either side"
    if not is_reliable(count, count, extractor.feature_dim):
        how += f" (n = {count} is below the {extractor.feature_dim:,} features: compare rows only)"
    numbers = ", ".join(str(client.index + 1) for client in clients)
    return tuple(measurements), f"{how}; clients {numbers} of {len(federation.clients)}"


def likeness(images: Tensor, truth: Tensor) -> dict[str, float]:
    """Median PSNR, and SSIM where the images are no smaller than its window, of images (n, c, h, w)
    in [0, 1].
    """
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
    attack, as many beside.

    Raises ValueError if there are fewer.
    """
    able = [client for client in federation.clients if client.size >= 2 * images]
    if len(able) < count:
        raise ValueError(
            f"{len(able)} of {len(federation.clients)} clients hold {2 * images} images, {count}"
            " are needed; lower attack.clients or attack.images"
        )
    return [
        able[position]
        for position in federation.streams.seeds.numpy("attack", "clients").permutation(len(able))[
            :count
        ]
    ]


def _private_images(
    shard: Shard, federation: Federation, client: Client, count: int
) -> tuple[Tensor, Tensor]:
    """On the client: 2 x `count` of its images uint8 and their classes; the first half are those
    attacked.
    """
    chosen = federation.streams.seeds.numpy("attack", "images", client.index).permutation(
        len(shard)
    )[: 2 * count]
    positions = torch.from_numpy(chosen).to(federation.networks.device)
    return shard.images_at(positions), shard.targets[positions]


def _features(extractor: Extractor, images: Tensor) -> Tensor:
    return extractor.features(images if images.shape[1] == 3 else images.expand(-1, 3, -1, -1))


def _images_of(
    config: Config,
    settings: AttackSettings,
    federation: Federation,
    client: Client,
    samples: Tensor | None,
) -> Tensor:
    """The images of a row that are compared with the client's attacked ones: float32 (n, c, h, w)
    in [0, 1].
    """
    source, count = settings.images_by, settings.images
    if source == GENERATED:
        assert samples is not None
        chosen = federation.streams.seeds.numpy("attack", "samples", client.index).permutation(
            len(samples)
        )[:count]
        return unit_range(samples[torch.from_numpy(chosen).to(samples.device)])
    if source == PRIVATE:
        return unit_range(client.run(_private_images, federation, client, count)[0][count:])
    if source == NOISE:
        generator = federation.streams.seeds.torch("attack", "noise", client.index)
        return torch.rand(count, *federation.networks.image_shape, generator=generator).to(
            federation.networks.device
        )
    if source in (NEAREST_GENERATED, NEAREST_PUBLIC):
        others = samples if source == NEAREST_GENERATED else federation.public.images
        assert others is not None
        private, _ = client.run(_private_images, federation, client, count)
        return nearest(unit_range(private[:count]), unit_range(others))
    attack = attack_of(settings, float(config["local.lr"]))
    network = read_section(config, "network", NetworkSettings).named(settings.network)
    return _attacked(attack, network, count, federation, client)


def nearest(images: Tensor, others: Tensor) -> Tensor:
    """For each of `images` (n, c, h, w) the one of `others` (m, c, h, w) with the least squared
    difference, (n, c, h, w).
    """
    return others[torch.cdist(images.flatten(1), others.flatten(1)).argmin(dim=1)]


def attack_of(settings: AttackSettings, local_lr: float) -> Attack:
    """The attack that settings describe, on clients with this learning rate. Raises ValueError for
    settings that contradict each other.
    """
    threat = ThreatModel(
        shares=settings.shares,
        batch_size=settings.batch_size,
        local_steps=settings.local_steps,
        local_lr=local_lr,
        batch_norm=settings.batch_norm,
    )
    kind = cast(Kind, settings.images_by)
    return Attack(kind, threat, settings.iterations, settings.restarts)


def _attacked(
    attack: Attack, network: str, count: int, federation: Federation, client: Client
) -> Tensor:
    """What the attack makes of the client's messages in the first round, whose weights the server
    has just sent.
    """
    private, targets = client.run(_private_images, federation, client, count)
    return reconstructions(
        federation.stages.cache,
        f"client {client.index + 1} of {len(federation.clients)} ({attack.kind}, {network})",
        network,
        federation.networks.initial(network),
        private[:count],
        targets[:count],
        federation.task.outputs,
        attack,
        federation.normalise,
        lambda first: federation.streams.seeds.torch("attack", attack.kind, client.index, first),
        federation.progress,
    ).tensors["images"]
