"""FedBE: its distribution of models by hand, what all say, and what the average learns."""

import pytest
import torch
from torch import nn

from fedtables.baselines.fedbe import (
    FedBE,
    diagonal_variance,
    enhanced_entropy_reduction,
    gaussian_sample,
)
from fedtables.federation.seeds import Seeds, Stream
from fedtables.federation.shared.averaging import average_states
from fedtables.federation.tasks.values import DenseRegression
from fedtables.federation.training.loops import predict
from fedtables.methods.fedavg import Round
from tests.federation.tiny import make_client, make_federation
from tests.methods.shards import network_inputs, same_bits, uneven_clients

STATES = [{"w": torch.tensor([1.0, 0.0])}, {"w": torch.tensor([5.0, 0.0])}]
BRIEF = {
    "rounds": 1,
    "participation": 1.0,
    "distillation_epochs": 4,
    "distillation_batch_size": 3,
    "cycle": 2,
}


def stream(*names):
    return Stream(Seeds().torch("shuffling", *names), torch.device("cpu"))


def test_mean_and_variance_are_weighted_by_size():
    # Mean (3 + 5) / 4 = 2; squares 1 and 9 with weights 3/4 and 1/4.
    mean = average_states(STATES, [3, 1])
    assert mean["w"].tolist() == [2.0, 0.0]
    assert diagonal_variance(STATES, mean, [3, 1])["w"].tolist() == [3.0, 0.0]


def test_samples_have_the_mean_and_the_variance_and_leave_the_rest():
    mean = {"w": torch.full((10_000,), 2.0), "running_mean": torch.ones(2)}
    variance = {"w": torch.full((10_000,), 9.0)}
    drawn = gaussian_sample(mean, variance, stream("a"))
    assert drawn["w"].mean().item() == pytest.approx(2.0, abs=0.1)
    assert drawn["w"].std().item() == pytest.approx(3.0, abs=0.1)
    assert torch.equal(drawn["running_mean"], mean["running_mean"])


def this_round(clients, **changes):
    federation = make_federation(clients, **changes)
    model = federation.networks.initial()
    return Round(federation, 1, federation.clients, model, {})


def moved(this, count):
    """States of clients that have gone from the model, each in a direction of its own."""
    draws = torch.Generator().manual_seed(0)
    return [
        {
            name: w + torch.randn(w.shape, generator=draws) if w.is_floating_point() else w
            for name, w in this.model.state_dict().items()
        }
        for _ in range(count)
    ]


def test_without_variance_every_sample_is_the_average():
    this = this_round(uneven_clients()[:3])
    state = moved(this, 1)[0]
    this.model.load_state_dict(state)
    for sample in FedBE(samples=4).sampled(this, [state] * 3):
        assert same_bits(sample, state)


def test_a_large_alpha_samples_fedavgs_average_by_size():
    clients = uneven_clients()[:3]  # of 2, 4 and 6 samples
    this = this_round(clients)
    received = moved(this, 3)
    average = average_states(received, [2, 4, 6])
    method = FedBE(distribution="dirichlet", alpha=1e9, samples=3)
    samples = list(method.sampled(this, received))
    assert len(samples) == 3
    for sample in samples:
        torch.testing.assert_close(sample, average, rtol=1e-3, atol=1e-3)
    spread = list(FedBE(distribution="dirichlet", samples=3).sampled(this, received))
    assert not torch.allclose(spread[0]["head.weight"], average["head.weight"], atol=1e-2)
    assert not torch.allclose(spread[0]["head.weight"], spread[1]["head.weight"], atol=1e-2)


def test_samples_differ_and_are_others_in_another_round():
    this = this_round(uneven_clients()[:3])
    received = moved(this, 3)
    this.model.load_state_dict(average_states(received, [2, 4, 6]))
    later = Round(this.federation, 2, this.clients, this.model, {})
    found = [
        sample["head.weight"] for r in (this, later) for sample in FedBE().sampled(r, received)
    ]
    assert len(found) == 20
    assert len({tuple(w.flatten().tolist()) for w in found}) == 20


