"""What server and clients hold in FedIOD's second stage, what a client does there, and the
hyper-parameters of it all, each with its source.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import nn

from fedtables.federation.client import Client, Shard
from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.seeds import Stream
from fedtables.federation.shared.learner import Learner, steps_per_epoch
from fedtables.federation.shared.remote import ask
from fedtables.federation.training.inputs import augmented
from fedtables.methods.fediod.losses import (
    Objective,
    adversarial_loss,
    discriminator_loss,
    size_weights,
)
from fedtables.models.generative import Generator, PatchDiscriminator
from fedtables.privacy.plan import RELEASED
from fedtables.privacy.sanitising import SENSITIVITY_FACTOR, clip, sanitise
from fedtables.results.names import check_known
from fedtables.results.numbers import Count, Positive, Share

Answer = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""A client's part of a step: logits (n, classes), patch logits (n, h, w), and E[D_k(x')], which is
a constant."""
RELEASED_BOUND, RELEASED_FACTOR = 100.0, 0.1
"""Of the authors' DP code: the clipping norm times the size of the batch, at the input of the
discriminator's last convolution, where GS-WGAN has 1 and clips at the generated image; and the
factor in place of `SENSITIVITY_FACTOR`, so that noise is below the sensitivity."""


@dataclass(frozen=True)
class Settings(Objective, Method):
    """The fields of FedIOD; those that the ablations switch are those of Table 6."""

    quick: ClassVar[Mapping[str, Any]] = {
        "epochs": 2,
        "steps": 35,
        "batch_size": 32,
        "width": 16,
        "discriminator_width": 16,
        "samples": 20,
        "lr": 0.01,
        "generator_lr": 2e-3,
        "confidence": 0.1,
        "uniqueness": 0.1,
    }

    epochs: Count = 300
    """Epochs of distillation (appendix)."""
    steps: int = 0
    """Steps in an epoch; 0 for as many as the largest client has batches (released code)."""
    batch_size: Count = 64
    """Generated images in a step (appendix)."""
    latent: Count = 100
    """Dimension of w, which is standard normal (CIFAR section)."""
    width: Count = 64
    """Channels of the generator's last layer but one (MosaicKD, as the appendix says)."""
    discriminator_width: Count = 128
    """Channels of the discriminators' first layer (released code)."""
    second_upsampling: str = "nearest"
    """How the generator enlarges the second time: nearest (MosaicKD), bilinear (released code)."""
    optimizer: str = "adam"
    """The student's: adam (appendix), or sgd, momentum 0.9, weight decay 3e-5 (released code)."""
    lr: Positive = 1e-3
    """The student's learning rate, with a cosine over all steps (appendix)."""
    final_lr: float = 0.0
    """Where the student's cosine ends (appendix)."""
    generator_lr: Positive = 1e-3
    """Of Adam for G and D_k, with a cosine to 0 (appendix)."""
    generator_beta: Share = 0.5
    """First beta of Adam for G and D_k (released code)."""
    augment_own: bool = False
    """Whether D_k sees its images augmented (released code); G then makes black borders."""
    logarithmic: bool = True
    """Whether L_gan is the cross-entropy of a classical GAN, as the text and the code have it, or
    linear, as Eq. 2 is printed."""
    gan_weights: str = "size"
    """pi_k in L_gan: `size` (Eq. 2), or `average` (Table 6)."""
    gan: float = 1.0
    """Weight of L_gan for the generator (Eq. 11 has no weights)."""
    diversity: float = 0.0
    """Weight of the released code's diversity term, which pulls the other way."""
    balance: float = 0.0
    """Weight of the released code's class-balance term."""
    student_steps: Count = 1
    """Student steps for each of the generator's: one on the same images (Algorithm 1), or several,
    all on fresh ones (released code: 5)."""
    samples: int = 10_000
    """Images generated at the end, for measures of their quality."""

    def __post_init__(self) -> None:
        check_known(
            self,
            weights=("eq8", "eq8-own", "size", "class-count"),
            gan_weights=("size", "average"),
            optimizer=("adam", "sgd"),
            second_upsampling=("nearest", "bilinear"),
        )
        if self.student_steps != 1 and self.weights not in ("size", "class-count"):
            raise ValueError(
                f"weights {self.weights!r} need the discriminators, which do not see the images of"
                " extra student steps"
            )


