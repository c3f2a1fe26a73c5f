"""DENSE: its losses by hand, and what crosses once."""

import math

import pytest
import torch
import torch.nn.functional as F

from fedtables.baselines.dense import DENSE, boundary_loss
from fedtables.federation.channel import encoded_size
from fedtables.federation.samples import counted
from fedtables.federation.shared.datafree import uploaded_networks
from tests.federation.tiny import make_client, make_federation
from tests.methods.shards import booked, client_with, mixed_clients


def quick(**changes):
    sizes = {"epochs": 3, "batch_size": 4, "generator_steps": 2, "latent": 5, "width": 4}
    return DENSE(**{**sizes, **changes})


def test_only_images_that_the_two_judge_otherwise_count_for_the_boundary():
    ensemble = torch.tensor([[0.8, 0.2], [0.8, 0.2]]).log()
    student = torch.tensor([[0.4, 0.6], [0.6, 0.4]]).log()
    first = 0.8 * math.log(0.8 / 0.4) + 0.2 * math.log(0.2 / 0.6)
    assert boundary_loss(student, ensemble).item() == pytest.approx(-first / 2)
    assert boundary_loss(ensemble, ensemble).item() == 0


def test_both_networks_pass_the_boundarys_gradient_on():
    ensemble = torch.tensor([[2.0, 0.0]], requires_grad=True)
    student = torch.tensor([[0.0, 1.0]], requires_grad=True)
    boundary_loss(student, ensemble).backward()
    assert ensemble.grad.abs().sum() > 0
    assert student.grad.abs().sum() > 0


def generation_loss(monkeypatch, federation, method, images, labels):
    """What the generator goes down in the first epoch for images of labels."""
    found = []

    def synthesise(method, federation, loss, epoch):
        found.append(loss(federation.normalise(images), labels).item())
        return images, labels

    monkeypatch.setattr(DENSE, "synthesise", synthesise)
    method.fit(federation)
    return found[0]


@pytest.mark.parametrize("network", ["cnn-small", "resnet8-narrow"])
def test_the_generators_loss_is_the_weighted_sum_of_three(network, monkeypatch):
    clients = [make_client(index, network=network) for index in range(2)]
    federation = make_federation(clients)
    images = torch.rand(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    labels, inputs = torch.tensor([0, 1, 2, 0]), federation.normalise(images)
    ensemble = torch.stack([t(inputs) for t in uploaded_networks(federation)]).mean(dim=0)
    student = federation.networks.initial().eval()(inputs)

    def loss(statistics, boundary):
        method = quick(epochs=1, statistics=statistics, boundary=boundary)
        return generation_loss(monkeypatch, federation, method, images, labels)

    plain = loss(0.0, 0.0)
    assert plain == pytest.approx(F.cross_entropy(ensemble, labels).item(), rel=1e-5)
    expected = plain + 2 * boundary_loss(student, ensemble).item()
    assert loss(0.0, 2.0) == pytest.approx(expected, rel=1e-5)
    with_statistics = loss(1.0, 0.0)
    if network == "cnn-small":  # which has no BatchNorm
        assert with_statistics == plain
    else:
        assert with_statistics > plain
        assert loss(2.0, 0.0) - plain == pytest.approx(2 * (with_statistics - plain), rel=1e-4)


def test_clients_with_samples_send_their_networks_once_and_nothing_goes_down():
    federation = make_federation([*mixed_clients(), client_with(2, [])])
    quick().fit(federation)
    sizes = [
        encoded_size(federation.networks.initial(network).state_dict())
        for network in ("cnn-small", "resnet8-narrow")
    ]
    assert booked(federation) == {
        (0, "up", "parameters", k): (bytes_, 1) for k, bytes_ in enumerate(sizes)
    }


def test_the_generator_and_the_student_are_the_networks_that_learn():
    federation = make_federation()
    federation.local_models()
    with counted() as seen:
        quick().fit(federation)
    own = 2 * 12 * federation.local.epochs
    generated, learnt = 3 * 2 * 4, 4 + 8 + 12  # the pool grows
    assert seen.total() == {"local": own, "server": generated + learnt}
