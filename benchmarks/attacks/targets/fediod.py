"""FedIOD: for the server's images of the first distillation step a client sends logits, patch
scores, the mean score of its own images, and the gradient with respect to the server's.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fedtables.benchmarks.attacks.answers import Inquiry, Observed
from fedtables.benchmarks.scenarios.assembly import make_method
from fedtables.benchmarks.tables import registry
from fedtables.federation.client import Client
from fedtables.federation.federation import Federation
from fedtables.methods.fediod import FedIOD
from fedtables.methods.fediod.losses import discriminator_loss
from fedtables.methods.fediod.parties import generate, make_nodes, make_server
from fedtables.models.generative import PatchDiscriminator
from fedtables.privacy.attacks.gradients import double
from fedtables.privacy.attacks.matching import trained_weights

TABLE = "fediod/table1"
COLUMN = {"dataset": "cifar10", "alpha": "1"}


@dataclass(frozen=True)
class Exchange:
    """What crosses between the server and one client of FedIOD in a distillation step, float64."""

    images: Tensor
    """x (m, c, h, w), as networks take them."""
    logits: Tensor
    """T_k(x), (m, classes)."""
    scores: Tensor
    """Patch scores D_k(x), (m, h / 4, w / 4)."""
    own: Tensor
    """E[D_k(x')], a scalar."""
    asked: tuple[Tensor, Tensor]
    """The server's gradients with respect to logits and scores."""
    gradient: Tensor
    """The client's, with respect to x."""


def first_step(method: FedIOD, federation: Federation, client: Client) -> Exchange:
    """The first distillation step of FedIOD, as its server and the client see it."""
    nodes = make_nodes(method, federation)
    server = make_server(method, federation)
    latents = federation.streams.shuffling("fediod latents", 1)
    images = generate(method, federation, server.generator.module, latents).detach()
    received = [images.clone().requires_grad_() for _ in nodes]
    for node in nodes:
        node.begin_epoch(1)
    answers = [node.answer(asked) for node, asked in zip(nodes, received, strict=True)]
    logits, scores, mimic = method.output_distillation(federation, server, images, answers)
    loss = method.generator_loss(logits, scores, mimic, server.pi)
    asked_logits, asked_scores = torch.autograd.grad(loss, (logits, scores), retain_graph=True)
    position = [node.client.index for node in nodes].index(client.index)
    (gradient,) = torch.autograd.grad(loss, received[position])
    asked = (asked_logits[position], asked_scores[position])
    answer = (logits[position], scores[position], answers[position][2])
    x, t, d, e, asked_t, asked_d, feedback = (
        tensor.detach().double() for tensor in (images, *answer, *asked, gradient)
    )
    return Exchange(x, t, d, e, (asked_t, asked_d), feedback)


def observe(inquiry: Inquiry, federation: Federation, client: Client) -> Observed:
    """What the client answers in the first step: logits, scores, E[D_k(x')] and gradient by x."""
    method = make_method(registry.find_method("fediod"), inquiry.config())
    assert isinstance(method, FedIOD)
    seen = first_step(method, federation, client)
    teacher = double(federation.networks.initial(client.network)).eval()
    channels = federation.networks.image_shape[0]
    critic = double(
        federation.networks.new_module(
            lambda: PatchDiscriminator(channels, method.discriminator_width), "discriminator"
        )
    ).train()

    def answers_of(
        weights: Mapping[str, Tensor], critic_weights: Mapping[str, Tensor], private_score: Tensor
    ) -> tuple[Tensor, ...]:
        x = seen.images.clone().requires_grad_()
        logits, scores = (
            functional_call(teacher, dict(weights), (x,)),
            _critic(critic, critic_weights, x),
        )
        (gradient,) = torch.autograd.grad((logits, scores), x, seen.asked, create_graph=True)
        return logits, scores, private_score, gradient

    initial = dict(critic.named_parameters())
    known = answers_of(
        dict(teacher.named_parameters()), initial, torch.zeros((), dtype=torch.float64)
    )
    base = [part.detach() for part in known]

    def answer(images: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        weights = trained_weights(teacher, images, labels, inquiry.threat)
        critic_weights, private_score = _critic_step(method, critic, initial, seen.images, images)
        return tuple(
            a - b
            for a, b in zip(answers_of(weights, critic_weights, private_score), base, strict=True)
        )

    sent = (seen.logits, seen.scores, seen.own, seen.gradient)
    return Observed(tuple(a - b for a, b in zip(sent, base, strict=True)), answer)


def _critic(critic: nn.Module, weights: Mapping[str, Tensor], images: Tensor) -> Tensor:
    """Patch scores with these weights, in training mode; buffers stay as they are."""
    buffers = {name: buffer.clone() for name, buffer in critic.named_buffers()}
    scores: Tensor = functional_call(critic, {**weights, **buffers}, (images,))
    return scores


def _critic_step(
    method: FedIOD,
    critic: nn.Module,
    weights: Mapping[str, Tensor],
    generated: Tensor,
    dummy: Tensor,
) -> tuple[dict[str, Tensor], Tensor]:
    """D_k after its step on x and a batch of the dummy image, and E[D_k(x')] before it. Adam's
    first step follows the gradient's sign, which has no derivative; here each weight moves by lr g
    / (|g| + r), r being the root mean square of g over its tensor.
    """
    private_scores = _critic(critic, weights, dummy.expand(len(generated), *dummy.shape[1:]))
    loss = discriminator_loss(
        _critic(critic, weights, generated), private_scores, method.logarithmic
    )
    gradients = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
    moved = {
        name: (
            weight.detach() - method.generator_lr * g / (g.abs() + g.square().mean().sqrt() + 1e-12)
        )
        for (name, weight), g in zip(weights.items(), gradients, strict=True)
    }
    return moved, private_scores.sigmoid().mean()
