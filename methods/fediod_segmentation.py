"""FedIOD with a class for every pixel, and a generator that makes images of label maps (Gong et
al., AAAI 2024; Tables 2 to 4).

Clients train their models T_k to completion; these never leave, nor do their images. Their label
maps do: w of Algorithm 1 is a condition map, x = G(w) its image. First G and the clients' D_k learn
alone, against the perceptual distance from the real image of the same map too; then a student S
learns with them, from the teachers' logits for each pixel of x. What holds for a sample of the
paper's equations holds here for a pixel, but D_k(x) of Eq. 8, which is the mean over patches of x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.shared.conditional_gan import (
    Critic,
    GanSettings,
    adversarial_loss,
    client_weights,
    label_maps_at,
    make_critics,
    make_generator,
    snapshot_parts,
    with_samples,
)
from fedtables.federation.shared.learner import Learner, steps_per_epoch
from fedtables.federation.tasks.base import conditioned
from fedtables.federation.tasks.pixels import Regions
from fedtables.federation.watching import show
from fedtables.methods.fediod import parties
from fedtables.methods.fediod.losses import (
    Objective,
    aggregate,
    ensemble_weights,
    size_weights,
    weighted_sum,
)
from fedtables.results.names import check_known
from fedtables.results.numbers import Count, Positive, Share


@dataclass(frozen=True)
class FedIODSegmentation(Objective, GanSettings, Method):
    """Algorithm 1 with Eq. 2 to 11, for segmentation; defaults are those of the nuclei (Tables 3, 4
    and 8).
    """

    title = "FedIOD"
    sends = frozenset({"conditions", "logits", "discriminator-outputs", "losses", "gradients"})
    dense = True
    quick: ClassVar[Mapping[str, Any]] = {
        "generator": "resnet-generator-narrow",
        "discriminator_width": 8,
        "discriminator_layers": 1,
        "features": "vgg16-random",
        "generator_lr": 5e-3,
        "lr": 0.01,
        "batch_size": 4,
        "steps": 8,
        "warmup_epochs": 2,
        "epochs": 2,
        "decay_epochs": 0,
        "mimic": 1e-3,
        "confidence": 0.1,
        "uniqueness": 0.1,
    }

    warmup_epochs: int = 100
    """Epochs of the first part, in which G and D_k learn alone (appendix; none for BraTS)."""
    epochs: Count = 300
    """Epochs of distillation after it (appendix; 400 for BraTS)."""
    generator_lr: Positive = 1e-4
    """Of Adam for G and D_k (appendix; 2e-4 for BraTS)."""
    decay_epochs: int = 0
    """Epochs at the end in which this learning rate falls to nearly 0 (released code: 200)."""
    lr: Positive = 1e-4
    """The student's learning rate, which is constant (appendix; 2e-4 for BraTS)."""
    student_beta: Share = 0.9
    """First beta of the student's Adam (released code: 0.5)."""
    weight_decay: float = 0.0
    """Of the student (released code: 1e-4)."""
    amsgrad: bool = False
    """Whether the student's Adam is AMSGrad (released code)."""
    judges: str = "all"
    """Images that D_k judges: `all` (Algorithm 1, Eq. 8), for which every client is sent the label
    maps of all, or `own`, those of its own maps (released code)."""
    gan_weights: str = "size"
    """Weight of each client in L_gan and the perceptual loss: `size` for pi_k of Eq. 2, or `one`
    (released code)."""
    generator_scale: float = 1.0
    """Weight of L_gan, with the perceptual loss in it, for G (Eq. 11 has no weights; released code:
    0.1)."""
    discriminator_scale: float = 1.0
    """What D_k's loss is multiplied by (released code: 0.05)."""
    l1: float = 0.0
    """Weight in L_gan of the mean absolute difference from the real image of the label map."""
    perceptual: float = 10.0
    """Weight in L_gan of the perceptual distance from that image (released code; the paper has no
    number)."""
    distillation: float = 1.0
    """Weight of L_mimic for the student (released code: 0.04, for its loss has no factor tau^2)."""
    supervised: float = 0.0
    """Weight for the student of the task's loss against the label map (released code: 1)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = ("eq8", "eq8-own", "size", "class-count", "sum")
        check_known(self, judges=("all", "own"), weights=weights)
        if self.judges == "own" and self.weights.startswith("eq8"):
            raise ValueError(
                f"weights {self.weights!r} need every client's D_k on every image; set judges = all"
            )

    def fit(self, federation: Federation) -> Checkpoint:
        server, critics = make_parties(self, federation)
        generator, student = server.generator.module, server.student.module
        steps = steps_per_epoch(self.steps, self.batch_size, federation.clients)
        parts = snapshot_parts(critics, generator=server.generator, student=server.student)
        for epoch in federation.rounds(self.warmup_epochs + self.epochs, **parts):
            server.epoch = epoch
            warming = epoch <= self.warmup_epochs
            take = self.warmup_step if warming else self.distillation_step
            name = "warm-up" if warming else "distillation"
            for critic in critics:
                critic.begin_epoch(epoch, steps)
            student.train()
            loss = torch.tensor(torch.nan)  # a plan takes the steps of one round for all
            with federation.streams.dropout(name, epoch):
                for step in federation.steps(steps, name=name):
                    loss = take(federation, server, critics, step)
            show("loss/generator" if warming else "loss/student", epoch, loss)
            federation.networks.check_finite(student, generator)
            federation.evaluation.track(student)
        checkpoint = federation.networks.checkpoint(student)
        return with_samples(self, federation, checkpoint, generator, server.maps)

    def warmup_step(
        self, federation: Federation, server: Server, critics: list[Critic], step: int
    ) -> torch.Tensor:
        """A step of every D_k, then of G against them; returns L_gan ()."""
        labels = torch.cat(label_maps_at(critics, server.maps, step))
        answered = self.ask_all(federation, server, critics, labels, step, teach=False)
        loss = self.realism_loss(critics, answered)
        loss.backward(inputs=list(server.generator.module.parameters()))
        server.generator.step()
        return loss.detach()

    def distillation_step(
        self, federation: Federation, server: Server, critics: list[Critic], step: int
    ) -> torch.Tensor:
        """One distillation step of Algorithm 1; returns L_mimic ()."""
        labels = torch.cat(label_maps_at(critics, server.maps, step))
        # Input distillation: every client trains D_k on x = G(w) and its own images, and answers.
        answered = self.ask_all(federation, server, critics, labels, step, teach=True)
        # Output distillation, for each pixel.
        weights = self.teacher_weights(server, answered)
        seen = self.seen(federation, server, answered.images, step)
        outputs = federation.forward(server.student.module, seen)
        ensemble = aggregate(answered.logits, weights[..., None, None])
        mimic = self.mimic_loss(self.as_scores(outputs), ensemble)
        learnt = self.distillation * mimic
        if self.supervised:
            learnt = learnt + self.supervised * federation.task.loss(outputs, labels).mean()
        realism = self.realism_loss(critics, answered)
        server.update(self.generator_loss(realism, answered.logits, mimic, server.pi), learnt)
        return mimic.detach()

    def realism_loss(self, critics: list[Critic], answered: Answered) -> torch.Tensor:
        """L_gan of Eq. 2 with the clients' distances from their real images, as G minimises it."""
        weights = client_weights(self, critics)
        apart = weights @ answered.losses.mean(dim=1)
        return self.generator_scale * (adversarial_loss(answered.scores, weights) + apart)

    def mimic_loss(self, student: torch.Tensor, ensemble: torch.Tensor) -> torch.Tensor:
        """L_mimic () between scores (n, classes, h, w), of every pixel, as it is set."""
        return super().mimic_loss(by_pixel(student), by_pixel(ensemble))

    def generator_loss(
        self, realism: torch.Tensor, logits: torch.Tensor, mimic: torch.Tensor, pi: torch.Tensor
    ) -> torch.Tensor:
        """L_conf + L_unique - L_mimic + `realism` of Algorithm 1, as G minimises it; logits
        (clients, n, classes, h, w).
        """
        probabilities = by_pixel(logits.softmax(dim=2))
        return weighted_sum((1.0, lambda: realism), *self.terms(probabilities, mimic, pi))

    def seen(
        self, federation: Federation, server: Server, images: torch.Tensor, step: int
    ) -> torch.Tensor:
        """Generated images (n, c, h, w) in [-1, 1] as teachers and student see them in a step."""
        return federation.normalise((images + 1) / 2)

    def as_scores(self, outputs: torch.Tensor) -> torch.Tensor:
        """A network's outputs (..., outputs, h, w) as what Eq. 3 to 10 are of."""
        return as_classes(outputs)

    def teacher_weights(self, server: Server, answered: Answered) -> torch.Tensor:
        """pi_k^c(x) of Eq. 8, to broadcast to (clients, n, classes): one for all pixels of x."""
        if self.weights == "sum":
            return torch.ones_like(server.pi)[:, None, None]
        scores, own_scores = answered.scores.detach(), answered.own_scores
        return ensemble_weights(self.weights, server.pi, server.counts, scores, own_scores)

    def ask_all(
        self,
        federation: Federation,
        server: Server,
        critics: list[Critic],
        labels: torch.Tensor,
        step: int,
        *,
        teach: bool,
    ) -> Answered:
        """x = G(w) for label maps (n, h, w), the batches of all clients in turn, and what the
        clients say of it; their teachers too with `teach`.
        """
        channel, task = federation.channel, conditioned(federation.task)
        conditions = task.condition(labels)
        images = federation.forward(server.generator.module, conditions)
        answers, own_scores = [], []
        for number, critic in enumerate(critics):
            own = slice(number * self.batch_size, (number + 1) * self.batch_size)
            client = critic.client.index
            others = {"logits": self.teacher(federation, server, number, step)} if teach else {}
            if self.judges == "all":
                maps = {"maps": labels.to(torch.int16)}
                received = channel.down(client, "conditions", maps)["maps"].long()
                answer = critic.answer(images, task.condition(received), step, own, others)
            elif teach:
                answer = critic.answer(images, conditions[own], step, own, others)
            else:
                first = slice(0, self.batch_size)
                answer = critic.answer(images[own], conditions[own], step, first, others)
            answers.append(answer)
            if teach and self.weights.startswith("eq8"):
                score = {"own": critic.own_score}
                own_scores.append(channel.up(client, "discriminator-outputs", score)["own"])
        scores, losses, outputs = zip(*answers, strict=True)
        none = images.new_empty(0)
        return Answered(
            images,
            torch.stack(scores),
            torch.stack(losses),
            self.as_scores(torch.stack([o for (o,) in outputs])) if teach else none,
            torch.stack(own_scores) if own_scores else none,
        )

    def teacher(
        self, federation: Federation, server: Server, number: int, step: int
    ) -> Callable[[torch.Tensor], torch.Tensor]:
        """T_k as it answers in a step: outputs (n, outputs, h, w) of images in [-1, 1]."""
        module = server.teachers[number]
        return lambda images: federation.forward(
            module, self.seen(federation, server, images, step)
        )