@dataclass
class Node:
    """Client k in the second stage; what it holds stays there."""

    settings: Settings
    federation: Federation
    client: Client
    teacher: nn.Module
    discriminator: Learner
    stream: Stream = field(init=False)
    """What it draws in the present epoch."""
    noise: Stream | None = None
    """What it draws there in a private run."""

    def begin_epoch(self, epoch: int) -> None:
        """Draw from the streams of `epoch` from now on."""
        names = ("fediod client", self.client.index, epoch)
        self.stream = self.federation.streams.shuffling(*names)
        if self.federation.privacy.mechanism:
            self.noise = self.federation.privacy.noise(*names)

    def answer(self, images: torch.Tensor) -> Answer:
        """The client's part of a step on images (n, c, h, w)."""
        own_score = torch.empty((), device=images.device)

        def on_client(shard: Shard, received: torch.Tensor) -> dict[str, torch.Tensor]:
            nonlocal own_score
            own_score = self.train_discriminator(shard, received.detach())
            return {
                "logits": self.federation.forward(self.teacher, received),
                "discriminator-outputs": self.judge(received),
            }

        channel, client = self.federation.channel, self.client
        kinds = ("logits", "discriminator-outputs")
        logits, scores = ask(
            channel, client.index, images, lambda sent: client.run(on_client, sent), kinds
        )
        own = {"own": own_score}
        sent = channel.up(client.index, "discriminator-outputs", own)
        return logits, scores, sent["own"]

    def logits(self, images: torch.Tensor) -> torch.Tensor:
        """The client's logits for images (n, c, h, w), without gradients: (n, classes)."""

        def on_client(shard: Shard, received: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"logits": self.federation.forward(self.teacher, received)}

        channel, client = self.federation.channel, self.client
        (logits,) = ask(
            channel, client.index, images, lambda sent: client.run(on_client, sent), ("logits",)
        )
        return logits

    def train_discriminator(self, shard: Shard, generated: torch.Tensor) -> torch.Tensor:
        """A step of D_k on images received and as many own; returns E[D_k(x')] of these."""
        stored = shard.images_at(self.stream.choose(len(shard), len(generated)))
        augmentation, normalise = self.federation.augmentation, self.federation.normalise
        on_generated = self.judge(generated)
        how = None
        if self.settings.augment_own and augmentation is not None:
            how = replace(augmentation, cutout=0)
        own = augmented(stored, how, self.stream.generator, normalise.mean)
        on_own = self.judge(normalise(own))
        discriminator_loss(on_generated, on_own, self.settings.logarithmic).backward()
        self.discriminator.step()
        return on_own.detach().sigmoid().mean()

    def judge(self, images: torch.Tensor) -> torch.Tensor:
        """Patch logits (n, h, w) of D_k, with the noise of the released DP code where that runs."""
        discriminator, privacy = self.discriminator.module, self.federation.privacy
        if privacy.mechanism != RELEASED:
            return self.federation.forward(discriminator, images)
        assert self.noise is not None
        assert isinstance(discriminator, PatchDiscriminator)
        return noisy_scores(discriminator, images, privacy.plan.noise_multiplier, self.noise)

    def noisy_gradient(
        self, images: torch.Tensor, rate: float, noise: float, clients: int
    ) -> torch.Tensor:
        """The client's part of the gradient of L_gan with respect to images (n, c, h, w), with its
        share of the noise.

        It trains D_k on them, as always, and judges each with probability `rate`, which nobody
        else learns. As in GS-WGAN, the gradient is clipped where it leaves the discriminator, to
        1/n of the norm for one image since L_gan is a mean over n, and the sum over clients has a
        noise of `noise` times twice that. A sample may turn its client's gradient into any other of
        that norm, so the sum is drawn from (1 - q) N(0) + q N(g) or (1 - q) N(0) + q N(g'); at
        noise over twice the norm that costs no more than adding or removing a record, as the
        accountant counts.
        """
        draws, channel, index = self.noise, self.federation.channel, self.client.index
        assert draws is not None
        clip_norm = self.federation.privacy.plan.gradient_clip / len(images)

        def on_client(shard: Shard, received: torch.Tensor) -> torch.Tensor:
            self.train_discriminator(shard, received)
            # No leaf, whose gradient a plan's counter cannot follow.
            judged = received.clone().requires_grad_().clone()
            scores = self.federation.forward(self.discriminator.module, judged)
            loss = adversarial_loss(scores[None], scores.new_ones(1), self.settings.logarithmic)
            (gradient,) = torch.autograd.grad(loss, judged)
            drawn = (draws.uniform(len(received)) < rate)[:, None, None, None]
            scale = noise * SENSITIVITY_FACTOR * clip_norm / math.sqrt(clients)
            share = scale * draws.normal(*gradient.shape)
            return clip(gradient, clip_norm) * drawn + share

        received = channel.down(index, "images", {"images": images})["images"]
        sent = self.client.run(on_client, received)
        return channel.up(index, "gradients", {"images": sent})["images"]


