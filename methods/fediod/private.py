"""FedIOD under differential privacy (Privacy Analysis): nothing leaves a client but noisy gradients
and noisy votes.
"""

from __future__ import annotations

import math

import torch

from federation.client import Shard
from federation.data import Checkpoint
from federation.federation import Federation
from federation.shared.learner import steps_per_epoch
from federation.shared.voting import vote
from federation.training.loops import predict
from methods.fediod.losses import adversarial_loss
from methods.fediod.parties import (
    Node,
    generate,
    make_generator,
    make_nodes,
    make_samples,
    with_samples,
)
from methods.fediod.settings import Settings
from privacy.accounting import calibrate
from privacy.releases import GaussianSteps
from privacy.sanitising import SENSITIVITY_FACTOR, clip, release


def fit_privately(settings: Settings, federation: Federation) -> Checkpoint:
    """Both stages of Algorithm 1 with noise on all that leaves a client.

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
    parts = generator.parts("generator")
    for node in nodes:
        parts |= node.parts()
    for epoch in federation.rounds(settings.epochs, alike=True, **parts):
        latents = federation.streams.shuffling("fediod latents", epoch)
        for node in nodes:
            node.begin_epoch(epoch)
        generator.module.train()
        for _ in federation.steps(steps, name="private"):
            images = generate(settings, federation, generator.module, latents)
            feedback = [
                noisy_gradient(node, images.detach(), rate, noise, len(nodes)) for node in nodes
            ]
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


def noisy_gradient(
    node: Node, images: torch.Tensor, rate: float, noise: float, clients: int
) -> torch.Tensor:
    """Client k's part of the gradient of L_gan with respect to the images, (n, c, h, w), with its
    share of the noise.

    The client trains D_k on them, as always, and judges each with probability `rate`, which nobody
    else learns. As in GS-WGAN, the gradient is clipped where it leaves the discriminator, to 1/n of
    the norm for one image since L_gan is a mean over n, and the sum over clients has a noise of
    `noise` times twice that. A sample may turn its client's gradient into any other of that norm,
    so the sum is drawn from (1 - q) N(0) + q N(g) or (1 - q) N(0) + q N(g'); at noise over twice
    the norm that costs no more than adding or removing a record, as the accountant counts.
    """
    federation, draws = node.federation, node.noise
    assert draws is not None
    clip_norm = federation.privacy.plan.gradient_clip / len(images)

    def on_client(shard: Shard, received: torch.Tensor) -> torch.Tensor:
        node.train_discriminator(shard, received)
        # No leaf, whose gradient a plan's counter cannot follow.
        judged = received.clone().requires_grad_().clone()
        scores = federation.forward(node.discriminator.module, judged)
        loss = adversarial_loss(scores[None], scores.new_ones(1), node.settings.logarithmic)
        (gradient,) = torch.autograd.grad(loss, judged)
        drawn = (draws.uniform(len(received)) < rate)[:, None, None, None]
        scale = noise * SENSITIVITY_FACTOR * clip_norm / math.sqrt(clients)
        share = scale * draws.normal(*gradient.shape)
        return clip(gradient, clip_norm) * drawn + share

    channel, index = federation.channel, node.client.index
    received = channel.down(index, "images", {"images": images})["images"]
    sent = node.client.run(on_client, received)
    return channel.up(index, "gradients", {"images": sent})["images"]