@dataclass
class Answered:
    """What the clients said in a step."""

    images: torch.Tensor
    """x = G(w), (n, c, h, w) in [-1, 1]."""
    scores: torch.Tensor
    """Patch logits (clients, n or batch size, h', w') of what each D_k judged."""
    losses: torch.Tensor
    """Distances (clients, batch size) of x from the real images of the same label maps."""
    logits: torch.Tensor
    """T_k(x), (clients, n, classes, h, w); empty in the warm-up."""
    own_scores: torch.Tensor
    """E[D_k(x')], (clients,); empty where no weight asks for it."""


@dataclass
class Server(parties.Server):
    """What the server holds; counts are of pixels of each class."""

    maps: list[torch.Tensor]
    """Label maps of each client, int16 (n_k, h, w)."""
    teachers: list[nn.Module]
    """T_k of each client; only the client calls it."""
    epoch: int = 0
    """The present one."""


def make_parties(
    settings: FedIODSegmentation, federation: Federation
) -> tuple[Server, list[Critic]]:
    """T_k, trained to completion and frozen; G, S and all D_k before training; and the label maps
    that the clients send.

    Raises ValueError for regions that may lie inside each other: Eq. 3 to 10 are of classes.
    """
    if isinstance(federation.task, Regions) and federation.task.outputs > 1:
        names = ", ".join(name for name, _ in federation.task.regions)
        raise ValueError(
            "FedIOD distils classes that exclude each other, and a pixel may be of several of"
            f" {names}"
        )
    epochs, task = settings.warmup_epochs + settings.epochs, conditioned(federation.task)
    trained = federation.local_models()
    critics = make_critics(settings, federation, epochs)
    maps = [critic.send_conditions() for critic in critics]
    counts = torch.stack([task.pixel_counts(held) for held in maps]).float()
    counts = counts.to(federation.networks.device)
    pi = size_weights(counts.new_tensor([critic.client.size for critic in critics]))
    own = (trained[critic.client.index] for critic in critics)
    teachers = [federation.networks.module(model).requires_grad_(False) for model in own]
    student = federation.networks.initial()
    optimizer = torch.optim.Adam(
        student.parameters(),
        settings.lr,
        betas=(settings.student_beta, 0.999),
        weight_decay=settings.weight_decay,
        amsgrad=settings.amsgrad,
    )
    constant = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    generator = make_generator(settings, federation, epochs)
    learner = Learner(student, optimizer, constant)
    return Server(generator, learner, pi, counts, maps, teachers), critics


def as_classes(logits: torch.Tensor) -> torch.Tensor:
    """Logits (..., outputs, h, w) with one channel for each class: of a task with a single logit z,
    the foreground's, (0, z), whose softmax has the sigmoid of z.
    """
    if logits.shape[-3] > 1:
        return logits
    return torch.cat([torch.zeros_like(logits), logits], dim=-3)


def by_pixel(maps: torch.Tensor) -> torch.Tensor:
    """Maps (..., n, classes, h, w) as (..., n * h * w, classes): every pixel a sample."""
    return maps.movedim(-3, -1).flatten(-4, -2)
