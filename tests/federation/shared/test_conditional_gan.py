"""The conditional GAN between a server and its clients' critics, in numbers to compute by hand."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from fedtables.federation.shared.conditional_gan import (
    GanSettings,
    adversarial_loss,
    client_weights,
    discriminator_loss,
    label_maps_at,
    make_critics,
    make_learner,
    reference_loss,
)
from fedtables.federation.shared.learner import steps_per_epoch
from fedtables.models.extractors import FeatureNetwork
from tests.federation.tiny import make_dense_federation, make_federation, rectangles
from tests.methods.fediod.cases import LN3, PI, patch_logits

LN2, LN4 = math.log(2), math.log(4)
SMALL = GanSettings(
    generator="resnet-generator-narrow",
    discriminator_width=4,
    discriminator_layers=1,
    features="vgg16-random",
    batch_size=3,
)


# -- losses --


def test_a_discriminator_loses_by_what_it_does_not_tell_apart():
    nothing = torch.zeros(2, 1, 2)
    assert discriminator_loss(nothing, nothing).item() == pytest.approx(2 * LN2)
    # D = 3/4 of what is generated, 1/2 and 1/4 of its own
    loss = discriminator_loss(torch.full((1, 1, 1), LN3), torch.tensor([[[0.0, -LN3]]]))
    assert loss.item() == pytest.approx(math.log(4 / 3) + (LN2 + math.log(4 / 3)) / 2)


def test_a_generator_loses_by_what_each_client_finds_generated():
    # -log(1 - D) of 1/2, 3/4; 1/4, 1/2 at the first client, of 3/4 at the second
    first, second = (LN2 + LN4 + math.log(4 / 3) + LN2) / 4, LN4
    loss = adversarial_loss(patch_logits(), torch.ones(2))
    assert loss.item() == pytest.approx(first + second)
    loss = adversarial_loss(patch_logits(), PI)
    assert loss.item() == pytest.approx(0.75 * first + 0.25 * second)


class TwoScales(nn.Module):
    """The image, and the image twice."""

    def forward(self, images):
        return images, 2 * images


def test_the_distance_from_the_real_image_is_l1_and_squared_features():
    images = torch.tensor([[[[-1.0, 1.0]]], [[[0.0, 0.0]]]])
    own = torch.tensor([[[[0.0, 1.0]]], [[[0.0, 0.0]]]])
    distance = reference_loss(GanSettings(l1=10.0, perceptual=0.0), None, images, own)
    assert distance.tolist() == [5, 0]
    features = FeatureNetwork(TwoScales(), [0.5] * 3, [0.25] * 3)
    # in [0, 1] they differ by 1/2 in one of two pixels, that is by 2 when normalised: 4/2 and 16/2
    distance = reference_loss(GanSettings(l1=0.0, perceptual=3.0), features, images, own)
    assert distance.tolist() == pytest.approx([3 * (2 + 8) / 2, 0])


# -- who is asked for what --


def test_numbers_that_two_bytes_cannot_hold_are_refused():
    federation = make_dense_federation()
    (critic, _) = make_critics(SMALL, federation, epochs=1)
    federation.clients[0].run(lambda shard: shard._targets.fill_(40_000))
    with pytest.raises(ValueError, match="label maps have numbers up to 32767, not 40000"):
        critic.send_conditions()


def test_an_epoch_takes_every_sample_and_a_smaller_client_begins_again():
    federation = make_dense_federation((8, 2))
    critics = make_critics(SMALL, federation, epochs=1)
    steps = steps_per_epoch(SMALL.steps, SMALL.batch_size, federation.clients)
    assert steps == 3
    for critic in critics:
        critic.begin_epoch(1, steps)
    taken = [torch.cat([critic.positions(step) for step in range(3)]) for critic in critics]
    assert sorted(taken[0][:8].tolist()) == [*range(8)]
    assert taken[0][8] == taken[0][0]
    assert torch.equal(taken[1], taken[1][:2].repeat(5)[:9])
    maps = [torch.arange(8), torch.arange(100, 102)]
    labels = label_maps_at(critics, maps, 1)
    assert torch.equal(labels[0], taken[0][3:6])
    assert torch.equal(labels[1], 100 + taken[1][3:6])
    critics[0].begin_epoch(2, steps)
    assert not torch.equal(critics[0].order[:8], taken[0][:8])


def test_clients_without_samples_have_no_critic_and_weights_follow_the_sizes():
    federation = make_dense_federation((6, 0, 2))
    critics = make_critics(SMALL, federation, epochs=1)
    assert [critic.client.index for critic in critics] == [0, 2]
    assert client_weights(SMALL, critics).tolist() == [1, 1]
    assert client_weights(GanSettings(gan_weights="size"), critics).tolist() == [0.75, 0.25]
    first, second = (critic.discriminator.module.state_dict() for critic in critics)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_discriminator_tells_pairs_by_their_conditions():
    federation = make_dense_federation()
    critic, _ = make_critics(replace(SMALL, generator_lr=0.01), federation, epochs=100)
    images, masks = rectangles(8, 0)
    images, conditions = images.float() / 127.5 - 1, federation.task.condition(masks)
    for _ in range(40):  # generated pairs are its own images beside their conditions turned round
        critic.train_discriminator(images, -conditions, images, conditions)
    own, turned = critic.judge(images, conditions), critic.judge(images, -conditions)
    assert own.mean() < -1 < 1 < turned.mean()
    assert 0 < critic.own_score < 0.3


# -- what is trained and made --


def test_the_learning_rate_is_constant_then_falls_by_equal_amounts():
    federation = make_dense_federation()
    settings = GanSettings(batch_size=4, decay_epochs=2, generator_lr=3.0)  # two steps an epoch
    learner = make_learner(settings, federation, nn.Linear(1, 1), epochs=4)
    rates = []
    for _ in range(8):
        rates.append(learner.schedule.get_last_lr()[0])
        learner.step()
    assert rates == pytest.approx([3, 3, 3, 3, 2, 2, 1, 1])


def test_a_task_without_label_maps_is_refused():
    with pytest.raises(ValueError, match="needs a task with a class for every pixel"):
        make_critics(SMALL, make_federation(), epochs=1)
