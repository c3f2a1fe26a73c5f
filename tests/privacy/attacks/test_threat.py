"""What a client shares: gradients and updates by hand, batches, modes of batch normalisation, and
what is refused.
"""

import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fedtables.models.catalogue import build
from fedtables.privacy.attacks.threat import ThreatModel, share, squared_norm


def linear(weight):
    """Two pixels to two scores, without bias."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False)).double()
    model[1].weight.data = torch.tensor(weight, dtype=torch.float64)
    return model


def lenet(seed=0):
    torch.manual_seed(seed)
    return build("lenet-sigmoid", 1, 10, 8).double()


def photographs(n, seed=1):
    torch.manual_seed(seed)
    return torch.rand(n, 1, 8, 8, dtype=torch.float64), torch.randint(10, (n,))


def normalised():
    """A network with batch normalisation, whose running statistics are not those of any batch
    here.
    """
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(0.5), nn.Flatten(), nn.Linear(72, 10)
    ).double()
    model[1].running_mean.fill_(0.3)
    model[1].running_var.fill_(2.0)
    return model


def trained(model, images, labels, threat):
    """The change of a copy's weights by torch's own SGD."""
    client = copy.deepcopy(model).eval()
    if threat.batch_norm == "train":
        client[1].train()
    optimiser = torch.optim.SGD(client.parameters(), lr=threat.local_lr)
    for _ in range(threat.local_steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(client(images), labels).backward()
        optimiser.step()
    return [
        after.detach() - before.detach()
        for after, before in zip(client.parameters(), model.parameters(), strict=True)
    ]


def test_the_gradient_of_a_linear_model_is_probability_minus_label_times_the_image():
    # scores (0, ln 3), so probabilities (1/4, 3/4); minus the label (1/2, 1/2) that is (-1/4, 1/4),
    # times the image (1, 2)
    model = linear([[0.0, 0.0], [math.log(3), 0.0]])
    image, label = (
        torch.tensor([[[[1.0, 2.0]]]], dtype=torch.float64),
        torch.tensor([[0.5, 0.5]], dtype=torch.float64),
    )
    (gradient,) = share(model, image, label, ThreatModel())
    torch.testing.assert_close(
        gradient, torch.tensor([[-0.25, -0.5], [0.25, 0.5]], dtype=torch.float64)
    )
    assert not gradient.requires_grad
    assert model[1].weight.grad is None


@pytest.mark.parametrize("batch_norm", ["eval", "train"])
def test_an_update_is_what_sgd_does_to_the_weights(batch_norm):
    threat = ThreatModel("update", 2, 3, local_lr=0.1, batch_norm=batch_norm)
    model, (images, labels) = normalised(), photographs(2)
    update = share(model, images, labels, threat)
    for ours, theirs in zip(update, trained(model, images, labels, threat), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
    assert not any(tensor.requires_grad for tensor in update)


def test_an_update_of_several_steps_can_be_differentiated_by_images_and_labels():
    model, (images, labels) = lenet(), photographs(2)
    threat = ThreatModel("update", batch_size=2, local_steps=2, local_lr=0.5)
    inputs = (images.requires_grad_(), nn.functional.one_hot(labels, 10).double().requires_grad_())

    def norm(images, labels):
        return squared_norm(share(model, images, labels, threat, create_graph=True))

    assert torch.autograd.gradcheck(norm, inputs, fast_mode=True)


@pytest.mark.parametrize("batch_norm", ["eval", "train"])
def test_the_model_is_left_as_it_was(batch_norm):
    model, (images, labels) = normalised().requires_grad_(False), photographs(2)
    model[1].train()
    model[2].eval()
    state, modes = (
        copy.deepcopy(model.state_dict()),
        [module.training for module in model.modules()],
    )
    first = share(model, images, labels, ThreatModel("update", 2, 2, batch_norm=batch_norm))
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())
    assert modes == [module.training for module in model.modules()]
    assert not any(p.requires_grad or p.grad is not None for p in model.parameters())
    again = share(model.eval(), images, labels, ThreatModel("update", 2, 2, batch_norm=batch_norm))
    assert all(
        torch.equal(a, b) for a, b in zip(first, again, strict=True)
    )  # nor does its own mode, or dropout, matter


@pytest.mark.parametrize(("images", "labels"), [(1, 1), (3, 3), (2, 1), (1, 2)])
def test_another_number_of_images_than_the_threat_models_is_refused(images, labels):
    with pytest.raises(ValueError, match="where the threat model has 2 of each"):
        share(lenet(), photographs(images)[0], photographs(labels)[1], ThreatModel(batch_size=2))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shares": "weights"}, "unknown shares 'weights'; known: gradient, update"),
        ({"batch_norm": "none"}, "unknown batch_norm 'none'"),
        ({"batch_size": 0}, "at least 1"),
        ({"local_steps": 0}, "at least 1"),
        ({"local_lr": 0.0}, "local_lr positive"),
        ({"local_lr": math.nan}, "local_lr positive"),
        ({"local_steps": 2}, "several steps make an update"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ThreatModel(**settings)


@settings(deadline=None, max_examples=20)
@given(st.floats(1e-6, 10), st.integers(1, 3))
def test_an_update_of_one_step_is_exactly_minus_the_learning_rate_times_the_gradient(local_lr, n):
    model, (images, labels) = lenet(), photographs(n)
    gradient = share(model, images, labels, ThreatModel(batch_size=n))
    update = share(model, images, labels, ThreatModel("update", batch_size=n, local_lr=local_lr))
    assert all(torch.equal(u, -local_lr * g) for u, g in zip(update, gradient, strict=True))
