"""Algorithm 1 of FedIOD.

Clients train their models T_k to completion; these never leave. Then the server learns a generator
G and a student S together. For every batch of generated images x = G(w) each client answers with
its logits T_k(x) and the patch scores of a discriminator D_k that it trains on the side to tell x
from its own images; for what the server asks of these answers it gets gradients with respect to x.
Only images, outputs and gradients cross the channel, and label counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from federation.data import Checkpoint
from federation.federation import Federation
from federation.seeds import Stream
from federation.shared.learner import steps_per_epoch
from federation.watching import show
from methods.fediod.losses import (
    adversarial_loss,
    aggregate,
    confidence_loss,
    ensemble_weights,
    jensen_shannon,
    mimic_loss,
)
from methods.fediod.parties import (
    Answer,
    Node,
    Server,
    generate,
    make_nodes,
    make_server,
    with_samples,
)
from methods.fediod.private import fit_privately
from methods.fediod.released import class_balance, note_released, released_diversity
from methods.fediod.settings import Settings
from privacy.plan import GS_WGAN, RELEASED


@dataclass(frozen=True)
class FedIOD(Settings):
    """Algorithm 1 with Eq. 2 to 11."""

    title = "FedIOD"
    sends = frozenset({"logits", "discriminator-outputs", "gradients", "labels"})
    protected: ClassVar[Mapping[str, frozenset[str]]] = {
        GS_WGAN: frozenset({"gradients", "votes"}),
        RELEASED: sends,
    }
    privacy: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"mechanism": GS_WGAN},
        "released": {"mechanism": RELEASED, "noise_multiplier": 10.0},
    }
    """Released: the noise of the code's recorded run; its default is 1.07, GS-WGAN's."""

    def fit(self, federation: Federation) -> Checkpoint:
        if federation.privacy.mechanism == GS_WGAN:
            return fit_privately(self, federation)
        nodes = make_nodes(self, federation)
        if federation.privacy.mechanism == RELEASED:
            note_released(self, federation)
        server = make_server(self, federation)
        generator, student = server.generator.module, server.student.module
        steps = steps_per_epoch(self.steps, self.batch_size, federation.clients)
        parts = server.parts()
        for node in nodes:
            parts |= node.parts()
        for epoch in federation.rounds(self.epochs, alike=True, **parts):
            latents = federation.streams.shuffling("fediod latents", epoch)
            for node in nodes:
                node.begin_epoch(epoch)
            generator.train()
            student.train()
            mimic = torch.tensor(torch.nan)  # a plan takes the steps of one round for all
            for _ in federation.steps(steps, name="distillation"):
                mimic = self.distillation_step(federation, server, nodes, latents)
            show("loss/student", epoch, mimic)
            federation.networks.check_finite(student, generator)
            federation.evaluation.track(student)
        checkpoint = federation.networks.checkpoint(student)
        return with_samples(self, federation, checkpoint, generator)

    def distillation_step(
        self, federation: Federation, server: Server, nodes: list[Node], latents: Stream
    ) -> torch.Tensor:
        """One distillation step of Algorithm 1; returns L_mimic ()."""
        # Input distillation: every client trains D_k on x = G(w) and its own images, and answers.
        images = generate(self, federation, server.generator.module, latents)
        answers = [node.answer(images) for node in nodes]
        logits, scores, mimic = self.output_distillation(federation, server, images, answers)
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
        if gradients is None:
            self.student_on_fresh_images(federation, server, nodes, latents)
            return mimic.detach()
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        server.student.step()
        return mimic.detach()

    def output_distillation(
        self,
        federation: Federation,
        server: Server,
        images: torch.Tensor,
        answers: Sequence[Answer],
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What the clients answer to images (n, c, h, w), logits (clients, n, classes) and patch
        logits (clients, n, h', w'), and L_mimic () of the student there.
        """
        logits, scores, own_scores = (torch.stack(part) for part in zip(*answers, strict=True))
        weights = ensemble_weights(
            self.weights, server.pi, server.counts, scores.detach(), own_scores
        )
        answer = federation.forward(server.student.module, images)
        return logits, scores, self.mimic_loss(answer, aggregate(logits, weights))

    def mimic_loss(self, student: torch.Tensor, ensemble: torch.Tensor) -> torch.Tensor:
        """L_mimic () between logits (n, classes), as it is set."""
        return mimic_loss(student, ensemble, self.temperature, self.printed_mimic)

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

    def student_on_fresh_images(
        self, federation: Federation, server: Server, nodes: list[Node], latents: Stream
    ) -> None:
        """The released code's student steps; their weights do not depend on the images."""
        none = torch.empty(0)
        weights = ensemble_weights(self.weights, server.pi, server.counts, none, none)
        for _ in range(self.student_steps):
            with torch.no_grad():
                images = generate(self, federation, server.generator.module, latents)
                logits = [node.logits(images) for node in nodes]
                ensemble = aggregate(torch.stack(logits), weights)
            answer = federation.forward(server.student.module, images)
            self.mimic_loss(answer, ensemble).backward()
            server.student.optimizer.step()
            server.student.optimizer.zero_grad(set_to_none=True)
        server.student.schedule.step()
