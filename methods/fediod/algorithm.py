"""FedIOD: federated learning via input-output collaborative distillation (Gong et al., AAAI 2024).

Clients train their models T_k to completion; these never leave. Then the server learns a generator
G and a student S together. For every batch of generated images x = G(w) each client answers with
its logits T_k(x) and the patch scores of a discriminator D_k that it trains on the side to tell x
from its own images; for what the server asks of these answers it gets gradients with respect to x.
Only images, outputs and gradients cross the channel, and label counts.

D_k is, as in Eq. 2, the probability that an image is generated: it is trained to be low on the
client's images.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from federation.augmentation import augment
from federation.averaging import class_count_weights
from federation.client import Client, Shard
from federation.federation import Checkpoint, Federation
from federation.method import Method
from federation.remote import ask
from federation.seeds import Stream
from federation.training import predict, unit_range
from federation.voting import vote
from models.generative import Generator, PatchDiscriminator
from privacy.accounting import GaussianSteps, calibrate
from privacy.conventions import replaced_epsilon
from privacy.plan import GS_WGAN, RELEASED
from privacy.sanitising import SENSITIVITY_FACTOR, Released, clip, release, sanitise

RELEASED_STEPS, RELEASED_DELTA = 64, 1e-3
"""What the authors' DP code gives its accountant: steps an epoch, whatever their number, and
delta."""

# -- losses and weights --


def size_weights(sizes: torch.Tensor) -> torch.Tensor:
    """pi_k of Eq. 2: each client's share of all samples, (clients,)."""
    return sizes / sizes.sum()


def discriminator_loss(
    generated: torch.Tensor, own: torch.Tensor, logarithmic: bool
) -> torch.Tensor:
    """What a client minimises over D_k: E[D_k(x')] + E[1 - D_k(G(w))] of Eq. 2, from patch logits
    (n, h, w).

    With `logarithmic` (released code) the binary cross-entropy, summed over patches, averaged over
    both halves.
    """
    if logarithmic:
        real = F.binary_cross_entropy_with_logits(own, torch.zeros_like(own), reduction="sum")
        fake = F.binary_cross_entropy_with_logits(
            generated, torch.ones_like(generated), reduction="sum"
        )
        return (real + fake) / (len(own) + len(generated))
    return own.sigmoid().mean() + 1 - generated.sigmoid().mean()


def adversarial_loss(
    scores: torch.Tensor, weights: torch.Tensor, logarithmic: bool
) -> torch.Tensor:
    """What G minimises of Eq. 2, up to a constant: sum_k pi_k E[D_k(G(w))], from patch logits
    (clients, n, h, w).

    The printed bracket has pi_k on the clients' own images only, where G has no say and D_k = 1
    would be optimal; it is read as the weight of the client's whole term, as in the released code.
    With `logarithmic` (released code) the cross-entropy against "own", summed over patches.
    """
    if logarithmic:
        per_patch = F.binary_cross_entropy_with_logits(
            scores, torch.zeros_like(scores), reduction="none"
        )
        per_client = per_patch.sum(dim=(2, 3)).mean(dim=1)
    else:
        per_client = scores.sigmoid().mean(dim=(1, 2, 3))
    return weights @ per_client


def entropy(probabilities: torch.Tensor) -> torch.Tensor:
    """Shannon entropy in nats over the last dimension, 0 log 0 being 0."""
    return -torch.xlogy(probabilities, probabilities.clamp_min(1e-30)).sum(dim=-1)


