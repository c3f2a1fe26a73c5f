"""Algorithm 1 of FedIOD.

Clients train their models T_k to completion; these never leave. Then the server learns a generator
G and a student S together. For every batch of generated images x = G(w) each client answers with
its logits T_k(x) and the patch scores of a discriminator D_k that it trains on the side to tell x
from its own images; for what the server asks of these answers it gets gradients with respect to x.
Only images, outputs and gradients cross the channel, and label counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.seeds import Stream
from fedtables.federation.shared.learner import steps_per_epoch
from fedtables.federation.shared.voting import vote
from fedtables.federation.training.loops import predict
from fedtables.federation.watching import show
from fedtables.methods.fediod.losses import (
    adversarial_loss,
    aggregate,
    class_balance,
    ensemble_weights,
    released_diversity,
    weighted_sum,
)
from fedtables.methods.fediod.parties import (
    RELEASED_FACTOR,
    Answer,
    Node,
    Server,
    Settings,
    generate,
    make_generator,
    make_nodes,
    make_samples,
    make_server,
    snapshot_parts,
    with_samples,
)
from fedtables.privacy.accounting import calibrate
from fedtables.privacy.conventions import replaced_epsilon
from fedtables.privacy.plan import GS_WGAN, RELEASED
from fedtables.privacy.releases import GaussianSteps
from fedtables.privacy.sanitising import SENSITIVITY_FACTOR, release

RELEASED_STEPS, RELEASED_DELTA = 64, 1e-3
"""What the authors' DP code gives its accountant: steps an epoch, whatever their number, and
delta."""


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
        parts = snapshot_parts(nodes, generator=server.generator, student=server.student)
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
        loss = self.generator_loss(logits, scores, mimic, server.pi)
        if self.student_steps == 1:
            server.update(loss, mimic)
        else:
            loss.backward(inputs=list(server.generator.module.parameters()))
            server.generator.step()
            self.student_on_fresh_images(federation, server, nodes, latents)
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

    def generator_loss(
        self, logits: torch.Tensor, scores: torch.Tensor, mimic: torch.Tensor, pi: torch.Tensor
    ) -> torch.Tensor:
        """L_conf + L_unique - L_mimic - sum_k L_gan^k of Algorithm 1, as G minimises it."""
        gan_weights = pi if self.gan_weights == "size" else torch.full_like(pi, 1 / len(pi))
        probabilities = logits.softmax(dim=2)
        return weighted_sum(
            (self.gan, lambda: adversarial_loss(scores, gan_weights, self.logarithmic)),
            *self.terms(probabilities, mimic, pi),
            (self.diversity, lambda: released_diversity(probabilities)),
            (self.balance, lambda: class_balance(probabilities, pi)),
        )

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


def fit_privately(settings: Settings, federation: Federation) -> Checkpoint:
    """Both stages under differential privacy (Privacy Analysis): nothing leaves a client but noisy
    gradients and noisy votes.

    G learns by L_gan alone, since votes have no gradient; then the clients vote on some of its
    images, once, and S learns the winners. Both sums over clients are formed under secure
    aggregation.
    """
    plan, nodes = federation.privacy.plan, make_nodes(settings, federation)
    generator = make_generator(settings, federation)
    steps = steps_per_epoch(settings.steps, settings.batch_size, federation.clients)
    rate = plan.sample_rate or 1 / len(nodes)
    judged = settings.epochs * steps * settings.batch_size

    def released(noise: float) -> tuple[GaussianSteps, ...]:
        return (release(judged, noise, rate),)

    noise = calibrate(released, (1 - plan.votes_share) * plan.epsilon, plan.delta, plan.accountant)
    for node in nodes:
        federation.privacy.spend(node.client, *released(noise))  # before the first of them
    parts = snapshot_parts(nodes, generator=generator)
    for epoch in federation.rounds(settings.epochs, alike=True, **parts):
        latents = federation.streams.shuffling("fediod latents", epoch)
        for node in nodes:
            node.begin_epoch(epoch)
        generator.module.train()
        for _ in federation.steps(steps, name="private"):
            images = generate(settings, federation, generator.module, latents)
            asked = images.detach()
            feedback = [node.noisy_gradient(asked, rate, noise, len(nodes)) for node in nodes]
            images.backward(
                torch.stack(feedback).sum(dim=0), inputs=list(generator.module.parameters())
            )
            generator.step()
        federation.networks.check_finite(generator.module)
    federation.channel.round = settings.epochs + 1
    images = make_samples(settings, federation, generator.module, plan.queries)
    teachers = {node.client.index: node.teacher for node in nodes}
    labels = vote(
        federation,
        [node.client for node in nodes],
        lambda client: predict(teachers[client.index], images, normalise=federation.normalise),
        plan.queries,
        images=images,
    )
    student = federation.distill(labels, federation.task.loss, images)
    return with_samples(settings, federation, student, generator.module)


def note_released(settings: Settings, federation: Federation) -> None:
    """What the released code's own accountant says of its noise, and leaves out."""
    noise, clients = federation.privacy.plan.noise_multiplier, len(federation.clients)
    steps = GaussianSteps(noise, 1 / clients, settings.epochs * RELEASED_STEPS)
    claimed = replaced_epsilon(steps, RELEASED_DELTA, tight=False)
    federation.privacy.note(
        "released DP has no epsilon: logits and the teachers' gradients leave without noise,"
        " every client answers in every step, and the noise is"
        f" {noise * RELEASED_FACTOR / SENSITIVITY_FACTOR:g} sensitivities; its own accountant, with"
        f" noise multiplier {noise:g}, sample rate 1/{clients}, {RELEASED_STEPS} steps an epoch and"
        f" delta {RELEASED_DELTA:g}, says {claimed:.2f} for all {settings.epochs} epochs"
    )