def noisy_scores(
    discriminator: PatchDiscriminator, images: torch.Tensor, noise_multiplier: float, noise: Stream
) -> torch.Tensor:
    """Patch logits (n, h, w); the gradient is clipped and noised on its way into the last layer."""
    features = discriminator.layers[:-1](images)
    if features.requires_grad:
        bound = RELEASED_BOUND / len(images)

        def noisy(gradient: torch.Tensor) -> torch.Tensor:
            how = (bound, noise_multiplier, RELEASED_FACTOR)
            return sanitise(gradient, *how, noise.generator)

        features.register_hook(noisy)
    logits: torch.Tensor = discriminator.layers[-1](features).squeeze(1)
    return logits


@dataclass
class Server:
    """What the server holds in the second stage."""

    generator: Learner
    student: Learner
    pi: torch.Tensor
    """n_k / n, (clients,)."""
    counts: torch.Tensor
    """N_k^c, (clients, classes)."""

    def update(self, generators: torch.Tensor, students: torch.Tensor) -> None:
        """A step of G against the student, then one of S, down their losses ()."""
        parameters = list(self.student.module.parameters())
        gradients = torch.autograd.grad(students, parameters, retain_graph=True)
        generators.backward(inputs=list(self.generator.module.parameters()))
        self.generator.step()
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        self.student.step()


def make_nodes(settings: Settings, federation: Federation) -> list[Node]:
    """T_k, trained to completion and frozen, and D_k, all from the same initial weights."""
    teachers = federation.local_models()
    channels = federation.networks.image_shape[0]
    nodes = []
    for client in federation.clients:
        if client.size:
            teacher = federation.networks.module(teachers[client.index]).requires_grad_(False)
            discriminator = federation.networks.new_module(
                lambda: PatchDiscriminator(channels, settings.discriminator_width), "discriminator"
            )
            learner = make_learner(settings, federation, discriminator)
            nodes.append(Node(settings, federation, client, teacher, learner))
    return nodes


def make_server(settings: Settings, federation: Federation) -> Server:
    """G, S, and of clients with samples their sizes and label counts (`labels`)."""
    student = federation.networks.initial()
    clients = [client for client in federation.clients if client.size]
    counts = federation.label_counts()[[client.index for client in clients]].float()
    sizes = counts.new_tensor([client.size for client in clients])
    generator = make_generator(settings, federation)
    learner = make_learner(settings, federation, student, is_student=True)
    return Server(generator, learner, size_weights(sizes), counts)


def make_generator(settings: Settings, federation: Federation) -> Learner:
    """G, to be trained."""
    channels, size, _ = federation.networks.image_shape
    upsampling = ("nearest", settings.second_upsampling)
    build = functools.partial(
        Generator, settings.latent, size, channels, settings.width, upsampling
    )
    return make_learner(settings, federation, federation.networks.new_module(build, "generator"))


def make_learner(
    settings: Settings, federation: Federation, module: nn.Module, *, is_student: bool = False
) -> Learner:
    """A network with the optimiser of the student, or of G and D_k, and a cosine over all steps."""
    parameters = module.parameters()
    optimizer: torch.optim.Optimizer
    if not is_student:
        betas = (settings.generator_beta, 0.999)
        optimizer = torch.optim.Adam(parameters, settings.generator_lr, betas=betas)
    elif settings.optimizer == "sgd":
        optimizer = torch.optim.SGD(parameters, settings.lr, momentum=0.9, weight_decay=3e-5)
    else:
        optimizer = torch.optim.Adam(parameters, settings.lr)
    steps = steps_per_epoch(settings.steps, settings.batch_size, federation.clients)
    steps *= settings.epochs
    end = settings.final_lr if is_student else 0.0
    return Learner(
        module, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, end)
    )


def snapshot_parts(nodes: Sequence[Node], **learners: Learner) -> dict[str, Any]:
    """What a snapshot keeps of clients and server, by name."""
    own = {f"{node.client.index} discriminator": node.discriminator for node in nodes}
    whole = {**learners, **own}
    return {key: part for name in whole for key, part in whole[name].parts(name).items()}


def generate(
    settings: Settings, federation: Federation, generator: nn.Module, latents: Stream
) -> torch.Tensor:
    """x = G(w) for fresh w, (batch size, c, h, w), normalised as network inputs are."""
    drawn = latents.normal(settings.batch_size, settings.latent)
    return federation.normalise(federation.forward(generator, drawn))


def make_samples(
    settings: Settings, federation: Federation, generator: nn.Module, count: int
) -> torch.Tensor:
    """`count` images of the final generator, uint8 (count, c, h, w)."""
    latents = federation.streams.shuffling("fediod samples").normal(count, settings.latent)
    generator.eval()
    with torch.no_grad():
        parts = [generator(part).mul(255).round().to(torch.uint8) for part in latents.split(500)]
    return torch.cat(parts)


def with_samples(
    settings: Settings, federation: Federation, student: Checkpoint, generator: nn.Module
) -> Checkpoint:
    """The student with `samples` images of the final generator, if any are wanted."""
    if not settings.samples:
        return student
    return replace(student, samples=make_samples(settings, federation, generator, settings.samples))
