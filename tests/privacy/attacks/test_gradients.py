"""DLG, iDLG and Inverting Gradients: digits recovered from gradients and updates, alone and in a
batch, and what the attacks refuse.
"""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from torch import nn

from fedtables.metrics.images import match, psnr
from fedtables.models.catalogue import build
from fedtables.privacy.attacks.gradients import (
    Attack,
    cosine_distance,
    deep_leakage,
    invert_gradients,
    leaked_label,
    reconstruct,
    squared_distance,
    total_variation,
)
from fedtables.privacy.attacks.matching import FOUND, Message, Search
from fedtables.privacy.attacks.threat import ThreatModel, share, squared_norm

ONE = ThreatModel()
STEP = ThreatModel("update", local_lr=0.05)


def linear(weight, bias=False):
    """Two pixels to some scores."""
    weight = torch.tensor(weight, dtype=torch.float64)
    model = nn.Sequential(nn.Flatten(), nn.Linear(2, len(weight), bias=bias)).double()
    model[1].weight.data = weight
    return model


def message(model, images, labels, threat=ONE):
    """What a client sends who holds these images."""
    shared = share(model, images, labels, threat)
    classes = len(shared[-1])
    return Message(model, shared, tuple(images.shape[1:]), classes, threat)


def lenet():
    return build("lenet-sigmoid", 1, 10, 8).double()


def victim(threat=ONE, seed=0, network=lenet):
    """Digits, their labels, and what a network shares of them under a threat model."""
    digits, rows = load_digits(), slice(seed, seed + threat.batch_size)
    torch.manual_seed(seed)
    model, labels = network(), torch.tensor(digits.target[rows])
    images = torch.tensor(digits.images[rows] / 16)[:, None].to(next(model.parameters()))
    return images, labels, message(model, images, labels, threat)


def search(iterations, restarts=1, seed=0):
    return Search(torch.Generator().manual_seed(seed), iterations, restarts)


def test_the_distances_by_hand():
    first = [torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0])]
    second = [torch.tensor([[1.0, 0.0], [0.0, 4.0]]), torch.tensor([-1.0])]
    assert squared_distance(first, second).item() == 2**2 + 3**2 + 2**2
    assert squared_distance(first, first).item() == 0
    cosine = 1 - (1 + 16 - 1) / math.sqrt(31 * 18)
    assert cosine_distance(first, second).item() == pytest.approx(cosine, rel=1e-6)
    assert cosine_distance(first, [-5 * tensor for tensor in first]).item() == pytest.approx(2)


@pytest.mark.parametrize(
    "threat",
    [
        ONE,
        ThreatModel(
            "update", local_lr=1e-4
        ),  # squared norms of 1e-6: no tolerance may end the descent
        ThreatModel("update", local_steps=3, local_lr=0.01),
    ],
    ids=lambda threat: f"{threat.shares} of {threat.local_steps}",
)
def test_a_digit_is_recovered(threat):
    images, labels, sent = victim(threat)
    found = deep_leakage(sent, search(60, restarts=2))
    assert found.distance <= FOUND
    assert found.images.shape == images.shape
    assert psnr(found.images, images).item() > 30
    assert found.labels.argmax(dim=1).tolist() == labels.tolist()
    assert found.labels.max().item() > 0.99
    again = share(sent.model, found.images, found.labels, threat)
    distance = squared_distance(again, sent.shared) / squared_norm(sent.shared)
    assert distance.item() == pytest.approx(found.distance, rel=1e-3)


def test_a_batch_is_recovered_in_some_order():
    images, labels, sent = victim(ThreatModel(batch_size=2))
    found = deep_leakage(sent, search(100, restarts=5))
    rows = match(found.images, images)
    assert sorted(rows.tolist()) == [0, 1]
    assert psnr(found.images[rows], images).min().item() > 30
    assert found.labels[rows].argmax(dim=1).tolist() == labels.tolist()


def test_the_same_seed_finds_the_same_image_and_another_another():
    _, _, sent = victim()
    first, same, other = (deep_leakage(sent, search(2, seed=s)) for s in (0, 0, 1))
    assert torch.equal(first.images, same.images)
    assert first.distance == same.distance
    assert not torch.equal(first.images, other.images)


def test_an_attack_that_stands_still_ends_and_the_next_start_follows():
    # a gradient that no image leaves: the closest is of an image of zeros, at distance |1|^2 +
    # |1|^2, all of its norm
    shared = [torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)]
    model = linear([[0.0, 0.0], [0.0, 0.0]])
    # Of 25 iterations and one more each start, or a million would not end today.
    found = deep_leakage(Message(model, shared, (1, 1, 2), 2, ONE), search(10**6, restarts=3))
    assert found.distance == pytest.approx(1.0, abs=1e-3)
    assert found.starts == 3


def test_an_attack_on_weights_that_are_not_numbers_says_so():
    _, _, sent = victim()
    sent.model.head.weight.data.fill_(math.inf)
    with pytest.raises(FloatingPointError, match="no start of 2 had a finite distance"):
        deep_leakage(sent, search(300, restarts=2))


# -- iDLG --


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 9), st.integers(0, 1000), st.sampled_from([ONE, STEP]))
def test_the_label_of_any_image_is_read_off(label, seed, threat):
    torch.manual_seed(seed)
    model = build("lenet-sigmoid", 1, 10, 8).double()
    image = torch.rand(1, 1, 8, 8, dtype=torch.float64)
    assert leaked_label(message(model, image, torch.tensor([label]), threat)) == label


