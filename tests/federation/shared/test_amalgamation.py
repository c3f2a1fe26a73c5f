"""Amalgamation: hints by hand, translators, and what each form of adaptation leaves alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fedtables.datasets import decoded
from fedtables.federation.client import Shard
from fedtables.federation.costs import Meter, metering
from fedtables.federation.memory import Memory
from fedtables.federation.shared import amalgamation
from fedtables.federation.shared.amalgamation import (
    adapt,
    hint_loss,
    hinted_for,
    hints_of,
    learn_by_hints,
    private_hints,
)
from fedtables.federation.tasks.pixels import Segmentation
from fedtables.federation.training.loops import predict
from fedtables.federation.training.plan import TrainingPlan
from fedtables.models.catalogue import feature_shape
from fedtables.models.cut import decoder_parameters
from tests.methods.private_servers import labelled, private_servers, split
from tests.methods.shards import copied, same_bits


def test_hints_cost_half_the_squared_distance_of_a_sample():
    student = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]], [[[0.0, 0.0], [0.0, 1.0]]]])
    teacher = torch.tensor([[[[1.0, 0.0], [0.0, 4.0]]], [[[0.0, 0.0], [0.0, 0.0]]]])
    assert hint_loss(student, teacher).tolist() == [6.5, 0.5]


@pytest.mark.parametrize(
    ("student", "teacher"),
    [("wrn-10-1", "cnn-small"), ("resnet10-slim", "cnn-small"), ("cnn-small", "vgg11-slim")],
)
def test_a_student_comes_nearer_to_its_teachers_features_at_the_smaller_side_of_both(
    student, teacher
):
    federation = private_servers(1, network=student, teachers=teacher, side=16)
    (client,), (network,) = (
        federation.clients,
        map(federation.networks.module, federation.stages.teachers()),
    )
    hinted = hinted_for(federation, client, federation.networks.initial(student))
    own, other = (feature_shape(name, 1, 16) for name in (student, teacher))
    images = client.run(lambda shard: shard.images)
    hints = hints_of(client.normalise, network, images, hinted.side)
    assert hints.shape == (12, other[0], min(own[1], other[1]), min(own[2], other[2]))

    def distance():
        return hint_loss(predict(hinted, images, normalise=federation.normalise), hints).mean()

    before, decoder = distance(), copied(decoder_parameters(hinted.student))
    learn_by_hints(federation, [(client, hinted, hints)], TrainingPlan(20, 4, 0.03))
    assert distance() < 0.7 * before
    assert same_bits(decoder, decoder_parameters(hinted.student))  # hints say nothing of it


@pytest.mark.parametrize("large", [1, 2**40])
def test_large_hints_lie_on_disk_with_the_same_bits_and_need_no_memory(monkeypatch, large):
    monkeypatch.setattr(decoded, "LARGE", large)
    rooms = []
    monkeypatch.setattr(
        amalgamation, "scratch", lambda shape: rooms.append(decoded.scratch(shape)) or rooms[0]
    )
    federation = private_servers(1, network="wrn-10-1", teachers="cnn-small", side=16)
    (client,), (lineage,) = federation.clients, federation.stages.teachers()
    seen = client.normalise, federation.networks.module(lineage), (4, 4)
    hints = client.run(private_hints, *seen)
    assert [isinstance(room, np.memmap) for room in rooms] == [large == 1]
    assert torch.equal(hints, hints_of(*seen[:2], client.run(lambda shard: shard.images), seen[2]))
    planned = Shard(*(torch.empty(10, *shape, device="meta") for shape in ((1, 16, 16), ())))
    with metering(meter := Meter()):
        kept = private_hints(planned, client.normalise, seen[1].to("meta"), seen[2])
    assert meter.answers.now == Memory(0, 0 if large == 1 else kept.nbytes)
    student = nn.Flatten().to("meta")
    meter.book_training(student, planned.images, epochs=1, batch_size=1, targets=kept)
    assert meter.memory.device >= kept.nbytes  # where the student trains, a client's are a copy


def worn(federation):
    """The target network as rounds might leave it: statistics of BatchNorm included."""
    target, generator = federation.networks.initial(), torch.Generator().manual_seed(5)
    for module in target.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.copy_(torch.randn(module.running_mean.shape, generator=generator))
            module.running_var.copy_(1 + torch.rand(module.running_var.shape, generator=generator))
    return target


@pytest.mark.parametrize("network", ["mobilenetv2-slim", "cnn-small", "resnet10-slim+dense"])
def test_adaptation_of_the_decoder_leaves_the_encoder_as_it_is_to_the_bit_and_the_others_do_not(
    network,
):
    changes = {}
    if network.endswith("+dense"):
        images = labelled(12, 400, 16)
        changes = {
            "task": Segmentation(2),
            "probe": replace(images, targets=(images.images[:, 0] >= 128).long()),
        }
    federation = private_servers(1, network=network, side=16, **changes)
    target = worn(federation)
    decoder, encoder = split(target)
    by_paper = adapt(federation, target, "decoder", 3, 1)
    assert same_bits(split(by_paper)[1], encoder)  # parameters and buffers
    assert not same_bits(split(by_paper)[0], decoder)
    by_code = adapt(federation, target, "all", 3, 1)
    assert not any(
        torch.equal(t, encoder[n])
        for n, t in split(by_code)[1].items()
        if t.numel() > 1 and t.is_floating_point()
    )
    tuned = adapt(federation, target, "fine-tune", 3, 1)
    assert not same_bits(split(tuned)[1], encoder)
    assert same_bits({**decoder, **encoder}, target.state_dict())  # a copy is adapted
