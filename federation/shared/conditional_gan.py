"""A generator at the server that makes images of the clients' label maps, and learns from critics
that stay on the clients (Chang et al. 2020, AsynDGAN; the networks are those of pix2pix, Isola et
al. 2017).

Each client sends its label maps once, as `conditions`. In every step the server makes images of
some of each client's maps and sends them there; the client trains D_k to tell pairs of a condition
and such an image from pairs of a condition and the image that it holds, and answers with D_k's
scores and, as `losses`, how far each image is from its own one of the same condition. The server
gets gradients with respect to the images. The clients' images never leave them.

D_k is the probability that a pair is generated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from fedtables.federation.augmentation import filled
from fedtables.federation.client import Client, Shard
from fedtables.federation.costs import values
from fedtables.federation.data import Checkpoint, fetch
from fedtables.federation.federation import Federation
from fedtables.federation.shared.learner import Learner, steps_per_epoch
from fedtables.federation.shared.remote import ask
from fedtables.federation.tasks.base import conditioned
from fedtables.federation.training.inputs import Normalisation, unit_range
from fedtables.federation.training.loops import predict
from fedtables.models import catalogue
from fedtables.models.extractors import (
    FEATURE_NETWORKS,
    FeatureNetwork,
    feature_network,
    perceptual_distance,
)
from fedtables.models.generative import PairDiscriminator
from fedtables.results.names import check_known
from fedtables.results.numbers import Count, Positive, Share

MOST = 2**15 - 1
"""The highest number of a label map that crosses, in two bytes a pixel."""


@dataclass(frozen=True)
class GanSettings:
    """What a generator that learns from label maps is trained by; defaults are those of AsynDGAN's
    released code.
    """

    generator: str = "resnet-generator"
    """The network from condition maps to images in [-1, 1]."""
    discriminator_width: Count = 64
    """Channels of the discriminators' first layer (pix2pix)."""
    discriminator_layers: Count = 3
    """Layers of the discriminators between the first and the last: 3 for patches of 70 x 70
    pixels (pix2pix), fewer for small images."""
    batch_size: Count = 2
    """Label maps of each client in a step, so 8 of four clients."""
    steps: int = 0
    """Steps in an epoch; 0 for as many as the largest client has batches, while others begin
    again."""
    generator_lr: Positive = 2e-4
    """Of Adam for G and D_k."""
    generator_beta: Share = 0.5
    """First beta of Adam for G and D_k."""
    decay_epochs: int = 100
    """Epochs at the end in which this learning rate falls, epoch by epoch, to nearly 0."""
    l1: float = 100.0
    """Weight of the mean absolute difference from the real image of the same label map."""
    perceptual: float = 1.0
    """Weight of the perceptual distance from that image (Johnson et al. 2016)."""
    features: str = "vgg16"
    """The network whose features the perceptual distance compares; vgg16 needs a file, and
    efficientnet-lite0 and vgg16-random, which stand in for it, need none
    (`fedtables.models.extractors`)."""
    gan_weights: str = "one"
    """Weight of each client in G's loss: `one`, or `size` for n_k / n."""
    generator_scale: float = 0.1
    """What G's loss against the clients is multiplied by."""
    discriminator_scale: float = 0.05
    """What D_k's loss is multiplied by; Adam hardly notices."""
    samples: int = 0
    """Label maps of each client, its first, of which the last generator's images are kept for
    pictures."""

    def __post_init__(self) -> None:
        check_known(
            self,
            gan_weights=("one", "size"),
            generator=catalogue.networks(),
            features=FEATURE_NETWORKS,
        )


