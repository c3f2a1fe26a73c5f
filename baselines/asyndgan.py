"""AsynDGAN: synthetic learning, train deep learning models without sharing medical image data
(Chang et al., CVPR 2020).

As FedIOD's Tables 2 to 4 compare with it: the server learns to make images of the clients' label
maps, and then trains its network on these images with the maps as labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

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
    synthesise,
    with_samples,
)
from fedtables.federation.shared.learner import Learner, steps_per_epoch
from fedtables.federation.tasks.base import conditioned
from fedtables.federation.watching import show


@dataclass(frozen=True)
class AsynDGAN(GanSettings, Method):
    """A conditional GAN with one generator and a discriminator on each client, then supervised
    learning from what it makes.
    """

    title = "AsynDGAN"
    sends = frozenset({"conditions", "discriminator-outputs", "losses", "gradients"})
    dense = True
    quick: ClassVar[Mapping[str, Any]] = {
        "generator": "resnet-generator-narrow",
        "discriminator_width": 8,
        "discriminator_layers": 1,
        "features": "vgg16-random",
        "generator_lr": 2e-3,
        "batch_size": 4,
        "steps": 6,
        "constant_epochs": 2,
        "decay_epochs": 1,
    }

    constant_epochs: int = 100
    """Epochs before `decay_epochs`, which have the full learning rate (released code)."""

    def fit(self, federation: Federation) -> Checkpoint:
        epochs = self.constant_epochs + self.decay_epochs
        critics = make_critics(self, federation, epochs)
        maps = [critic.send_conditions() for critic in critics]
        generator = make_generator(self, federation, epochs)
        steps = steps_per_epoch(self.steps, self.batch_size, federation.clients)
        for epoch in federation.rounds(
            epochs, alike=True, **snapshot_parts(critics, generator=generator)
        ):
            for critic in critics:
                critic.begin_epoch(epoch, steps)
            loss = torch.tensor(torch.nan)  # a plan takes the steps of one round for all
            with federation.streams.dropout("adversarial", epoch):
                for step in federation.steps(steps, name="adversarial"):
                    loss = self.adversarial_step(
                        federation, generator, critics, label_maps_at(critics, maps, step), step
                    )
            show("loss/generator", epoch, loss)
            federation.networks.check_finite(generator.module)
        images = [synthesise(federation, generator.module, held) for held in maps]
        student = federation.distill(torch.cat(maps), federation.task.loss, torch.cat(images))
        return with_samples(self, federation, student, generator.module, maps)

    def adversarial_step(
        self,
        federation: Federation,
        generator: Learner,
        critics: list[Critic],
        labels: list[torch.Tensor],
        step: int,
    ) -> torch.Tensor:
        """A step of every D_k, then of G; returns G's loss (), times `generator_scale`."""
        whole = slice(0, self.batch_size)
        answers = []
        for critic, held in zip(critics, labels, strict=True):
            conditions = conditioned(federation.task).condition(held)
            images = federation.forward(generator.module, conditions)
            answers.append(critic.answer(images, conditions, step, whole, {}))
        weights = client_weights(self, critics)
        losses = torch.stack([answer.losses.mean() for answer in answers])
        scores = torch.stack([answer.scores for answer in answers])
        loss = self.generator_scale * (adversarial_loss(scores, weights) + weights @ losses)
        loss.backward(inputs=list(generator.module.parameters()))
        generator.step()
        return loss.detach()
