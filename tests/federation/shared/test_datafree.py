"""Distillation without data: divergences by hand, batch statistics, a pool that is restored, and
images that are those of the least loss.
"""

import math

import pytest
import torch
from torch import nn

from fedtables.federation.execution import Execution
from fedtables.federation.shared.datafree import (
    Pool,
    Synthesis,
    answers,
    divergence,
    frozen,
    image_generator,
    measured_statistics,
    statistics_distance,
    uploaded_networks,
)
from fedtables.federation.tasks.images import MultiLabel
from fedtables.federation.training import loops
from tests.federation.tiny import CLASSES, make_federation
from tests.methods.shards import client_with, mixed_clients

CPU = torch.device("cpu")
SMALL = Synthesis(epochs=2, batch_size=4, generator_steps=3, latent=5, width=4)


def logits(*probabilities):
    return torch.tensor(probabilities).log()


def test_the_divergence_is_from_the_teacher_to_the_student():
    teacher, student = logits([0.5, 0.5], [0.8, 0.2]), logits([0.25, 0.75], [0.8, 0.2])
    first = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    assert divergence(student, teacher).tolist() == pytest.approx([first, 0.0], abs=1e-6)


def test_a_temperature_divides_logits_and_its_square_multiplies_the_divergence():
    teacher, student = 2 * logits([0.5, 0.5]), 2 * logits([0.25, 0.75])
    first = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    assert divergence(student, teacher, 2.0).item() == pytest.approx(4 * first, rel=1e-5)


def test_batch_statistics_are_compared_with_running_ones_by_biased_variances():
    layer = nn.BatchNorm2d(2)
    layer.running_mean = torch.tensor([1.0, 0.0])
    layer.running_var = torch.tensor([1.0, 3.0])
    # Means 4 and 4 are 3 and 4 away; variances 1 (of 3 and 5) and 3 + 0 are 0 and 3 away.
    maps = torch.tensor([[[[3.0]], [[4.0]]], [[[5.0]], [[4.0]]]])
    assert statistics_distance(maps, layer).item() == pytest.approx(5.0 + 3.0)


def test_every_batchnorm_layer_of_every_network_is_measured_in_a_pass():
    def network(layers):
        return nn.Sequential(*(nn.BatchNorm2d(1) for _ in range(layers))).eval()

    networks = [network(2), network(3), nn.Sequential(nn.Conv2d(1, 1, 1))]
    images = torch.randn(4, 1, 2, 2)
    with measured_statistics(networks) as distances:
        for one in networks:
            one(images)
        assert len(distances) == 5
    networks[0](images)
    assert len(distances) == 5


def test_statistics_have_gradients_with_respect_to_images():
    layer = nn.BatchNorm2d(1).eval()
    images = torch.randn(4, 1, 2, 2, requires_grad=True)
    with measured_statistics([layer]) as distances:
        layer(images)
    distances[0].backward()
    assert images.grad.abs().sum() > 0


def test_measured_passes_call_their_hooks_where_others_are_compiled(monkeypatch):
    def compiled(*arguments):
        raise AssertionError("compiled code calls no hooks that it has not seen")

    monkeypatch.setattr(loops, "_compiled", lambda: compiled)
    federation = make_federation(execution=Execution(compile="default"))
    networks = [nn.Sequential(nn.BatchNorm2d(1), nn.Flatten()).eval()]
    with measured_statistics(networks) as distances:
        logits = answers(federation, networks, torch.randn(4, 1, 8, 8), measured=True)
    assert logits.shape == (1, 4, 64)
    assert len(distances) == 1


def test_a_frozen_network_learns_again_afterwards():
    network = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1)).train()
    network[0].requires_grad_(False)
    with frozen(network):
        assert not network.training
        assert not any(weight.requires_grad for weight in network.parameters())
    assert network.training
    assert [weight.requires_grad for weight in network.parameters()] == [False, False, True, True]


def test_a_pool_grows_and_is_restored():
    pool = Pool(CPU)
    pool.add(images=torch.zeros(2, 1), labels=torch.tensor([0, 1]))
    pool.add(images=torch.ones(2, 1), labels=torch.tensor([2, 3]))
    other = Pool(CPU)
    other.load_state_dict(pool.state_dict())
    assert other["labels"].tolist() == [0, 1, 2, 3]
    assert other["images"].flatten().tolist() == [0, 0, 1, 1]


def test_a_pass_over_the_pool_has_every_row_once_in_an_order_of_the_epoch():
    federation, pool = make_federation(), Pool(CPU)
    pool.add(rows=torch.arange(12))

    def one_pass(epoch):
        return [batch.tolist() for batch in pool.batches(federation, "student", epoch, 4)]

    assert [len(batch) for batch in one_pass(1)] == [4, 4, 4]
    assert sorted(row for batch in one_pass(1) for row in batch) == list(range(12))
    assert one_pass(1) == one_pass(1) != one_pass(2)
    assert not list(Pool(CPU).batches(federation, "student", 1, 4))


def test_clients_with_samples_upload_their_networks_once():
    federation = make_federation([*mixed_clients(), client_with(2, [])])
    networks = uploaded_networks(federation)
    assert len(networks) == 2
    assert not any(w.requires_grad or n.training for n in networks for w in n.parameters())
    sent = [(t.client, t.direction, t.kind) for t in federation.channel.ledger]
    assert sent == [(0, "up", "parameters"), (1, "up", "parameters")]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"clients": [client_with(0, [])]}, "no client holds samples"),
        ({"task": MultiLabel(("a", "b", "c"))}, "one class per image"),
    ],
)
def test_without_a_network_or_without_classes_there_is_nothing_to_learn_from(changes, words):
    with pytest.raises(ValueError, match=words):
        uploaded_networks(make_federation(**changes))


def test_small_weights_are_drawn_as_dcgan_draws_them():
    generator = image_generator(make_federation(), 5, 4, "test", small=True)
    weights = generator.project.weight
    assert weights.std().item() == pytest.approx(0.02, rel=0.2)
    assert not generator.project.bias.any()
    norm = generator.layers[0].weight
    assert (norm - 1).abs().max() < 0.1
    assert (norm != 1).all()


def test_the_images_are_those_of_the_step_with_the_least_loss():
    federation, shown, losses = make_federation(), [], iter([3.0, 1.0, 2.0])

    def loss(inputs, labels):
        shown.append(inputs.detach().clone())
        return inputs.sum() * 0 + next(losses)

    images, labels = SMALL.synthesise(federation, loss, 1)
    assert labels.shape == (4,)
    assert set(labels.tolist()) <= set(range(CLASSES))
    assert images.shape == (4, 1, 8, 8)
    assert torch.equal(federation.normalise(images), shown[1])


def test_generator_and_latents_go_down_the_loss_and_begin_anew_in_each_epoch():
    federation = make_federation()

    def darkness(epoch, steps):
        losses = []

        def loss(inputs, labels):
            losses.append(inputs.mean())
            return losses[-1]

        method = Synthesis(1, 4, steps, generator_lr=0.05, latent=5, width=4)
        method.synthesise(federation, loss, epoch)
        return [value.item() for value in losses]

    first, again, other = darkness(1, 10), darkness(1, 10), darkness(2, 10)
    assert first == again != other
    assert first[-1] < first[0] - 0.5
    assert abs(other[0] - first[0]) < 0.1