def discriminator_loss(generated: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """What a client minimises over D_k: the cross-entropy of patch logits (n, h, w) of generated
    pairs against 1, plus that of its own pairs against 0; means over patches (pix2pix, vanilla).
    """
    against_generated = F.binary_cross_entropy_with_logits(generated, torch.ones_like(generated))
    return against_generated + F.binary_cross_entropy_with_logits(own, torch.zeros_like(own))


def adversarial_loss(scores: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """What G minimises: sum_k w_k of the cross-entropy of patch logits (clients, n, h, w) against
    "the client's own"; means over patches.
    """
    per_patch = F.binary_cross_entropy_with_logits(
        scores, torch.zeros_like(scores), reduction="none"
    )
    return weights @ per_patch.mean(dim=(1, 2, 3))


def reference_loss(
    settings: GanSettings,
    features: FeatureNetwork | None,
    images: torch.Tensor,
    own: torch.Tensor,
) -> torch.Tensor:
    """How far images (n, c, h, w) in [-1, 1] are from a client's own of the same label maps, (n,):
    L1 and perceptual distance, with their weights.
    """
    distance = settings.l1 * (images - own).abs().mean(dim=(1, 2, 3))
    if features is not None:
        apart = perceptual_distance(features, (images + 1) / 2, (own + 1) / 2)
        distance = distance + settings.perceptual * apart
    return distance


class Answer(NamedTuple):
    """What a client says of generated images; gradients reach the images."""

    scores: torch.Tensor
    """Patch logits (n, h', w') of the pairs that D_k judged."""
    losses: torch.Tensor
    """`reference_loss` of the images of its own label maps, (batch size,)."""
    others: tuple[torch.Tensor, ...]
    """Outputs of the kinds that `Critic.others` names."""


@dataclass
class Critic:
    """Client k and its D_k; what it holds stays there, but for its label maps."""

    settings: GanSettings
    federation: Federation
    client: Client
    discriminator: Learner
    features: FeatureNetwork | None
    """None where no perceptual distance is asked for."""
    order: torch.Tensor = field(init=False)
    """Positions in the shard, in the order in which the present epoch takes them; server and client
    draw the same."""
    own_score: torch.Tensor = field(init=False)
    """E[D_k(x')] of the last step's batch, a constant; the client's."""

    def send_conditions(self) -> torch.Tensor:
        """The client's label maps as they reach the server, int16 (n_k, h, w): what the task makes
        of its targets.

        Raises ValueError for numbers above `MOST`.
        """
        task = conditioned(self.federation.task)

        def label_maps(shard: Shard) -> torch.Tensor:
            parts = []
            for targets in shard.targets.split(500):
                held = task.label_maps(targets)
                highest = int(values(held.amax()))
                if highest > MOST:
                    raise ValueError(f"label maps have numbers up to {MOST}, not {highest}")
                parts.append(held.to(torch.int16))
            return torch.cat(parts)

        maps = {"maps": self.client.run(label_maps)}
        return self.federation.channel.up(self.client.index, "conditions", maps)["maps"]

    def begin_epoch(self, epoch: int, steps: int) -> None:
        """Draw the order of `epoch`; a client with fewer samples than it takes begins again."""
        stream = self.federation.streams.shuffling("conditions", self.client.index, epoch)
        size, needed = self.client.size, steps * self.settings.batch_size
        self.order = stream.shuffled(size).repeat(-(-needed // size))

    def positions(self, step: int) -> torch.Tensor:
        """Those of step 0, 1, ... of the epoch, (batch size,)."""
        size = self.settings.batch_size
        return self.order[step * size : (step + 1) * size]

    def answer(
        self,
        images: torch.Tensor,
        conditions: torch.Tensor,
        step: int,
        own: slice,
        others: Mapping[str, Callable[[torch.Tensor], torch.Tensor]],
    ) -> Answer:
        """The client's part of a step: of the server's images (n, c, h, w) in [-1, 1] D_k judges as
        many as there are `conditions` (n or batch size, channels, h, w); those at `own` are of the
        client's label maps.

        `others` gives further outputs on the client, of all images, by kind.
        """

        def on_client(shard: Shard, received: torch.Tensor) -> dict[str, torch.Tensor]:
            mine = received[own]
            judged = received if len(conditions) == len(received) else mine
            own_samples = self.positions(step)
            pictured = conditioned(self.federation.task).pictured(
                shard.images_at(own_samples), shard.targets_at(own_samples)
            )
            real = 2 * unit_range(pictured) - 1
            real_conditions = conditions[own] if judged is received else conditions
            self.train_discriminator(judged.detach(), conditions, real, real_conditions)
            answers = {kind: output(received) for kind, output in others.items()}
            answers["discriminator-outputs"] = self.judge(judged, conditions)
            answers["losses"] = reference_loss(self.settings, self.features, mine, real)
            return answers

        scores, losses, *rest = ask(
            self.federation.channel,
            self.client.index,
            images,
            lambda received: self.client.run(on_client, received),
            ("discriminator-outputs", "losses", *others),
        )
        return Answer(scores, losses, tuple(rest))

    def train_discriminator(
        self,
        generated: torch.Tensor,
        conditions: torch.Tensor,
        real: torch.Tensor,
        real_conditions: torch.Tensor,
    ) -> None:
        """A step of D_k on generated images and as many or fewer of its own, with their
        conditions.
        """
        on_generated = self.judge(generated, conditions)
        on_own = self.judge(real, real_conditions)
        self.own_score = on_own.detach().sigmoid().mean()
        loss = self.settings.discriminator_scale * discriminator_loss(on_generated, on_own)
        loss.backward()
        self.discriminator.step()

    def judge(self, images: torch.Tensor, conditions: torch.Tensor) -> torch.Tensor:
        """Patch logits (n, h', w') of images beside their conditions."""
        pairs = torch.cat([conditions, images], dim=1)
        return self.federation.forward(self.discriminator.module, pairs)


def make_critics(settings: GanSettings, federation: Federation, epochs: int) -> list[Critic]:
    """D_k of every client that has samples, all from the same initial weights, to be trained for
    `epochs`.
    """
    channels, *sides = federation.networks.image_shape
    conditions = conditioned(federation.task).condition_channels
    features = None
    if settings.perceptual:
        features = federation.networks.new_module(
            lambda: feature_network(settings.features, channels), "perceptual features"
        )

    def build() -> PairDiscriminator:
        width, layers = settings.discriminator_width, settings.discriminator_layers
        return PairDiscriminator(channels, conditions, tuple(sides), width, layers)

    critics = []
    for client in federation.clients:
        if client.size:
            discriminator = federation.networks.new_module(build, "discriminator")
            learner = make_learner(settings, federation, discriminator, epochs)
            critics.append(Critic(settings, federation, client, learner, features))
    return critics


def make_generator(settings: GanSettings, federation: Federation, epochs: int) -> Learner:
    """G, to be trained for `epochs`."""
    channels, *sides = federation.networks.image_shape
    conditions = conditioned(federation.task).condition_channels
    generator = federation.networks.new_module(
        lambda: catalogue.build(settings.generator, conditions, channels, sides), "generator"
    )
    return make_learner(settings, federation, generator, epochs)


def make_learner(
    settings: GanSettings, federation: Federation, module: torch.nn.Module, epochs: int
) -> Learner:
    """G or D_k with its optimiser; the learning rate is constant, then falls by equal amounts in
    each of `decay_epochs` (pix2pix).
    """
    betas = (settings.generator_beta, 0.999)
    optimizer = torch.optim.Adam(module.parameters(), settings.generator_lr, betas=betas)
    steps = steps_per_epoch(settings.steps, settings.batch_size, federation.clients)
    constant = epochs - settings.decay_epochs

    def share(step: int) -> float:
        late = max(0, step // steps + 1 - constant)
        return max(0.0, 1 - late / (settings.decay_epochs + 1))

    return Learner(module, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share))


def client_weights(settings: GanSettings, critics: Sequence[Critic]) -> torch.Tensor:
    """Weights of the clients in G's loss, (clients,)."""
    on_device = torch.empty(0, device=critics[0].federation.networks.device)
    sizes = filled([float(critic.client.size) for critic in critics], on_device)
    return sizes / sizes.sum() if settings.gan_weights == "size" else torch.ones_like(sizes)


def label_maps_at(
    critics: Sequence[Critic], maps: Sequence[torch.Tensor], step: int
) -> list[torch.Tensor]:
    """The label maps of each client that a step is about, int64 (batch size, h, w)."""
    pairs = zip(critics, maps, strict=True)
    return [fetch(held, critic.positions(step)).long() for critic, held in pairs]


def synthesise(
    federation: Federation, generator: torch.nn.Module, maps: torch.Tensor
) -> torch.Tensor:
    """An image of each label map (n, h, w), as samples are stored: uint8 (n, c, h, w)."""
    task = conditioned(federation.task)
    channels = task.condition_channels
    as_they_are = Normalisation((0.0,) * channels, (1.0,) * channels)
    images = [
        predict(generator, task.condition(part), normalise=as_they_are) for part in maps.split(500)
    ]
    return torch.cat(images).add(1).mul(127.5).round().to(torch.uint8)


def with_samples(
    settings: GanSettings,
    federation: Federation,
    student: Checkpoint,
    generator: torch.nn.Module,
    maps: Sequence[torch.Tensor],
) -> Checkpoint:
    """The student with `samples` images of each client's label maps, if any are wanted."""
    if not settings.samples:
        return student
    made = [synthesise(federation, generator, held[: settings.samples]) for held in maps]
    return replace(student, samples=torch.cat(made))


def snapshot_parts(critics: Sequence[Critic], **learners: Learner) -> dict[str, Any]:
    """What a snapshot keeps of clients and server, by name."""
    kept = {
        name: part for key, learner in learners.items() for name, part in learner.parts(key).items()
    }
    for critic in critics:
        parts = critic.discriminator.parts("discriminator")
        kept |= {f"{critic.client.index} {name}": part for name, part in parts.items()}
    return kept