@pytest.mark.parametrize(
    ("temperature", "expected"), [(1.0, [0.6, 0.3, 0.1]), (0.5, [0.36, 0.09, 0.01])]
)
def test_a_temperature_of_one_changes_nothing_and_a_half_squares(temperature, expected):
    found = enhanced_entropy_reduction(torch.tensor([[0.6, 0.3, 0.1]]), 1 / temperature)
    torch.testing.assert_close(found, torch.tensor([expected]) / sum(expected))


def test_teachers_are_the_average_the_clients_and_the_samples_alike(monkeypatch):
    this = this_round(uneven_clients()[:2])
    received, labels = moved(this, 2), []
    monkeypatch.setattr(FedBE, "distil", lambda method, this, given: labels.append(given))
    FedBE(samples=2, temperature=1.0).aggregate(this, iter(received))
    average = average_states(received, [2, 4])
    assert same_bits(this.model.state_dict(), average)
    teachers = [average, *received, *FedBE(samples=2).sampled(this, received)]
    network, federation = this.federation.networks.initial(), this.federation
    said = []
    for state in teachers:
        network.load_state_dict(state)
        outputs = predict(network, federation.public.images, normalise=federation.normalise)
        said.append(outputs.softmax(dim=1))
    torch.testing.assert_close(labels[0], sum(said) / 5)


def learnt(labels, **changes):
    """The model that learns labels, and each step's weights in plain PyTorch."""
    this = this_round(2)
    method = FedBE(**BRIEF | changes)
    plain = this.federation.networks.initial()
    optimizer = torch.optim.SGD(plain.parameters(), lr=1.0, momentum=0.9)
    images = this.federation.public.images
    draws = stream("public", 1)
    order = torch.cat([draws.shuffled(6) for _ in range(4)])
    weights = []
    for step, batch in enumerate(order.split(3)):
        first, last = method.distillation_lr, method.final_lr
        optimizer.param_groups[0]["lr"] = first if step % 2 == 0 else last
        loss = nn.functional.cross_entropy(plain(network_inputs(images[batch])), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        weights.append({name: w.detach().clone() for name, w in plain.named_parameters()})
    method.distil(this, labels)
    return dict(this.model.named_parameters()), weights


LABELS = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]] * 3)


def test_weights_at_the_ends_of_cycles_from_the_start_on_are_averaged():
    # Eight steps in four cycles of two; averaged are those after steps 4, 6 and 8.
    rates = {"distillation_lr": 0.1, "final_lr": 0.04}
    found, weights = learnt(LABELS, swa_start=4, **rates)
    for name, parameter in found.items():
        expected = (weights[3][name] + weights[5][name] + weights[7][name]) / 3
        torch.testing.assert_close(parameter.detach(), expected, rtol=1e-4, atol=1e-6)


def test_the_last_weights_are_taken_where_distillation_is_too_short():
    found, weights = learnt(LABELS, swa_start=9)
    for name, parameter in found.items():
        torch.testing.assert_close(parameter.detach(), weights[7][name], rtol=1e-4, atol=1e-6)


def test_batchnorms_buffers_are_averaged_and_its_count_stays_whole():
    this = this_round(2, network="resnet8-narrow")
    before = {n: b.clone() for n, b in this.model.named_buffers()}
    FedBE(**BRIEF, swa_start=2).distil(this, LABELS)
    after = dict(this.model.named_buffers())
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert all(before[name].dtype == after[name].dtype for name in before)
    assert all((b >= 0).all() for name, b in after.items() if "running_var" in name)


def test_an_unknown_distribution_is_refused():
    with pytest.raises(ValueError, match="gaussian, dirichlet"):
        FedBE(distribution="uniform")


def test_a_task_without_classes_is_refused():
    network = "cnn-small+dense"
    clients = [make_client(k, network=network) for k in (0, 1)]
    federation = make_federation(clients, task=DenseRegression(1), network=network)
    with pytest.raises(ValueError, match="FedBE needs public images and a task of classes"):
        FedBE(**BRIEF).fit(federation)