HEAD = [[0.3, -1.2], [0.8, 0.1], [-0.5, 0.4]]
"""Two pixels, three scores; as released, the sum of a class's weights' gradients has the sign of
its bias's."""


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("label", [0, 1, 2])
def test_the_label_of_a_linear_model_with_and_without_bias(label, bias):
    image = torch.tensor([0.3, 0.7], dtype=torch.float64).view(1, 1, 1, 2)
    assert leaked_label(message(linear(HEAD, bias), image, torch.tensor([label]))) == label


@pytest.mark.parametrize("threat", [ONE, STEP], ids=lambda threat: threat.shares)
def test_a_digit_is_recovered_with_its_label(threat):
    image, label, sent = victim(threat, seed=3)
    found = deep_leakage(sent, search(60, restarts=5), leaked_label(sent))
    assert found.distance <= FOUND
    assert psnr(found.images, image).item() > 30
    assert torch.equal(found.labels, nn.functional.one_hot(label, 10).double())


@pytest.mark.parametrize(
    "threat", [ThreatModel(batch_size=2), ThreatModel("update", local_steps=2)], ids=str
)
def test_no_label_is_read_off_several_images_or_steps(threat):
    with pytest.raises(ValueError, match="of one image and one step"):
        leaked_label(victim(threat)[2])


def test_an_uncertain_label_is_refused():
    image, _, sent = victim()
    label = torch.tensor([[0.5, 0.5] + [0.0] * 8], dtype=torch.float64)
    with pytest.raises(ValueError, match="a label that is certain"):
        leaked_label(message(sent.model, image, label))


@pytest.mark.parametrize("shape", [(3,), (10, 4, 3, 3)], ids=str)
def test_a_model_that_does_not_end_in_a_linear_layer_of_the_classes_is_refused(shape):
    with pytest.raises(ValueError, match=r"linear layer of 10 classes, not in \("):
        leaked_label(Message(nn.Identity(), [torch.ones(shape)], (1, 8, 8), 10, ONE))


# -- Inverting Gradients --


def relus():
    """A network of ReLUs with batch normalisation."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(1024, 10),
    )


def test_total_variation_by_hand():
    # across: |1 - 0| and |4 - 2|; down: |2 - 0| and |4 - 1|
    image = torch.tensor([[[[0.0, 1.0], [2.0, 4.0]]]])
    assert total_variation(image).item() == 1.5 + 2.5
    assert total_variation(torch.cat([image, image])).item() == 4  # a mean over images


@pytest.mark.parametrize(
    "threat",
    [ONE, ThreatModel("update", local_steps=3, local_lr=1e-3), ThreatModel(batch_norm="train")],
    ids=lambda threat: f"{threat.shares} {threat.batch_norm}",
)
def test_a_digit_is_recovered_through_relus(threat):
    images, labels, sent = victim(threat, network=relus)
    found = invert_gradients(sent, search(150), labels, tv=0.001)
    assert psnr(found.images, images).item() > 20
    assert found.labels.argmax(dim=1).tolist() == labels.tolist()
    assert found.images.min() >= 0
    assert found.images.max() <= 1
    again = cosine_distance(share(sent.model, found.images, labels, threat), sent.shared)
    assert again.item() == pytest.approx(found.distance, abs=1e-5)


def test_the_first_iteration_by_hand():
    # Adam's first step is the learning rate times the sign, whatever the gradient; then images are
    # clamped
    _, labels, sent = victim(network=relus)
    start = torch.randn(1, 1, 8, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()
    dummy = share(sent.model, start, labels, ONE, create_graph=True)
    objective = cosine_distance(dummy, sent.shared) + 0.2 * total_variation(start)
    (gradient,) = torch.autograd.grad(objective, start)
    expected = (start - 0.3 * gradient.sign()).clamp(-0.5, 0.5)
    found = invert_gradients(sent, search(1), labels, (-0.5, 0.5), lr=0.3, tv=0.2)
    torch.testing.assert_close(found.images, expected.detach(), rtol=1e-4, atol=1e-5)


def test_bounds_may_differ_by_channel():
    torch.manual_seed(0)
    model, labels = nn.Sequential(nn.Flatten(), nn.Linear(32, 3)), torch.tensor([1])
    low, high = torch.tensor([-2.0, 0.0]).view(2, 1, 1), torch.tensor([-1.0, 0.1]).view(2, 1, 1)
    sent = message(model, torch.rand(1, 2, 4, 4), labels)
    found = invert_gradients(sent, search(3), labels, (low, high))
    assert ((found.images >= low) & (found.images <= high)).all()


def test_the_best_of_several_starts_is_kept():
    _, labels, sent = victim(network=relus)
    one = search(5)
    alone = [invert_gradients(sent, one, labels).distance for _ in range(3)]
    best = invert_gradients(sent, search(5, restarts=3), labels)
    assert best.starts == 3
    assert best.distance == min(alone)


# -- by name --


@pytest.mark.parametrize("kind", ["dlg", "idlg", "inverting"])
def test_an_attack_by_its_name_needs_the_images_alone(kind):
    images, labels, sent = victim()
    bounds = torch.zeros(1, 1, 1), torch.ones(1, 1, 1)
    how = Attack(kind, iterations=3)
    found = reconstruct(sent.model, images, labels, 10, how, bounds, torch.Generator())
    assert found.images.shape == images.shape
    assert kind == "dlg" or found.labels.argmax(dim=1).tolist() == labels.tolist()


def test_attacks_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="unknown kind 'dgl'; known: dlg, idlg, inverting"):
        Attack("dgl")
    with pytest.raises(ValueError, match="at least 1"):
        Attack(iterations=0)
    with pytest.raises(ValueError, match="3 images are not whole messages of 2"):
        Attack(threat=ThreatModel(batch_size=2)).messages(3)