def confidence_loss(probabilities: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """L_conf of Eq. 3: mean over the batch of sum_k pi_k H(q_k), probabilities (clients, n,
    classes).
    """
    return (weights @ entropy(probabilities)).mean()


def jensen_shannon(probabilities: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """JSD of Eq. 4 per sample, (n,): H(sum_k pi_k q_k) - sum_k pi_k H(q_k). L_unique of Eq. 5 is
    minus its mean.
    """
    mixture = torch.einsum("k,knc->nc", weights, probabilities)
    return entropy(mixture) - weights @ entropy(probabilities)


def released_diversity(probabilities: torch.Tensor) -> torch.Tensor:
    """The released code's term, which it adds: mean over clients of KL(mean over clients || q_k),
    clamped to [0.01, 0.99].

    It is low when clients agree, where Eq. 5 is low when they differ.
    """
    mean = probabilities.mean(dim=0).clamp(0.01, 0.99)
    divergences = [
        F.kl_div(own.clamp(0.01, 0.99).log(), mean, reduction="batchmean") for own in probabilities
    ]
    return torch.stack(divergences).mean()


def class_balance(probabilities: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The released code's term: sum_k pi_k sum_c p_k^c log2 p_k^c of the batch's mean prediction
    p_k; in bits.
    """
    return -(weights @ entropy(probabilities.mean(dim=1))) / math.log(2)


def label_ratio(counts: torch.Tensor) -> torch.Tensor:
    """First factor of Eq. 8 up to a factor per class: the share of class c among client k's labels,
    (clients, classes).

    Its denominator is the same for all clients and drops out when weights are normalised per class.
    """
    return counts / counts.sum(dim=1, keepdim=True).clamp(min=1)


def importance(labels: torch.Tensor, discriminators: torch.Tensor) -> torch.Tensor:
    """Eq. 8, normalised over clients for each class: (clients, n, classes).

    `labels` (clients, classes) is its first factor, `discriminators` (clients, n) its second,
    D_k(x) / E[D_k(x')]. For a class that nobody holds clients count alike.
    """
    weights = labels[:, None, :] * discriminators[:, :, None]
    total = weights.sum(dim=0)
    return torch.where(total > 0, weights / total.clamp_min(1e-30), 1 / len(weights))


def aggregate(logits: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """A of Eq. 9: sum_k pi_k(x) * z_k, logits (clients, n, classes), weights that broadcast to
    them; (n, classes).
    """
    return (weights * logits).sum(dim=0)


def mimic_loss(student: torch.Tensor, ensemble: torch.Tensor, temperature: float) -> torch.Tensor:
    """L_mimic, mean over the batch: T^2 KL(A || S) of Eq. 6, or at temperature 0 its limit for
    infinity, |S(x) - A|^2 of Eq. 10.

    The divergence is taken in float64: at the T = 10,001 of the released code it is lost in
    float32.
    """
    if temperature == 0:
        return (student - ensemble).square().sum(dim=1).mean()
    wide = (
        torch.float32 if student.device.type == "mps" else torch.float64
    )  # MPS has no double precision
    target = (ensemble.to(wide) / temperature).log_softmax(dim=1)
    divergence = F.kl_div(
        (student.to(wide) / temperature).log_softmax(dim=1),
        target,
        reduction="batchmean",
        log_target=True,
    )
    return (temperature**2 * divergence).to(student.dtype)


# -- the algorithm --


@dataclass
class Learner:
    """A network in training, with its optimiser and schedule."""

    module: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler

    def step(self) -> None:
        """A step down the gradient, and one along the schedule; then the gradients are dropped."""
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.schedule.step()

    def parts(self, name: str) -> dict[str, Any]:
        """What a snapshot keeps, by name."""
        return {
            name: self.module,
            f"{name} optimizer": self.optimizer,
            f"{name} schedule": self.schedule,
        }


@dataclass
class Node:
    """What client k holds in the second stage; it stays there."""

    client: Client
    teacher: nn.Module
    discriminator: Learner
    noises: Stream | None = None
    """What a private run draws in the present epoch."""

    def parts(self) -> dict[str, Any]:
        return self.discriminator.parts("discriminator")


@dataclass
class Server:
    """What the server holds in the second stage."""

    generator: Learner
    student: Learner
    pi: torch.Tensor
    """n_k / n, (clients,)."""
    counts: torch.Tensor
    """N_k^c, (clients, classes)."""

    def parts(self) -> dict[str, Any]:
        return {**self.generator.parts("generator"), **self.student.parts("student")}


@dataclass(frozen=True)
class FedIOD(Method):
    """Algorithm 1 with Eq. 2 to 11; the fields that the ablations switch are those of Table 6."""

    title = "FedIOD"
    sends = frozenset({"logits", "discriminator-outputs", "gradients", "labels"})
    protected: ClassVar[Mapping[str, frozenset[str]]] = {
        GS_WGAN: frozenset({"gradients", "votes"}),
        RELEASED: sends,
    }
    quick: ClassVar[Mapping[str, Any]] = {
        "epochs": 2,
        "steps": 50,
        "batch_size": 32,
        "width": 16,
        "discriminator_width": 16,
        "samples": 20,
        "lr": 0.01,
        "generator_lr": 2e-3,
        "mimic": 1e-4,
        "confidence": 0.1,
        "uniqueness": 0.1,
    }

    epochs: int = 300
    """Epochs of distillation (appendix)."""
    steps: int = 0
    """Steps in an epoch; 0 for as many as the largest client has batches (released code)."""
    batch_size: int = 64
    """Generated images in a step (appendix)."""
    latent: int = 100
    """Dimension of w, which is standard normal (CIFAR section)."""
    width: int = 64
    """Channels of the generator's last layer but one (MosaicKD, as the appendix says)."""
    discriminator_width: int = 128
    """Channels of the discriminators' first layer (released code)."""
    second_upsampling: str = "nearest"
    """How the generator's second enlargement interpolates: nearest in MosaicKD, bilinear in the
    released code."""
    optimizer: str = "adam"
    """The student's optimiser: adam (appendix), or sgd with momentum 0.9 and weight decay 3e-5
    (released code)."""
    lr: float = 1e-3
    """The student's learning rate, with a cosine over all steps (appendix)."""
    final_lr: float = 0.0
    """Where the student's cosine ends (appendix)."""
    generator_lr: float = 1e-3
    """Of Adam for G and D_k, with a cosine to 0 (appendix)."""
    generator_beta: float = 0.5
    """First beta of Adam for G and D_k (released code)."""
    augment_own: bool = False
    """Whether D_k sees its client's images augmented (released code), which G then learns to
    imitate: black borders."""
    logarithmic: bool = True
    """Whether L_gan is the cross-entropy of a classical GAN, as the text and the code have it, or
    linear, as Eq. 2 is printed."""
    gan_weights: str = "size"
    """pi_k in L_gan: `size` (Eq. 2), or `average` (Table 6)."""
    gan: float = 1.0
    """Weight of L_gan for the generator (Eq. 11 has no weights)."""
    mimic: float = 1.0
    """Weight of L_mimic for the generator; 0 leaves it out there. The student always learns by
    it."""
    confidence: float = 1.0
    """Weight of L_conf."""
    uniqueness: float = 1.0
    """Weight of L_unique."""
    diversity: float = 0.0
    """Weight of the released code's diversity term, which pulls the other way."""
    balance: float = 0.0
    """Weight of the released code's class-balance term."""
    weights: str = "eq8"
    """Weights of the ensemble: `eq8`; `eq8-own` with 1 - D_k for D_k; `size` (common in FL, Table
    6); `class-count`."""
    temperature: float = 0.0
    """tau of L_mimic; 0 stands for infinity, that is Eq. 10."""
    student_steps: int = 1
    """Student steps for each of the generator's: one on the same images (Algorithm 1), or several,
    all on fresh ones (released code: 5)."""
    samples: int = 10_000
    """Images generated at the end, for measures of their quality."""

    def __post_init__(self) -> None:
        for name, known in (
            ("weights", ("eq8", "eq8-own", "size", "class-count")),
            ("gan_weights", ("size", "average")),
            ("optimizer", ("adam", "sgd")),
            ("second_upsampling", ("nearest", "bilinear")),
        ):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"unknown {name} {getattr(self, name)!r}; known: {', '.join(known)}"
                )
        if self.student_steps != 1 and self.weights not in ("size", "class-count"):
            raise ValueError(
                f"weights {self.weights!r} need the discriminators, which do not see the images of"
                " extra student steps"
            )
        if min(self.epochs, self.batch_size, self.student_steps) < 1:
            raise ValueError("epochs, batch_size and student_steps must be at least 1")

    def fit(self, federation: Federation) -> Checkpoint:
        if federation.mechanism == GS_WGAN:
            return self.fit_privately(federation)
        nodes = self.make_nodes(federation)
        if federation.mechanism == RELEASED:
            self.note_released(federation)
        server = self.make_server(federation, nodes)
        parts: dict[str, Any] = {
            **server.parts(),
            **{f"{node.client.index} {n}": p for node in nodes for n, p in node.parts().items()},
        }
        for epoch in federation.rounds(self.epochs, alike=True, **parts):
            latents = federation.stream("fediod latents", epoch)
            streams = [
                federation.stream("fediod client", node.client.index, epoch) for node in nodes
            ]
            self.begin_epoch(federation, nodes, epoch)
            server.generator.module.train()
            server.student.module.train()
            for _ in federation.steps(self.steps_per_epoch(federation)):
                self.distillation_step(federation, server, nodes, latents, streams)
            federation.check_finite(server.student.module, server.generator.module)
            federation.track(server.student.module)
        student = federation.checkpoint(server.student.module, federation.network)
        return self.with_samples(federation, student, server.generator.module)

    def distillation_step(
        self,
        federation: Federation,
        server: Server,
        nodes: list[Node],
        latents: Stream,
        streams: list[Stream],
    ) -> None:
        """One distillation step of Algorithm 1."""
        # Input distillation: every client trains D_k on x = G(w) and its own images, and answers.
        images = self.generate(federation, server.generator.module, latents)
        answers = [
            self.answer(federation, node, images, stream)
            for node, stream in zip(nodes, streams, strict=True)
        ]
        logits, scores, own = (torch.stack(part) for part in zip(*answers, strict=True))
        # Output distillation.
        ensemble = aggregate(logits, self.ensemble_weights(server, scores.detach(), own))
        mimic = mimic_loss(
            federation.forward(server.student.module, images), ensemble, self.temperature
        )
        # Update: G against the student, then S.
        parameters = list(server.student.module.parameters())
        gradients = (
            torch.autograd.grad(mimic, parameters, retain_graph=True)
            if self.student_steps == 1
            else None
        )
        self.generator_loss(logits, scores, mimic, server.pi).backward(
            inputs=list(server.generator.module.parameters())
        )
        server.generator.step()
        if gradients is not None:
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient
            server.student.step()
        else:
            self.student_on_fresh_images(federation, server, nodes, latents)

    def student_on_fresh_images(
        self, federation: Federation, server: Server, nodes: list[Node], latents: Stream
    ) -> None:
        """The released code's student steps; their weights do not depend on the images."""
        none = torch.empty(0, device=federation.device)
        for _ in range(self.student_steps):
            with torch.no_grad():
                images = self.generate(federation, server.generator.module, latents)
                logits = torch.stack([ask_logits(federation, node, images) for node in nodes])
                ensemble = aggregate(logits, self.ensemble_weights(server, none, none))
            mimic_loss(
                federation.forward(server.student.module, images), ensemble, self.temperature
            ).backward()
            server.student.optimizer.step()
            server.student.optimizer.zero_grad(set_to_none=True)
        server.student.schedule.step()

    def generator_loss(
        self, logits: torch.Tensor, scores: torch.Tensor, mimic: torch.Tensor, pi: torch.Tensor
    ) -> torch.Tensor:
        """L_conf + L_unique - L_mimic - sum_k L_gan^k of Algorithm 1, as G minimises it."""
        gan_weights = pi if self.gan_weights == "size" else torch.full_like(pi, 1 / len(pi))
        probabilities = logits.softmax(dim=2)
        terms: tuple[tuple[float, Callable[[], torch.Tensor]], ...] = (
            (self.gan, lambda: adversarial_loss(scores, gan_weights, self.logarithmic)),
            (-self.mimic, lambda: mimic),
            (self.confidence, lambda: confidence_loss(probabilities, pi)),
            (-self.uniqueness, lambda: jensen_shannon(probabilities, pi).mean()),
            (self.diversity, lambda: released_diversity(probabilities)),
            (self.balance, lambda: class_balance(probabilities, pi)),
        )
        # A term that is off asks nothing of the clients.
        return torch.stack([weight * term() for weight, term in terms if weight]).sum()

    def ensemble_weights(
        self, server: Server, scores: torch.Tensor, own: torch.Tensor
    ) -> torch.Tensor:
        """pi_k^c(x), to broadcast to (clients, n, classes); constants to the generator.

        Patch logits (clients, n, h, w) and E[D_k(x')] (clients,) are only read for the weights of
        Eq. 8.
        """
        if self.weights == "size":
            return server.pi[:, None, None]
        if self.weights == "class-count":
            return class_count_weights(server.counts)[:, None]
        generated = scores.sigmoid().mean(dim=(2, 3))
        if self.weights == "eq8-own":
            generated, own = 1 - generated, 1 - own
        return importance(label_ratio(server.counts), generated / own[:, None].clamp_min(1e-6))

    # -- with differential privacy --

    def fit_privately(self, federation: Federation) -> Checkpoint:
        """Both stages again with nothing leaving a client but noisy gradients and noisy votes
        (Privacy Analysis).

        G learns by L_gan alone, since votes have no gradient; then the clients vote on some of its
        images, once, and S learns the winners. Both sums over clients are formed under secure
        aggregation.
        """
        assert federation.protection is not None
        plan, nodes = federation.protection.plan, self.make_nodes(federation)
        generator = self.make_generator(federation)
        steps = self.steps_per_epoch(federation)
        rate = plan.sample_rate or 1 / len(nodes)
        judged = self.epochs * steps * self.batch_size

        def released(noise: float) -> tuple[GaussianSteps, ...]:
            return (release(judged, noise, rate),)

        noise = calibrate(
            released, (1 - plan.votes_share) * plan.epsilon, plan.delta, plan.accountant
        )
        for node in nodes:
            federation.protection.spend(node.client, *released(noise))  # before the first of them
        parts: dict[str, Any] = {
            **generator.parts("generator"),
            **{f"{node.client.index} {n}": p for node in nodes for n, p in node.parts().items()},
        }
        for epoch in federation.rounds(self.epochs, alike=True, **parts):
            latents = federation.stream("fediod latents", epoch)
            streams = [
                federation.stream("fediod client", node.client.index, epoch) for node in nodes
            ]
            self.begin_epoch(federation, nodes, epoch)
            generator.module.train()
            for _ in federation.steps(steps):
                images = self.generate(federation, generator.module, latents)
                feedback = [
                    self.noisy_gradient(
                        federation, node, images.detach(), stream, rate, noise, len(nodes)
                    )
                    for node, stream in zip(nodes, streams, strict=True)
                ]
                images.backward(
                    torch.stack(feedback).sum(dim=0), inputs=list(generator.module.parameters())
                )
                generator.step()
            federation.check_finite(generator.module)
        federation.channel.round = self.epochs + 1
        images = self.make_samples(federation, generator.module, plan.queries)
        teachers = {node.client.index: node.teacher for node in nodes}
        labels = vote(
            federation,
            [node.client for node in nodes],
            lambda client: predict(teachers[client.index], images, normalise=federation.normalise),
            plan.queries,
            images=images,
        )
        student = federation.distill(labels, federation.task.loss, images)
        return self.with_samples(federation, student, generator.module)

    def note_released(self, federation: Federation) -> None:
        """What the released code's own accountant says of the noise that it adds, and what that
        leaves out.
        """
        assert federation.protection is not None
        released = Released(noise_multiplier=federation.protection.plan.noise_multiplier)
        noise, clients = released.noise_multiplier, len(federation.clients)
        steps = GaussianSteps(noise, 1 / clients, self.epochs * RELEASED_STEPS)
        claimed = replaced_epsilon(steps, RELEASED_DELTA, tight=False)
        federation.protection.note(
            "released DP has no epsilon: logits and the teachers' gradients leave without noise,"
            " every client answers in every step, and the noise is"
            f" {released.accounted_multiplier:g} sensitivities; its own accountant, with noise"
            f" multiplier {noise:g}, sample rate 1/{clients}, {RELEASED_STEPS} steps an epoch and"
            f" delta {RELEASED_DELTA:g}, says {claimed:.2f} for all {self.epochs} epochs"
        )

    def begin_epoch(self, federation: Federation, nodes: list[Node], epoch: int) -> None:
        """Give the clients of a private run their noise for an epoch."""
        if federation.protection is not None:
            for node in nodes:
                node.noises = federation.noise("fediod client", node.client.index, epoch)

    def noisy_gradient(
        self,
        federation: Federation,
        node: Node,
        images: torch.Tensor,
        stream: Stream,
        rate: float,
        noise: float,
        clients: int,
    ) -> torch.Tensor:
        """Client k's part of the gradient of L_gan with respect to the images, (n, c, h, w), with
        its share of the noise.

        The client trains D_k on them, as always, and judges each with probability `rate`, which
        nobody else learns. As in GS-WGAN, the gradient is clipped where it leaves the
        discriminator, to 1/n of the norm for one image since L_gan is a mean over n, and the sum
        over clients has a noise of `noise` times twice that. A sample may turn its client's
        gradient into any other of that norm, so the sum is drawn from (1 - q) N(0) + q N(g) or (1 -
        q) N(0) + q N(g'); at noise over twice the norm that costs no more than adding or removing a
        record, as the accountant counts.
        """
        assert federation.protection is not None
        assert node.noises is not None
        noises, clip_norm = node.noises, federation.protection.plan.gradient_clip / len(images)

        def on_client(shard: Shard, received: torch.Tensor) -> torch.Tensor:
            self.train_discriminator(shard, federation, node, received, stream)
            judged = (
                received.clone().requires_grad_().clone()
            )  # no leaf, whose gradient a plan's counter cannot follow
            scores = federation.forward(node.discriminator.module, judged)
            (gradient,) = torch.autograd.grad(
                adversarial_loss(scores[None], scores.new_ones(1), self.logarithmic), judged
            )
            drawn = (noises.uniform(len(received)) < rate)[:, None, None, None]
            share = (
                noise
                * SENSITIVITY_FACTOR
                * clip_norm
                / math.sqrt(clients)
                * noises.normal(*gradient.shape)
            )
            return clip(gradient, clip_norm) * drawn + share

        received = federation.channel.down(node.client.index, "images", {"images": images})[
            "images"
        ]
        sent = node.client.run(on_client, received)
        return federation.channel.up(node.client.index, "gradients", {"images": sent})["images"]

    # -- on the clients --

    def make_nodes(self, federation: Federation) -> list[Node]:
        """T_k, trained to completion and frozen, and D_k, all from the same initial weights."""
        teachers = federation.local_models()
        channels = federation.image_shape[0]
        nodes = []
        for client in federation.clients:
            if client.size:
                teacher = federation.module(teachers[client.index]).requires_grad_(False)
                discriminator = federation.new_module(
                    lambda: PatchDiscriminator(channels, self.discriminator_width), "discriminator"
                )
                nodes.append(Node(client, teacher, self.learner(federation, discriminator)))
        return nodes

    def answer(
        self, federation: Federation, node: Node, images: torch.Tensor, stream: Stream
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Client k's part of a step: logits (n, classes), patch logits (n, h, w), and E[D_k(x')],
        which is a constant.
        """
        own_score = torch.empty((), device=images.device)

        def on_client(shard: Shard, received: torch.Tensor) -> dict[str, torch.Tensor]:
            nonlocal own_score
            own_score = self.train_discriminator(shard, federation, node, received.detach(), stream)
            return {
                "logits": federation.forward(node.teacher, received),
                "discriminator-outputs": self.judge(federation, node, received),
            }

        logits, scores = ask(
            federation.channel,
            node.client.index,
            images,
            lambda received: node.client.run(on_client, received),
            ("logits", "discriminator-outputs"),
        )
        sent = federation.channel.up(node.client.index, "discriminator-outputs", {"own": own_score})
        return logits, scores, sent["own"]

    def train_discriminator(
        self,
        shard: Shard,
        federation: Federation,
        node: Node,
        generated: torch.Tensor,
        stream: Stream,
    ) -> torch.Tensor:
        """A step of D_k on the received images and as many of its own; returns E[D_k(x')] of this
        batch.
        """
        own = unit_range(shard.images_at(stream.choose(len(shard), len(generated))))
        if (
            self.augment_own
            and federation.augmentation is not None
            and stream.generator is not None
        ):
            crop_and_flip = replace(federation.augmentation, cutout=0)
            own = augment(own, crop_and_flip, stream.generator)
        on_generated, on_own = (
            self.judge(federation, node, images)
            for images in (generated, federation.normalise(own))
        )
        discriminator_loss(on_generated, on_own, self.logarithmic).backward()
        node.discriminator.step()
        return on_own.detach().sigmoid().mean()

    def judge(self, federation: Federation, node: Node, images: torch.Tensor) -> torch.Tensor:
        """Patch logits (n, h, w) of D_k. The released DP code clips and noises the gradient on its
        way into the last layer.
        """
        if federation.mechanism != RELEASED:
            return federation.forward(node.discriminator.module, images)
        assert federation.protection is not None
        assert node.noises is not None
        discriminator, generator = node.discriminator.module, node.noises.generator
        assert isinstance(discriminator, PatchDiscriminator)
        released = Released(noise_multiplier=federation.protection.plan.noise_multiplier)
        features = discriminator.layers[:-1](images)
        if generator is not None and features.requires_grad:  # a plan follows shapes alone

            def noisy(gradient: torch.Tensor) -> torch.Tensor:
                return sanitise(
                    gradient,
                    released.clip_norm(len(images)),
                    released.noise_multiplier,
                    released.sensitivity_factor,
                    generator=generator,
                )

            features.register_hook(noisy)
        logits: torch.Tensor = discriminator.layers[-1](features).squeeze(1)
        return logits

    # -- on the server --

    def steps_per_epoch(self, federation: Federation) -> int:
        return self.steps or max(
            -(-client.size // self.batch_size) for client in federation.clients
        )

    def make_server(self, federation: Federation, nodes: list[Node]) -> Server:
        """G, S, and what the clients tell of their data: sizes, and label counts as `labels`."""
        student = federation.initial(federation.network)
        sizes = torch.tensor(
            [node.client.size for node in nodes], device=federation.device, dtype=torch.float32
        )
        counts = federation.label_counts()[[node.client.index for node in nodes]].float()
        return Server(
            self.make_generator(federation),
            self.learner(federation, student, True),
            size_weights(sizes),
            counts,
        )

    def make_generator(self, federation: Federation) -> Learner:
        """G, to be trained."""
        channels, size, _ = federation.image_shape
        upsampling = ("nearest", self.second_upsampling)
        build = functools.partial(Generator, self.latent, size, channels, self.width, upsampling)
        return self.learner(federation, federation.new_module(build, "generator"))

    def learner(
        self, federation: Federation, module: nn.Module, is_student: bool = False
    ) -> Learner:
        """A network with the optimiser of the student, or of G and D_k, and a cosine over all
        steps.
        """
        optimizer: torch.optim.Optimizer
        if not is_student:
            optimizer = torch.optim.Adam(
                module.parameters(), self.generator_lr, betas=(self.generator_beta, 0.999)
            )
        elif self.optimizer == "sgd":
            optimizer = torch.optim.SGD(
                module.parameters(), self.lr, momentum=0.9, weight_decay=3e-5
            )
        else:
            optimizer = torch.optim.Adam(module.parameters(), self.lr)
        steps = self.epochs * self.steps_per_epoch(federation)
        end = self.final_lr if is_student else 0.0
        return Learner(
            module, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, end)
        )

    def generate(
        self, federation: Federation, generator: nn.Module, latents: Stream
    ) -> torch.Tensor:
        """x = G(w) for fresh w, normalised as network inputs are."""
        return federation.normalise(
            federation.forward(generator, latents.normal(self.batch_size, self.latent))
        )

    def with_samples(
        self, federation: Federation, student: Checkpoint, generator: nn.Module
    ) -> Checkpoint:
        """The student with `samples` images of the final generator, if any are wanted."""
        return (
            replace(student, samples=self.make_samples(federation, generator, self.samples))
            if self.samples
            else student
        )

    def make_samples(
        self, federation: Federation, generator: nn.Module, count: int
    ) -> torch.Tensor:
        """`count` images of the final generator, uint8 (count, c, h, w)."""
        latents = federation.stream("fediod samples").normal(count, self.latent)
        generator.eval()
        with torch.no_grad():
            parts = [
                generator(part).mul(255).round().to(torch.uint8) for part in latents.split(500)
            ]
        return torch.cat(parts)


def ask_logits(federation: Federation, node: Node, images: torch.Tensor) -> torch.Tensor:
    """Client k's logits for images, without gradients."""

    def answer(received: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": federation.forward(node.teacher, received)}

    (logits,) = ask(federation.channel, node.client.index, images, answer, ("logits",))
    return logits
