"""DLG: digits recovered from gradients and updates, alone and in a batch, and what it refuses."""

import math

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from metrics.images import match, psnr
from models.catalogue import build
from privacy.attacks.dlg import deep_leakage
from privacy.attacks.matching import FOUND, cosine_distance, squared_distance
from privacy.attacks.threat import ThreatModel, share, squared_norm

ONE = ThreatModel()


def linear(weight):
    """Two pixels to two scores, without bias."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False)).double()
    model[1].weight.data = torch.tensor(weight, dtype=torch.float64)
    return model


def victim(threat=ONE, seed=0, dtype=torch.float64):
    """Digits, their labels, a network and what they share under a threat model."""
    digits = load_digits()
    torch.manual_seed(seed)
    model = build("lenet-sigmoid", 1, 10, 8).to(dtype)
    rows = slice(seed, seed + threat.images)
    images, labels = (
        torch.tensor(digits.images[rows] / 16, dtype=dtype)[:, None],
        torch.tensor(digits.target[rows]),
    )
    return model, images, labels, share(model, images, labels, threat)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_distances_by_hand():
    first = [torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0])]
    second = [torch.tensor([[1.0, 0.0], [0.0, 4.0]]), torch.tensor([-1.0])]
    assert squared_distance(first, second).item() == 2**2 + 3**2 + 2**2
    assert cosine_distance(first, second).item() == pytest.approx(
        1 - (1 + 16 - 1) / math.sqrt(31 * 18), rel=1e-6
    )
    assert squared_distance(first, first).item() == 0
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
    model, images, labels, shared = victim(threat)
    found = deep_leakage(
        model, shared, (1, 8, 8), 10, threat, iterations=60, restarts=2, generator=seeded()
    )
    assert found.succeeded
    assert found.distance <= FOUND
    assert found.images.shape == images.shape
    assert psnr(found.images, images).item() > 30
    assert found.labels.argmax(dim=1).tolist() == labels.tolist()
    assert found.labels.max().item() > 0.99
    again = squared_distance(
        share(model, found.images, found.labels, threat), shared
    ) / squared_norm(shared)
    assert again.item() == pytest.approx(found.distance, rel=1e-3)
    assert found.distance <= min(found.trajectory)


def test_a_digit_is_recovered_without_line_search():
    model, images, _, shared = victim()
    found = deep_leakage(
        model,
        shared,
        (1, 8, 8),
        10,
        ONE,
        iterations=40,
        restarts=5,
        line_search=False,
        generator=seeded(),
    )
    assert found.succeeded
    assert psnr(found.images, images).item() > 30


def test_an_update_is_not_attacked_as_if_it_were_a_gradient():
    # What another suite does: the change of several steps, divided by the learning rate, passed off
    # as a gradient
    truth = ThreatModel("update", local_steps=4, local_lr=0.3)
    model, images, _, update = victim(truth)
    wrongly = deep_leakage(
        model, [-t / 0.3 / 4 for t in update], (1, 8, 8), 10, ONE, iterations=40, generator=seeded()
    )
    rightly = deep_leakage(model, update, (1, 8, 8), 10, truth, iterations=40, generator=seeded())
    assert rightly.succeeded
    assert not wrongly.succeeded
    assert psnr(rightly.images, images).item() > 30 > psnr(wrongly.images, images).item()


def test_a_batch_is_recovered_in_some_order():
    threat = ThreatModel(batch_size=2)
    model, images, labels, shared = victim(threat)
    found = deep_leakage(
        model, shared, (1, 8, 8), 10, threat, iterations=100, restarts=5, generator=seeded()
    )
    rows = match(found.images, images)
    assert sorted(rows.tolist()) == [0, 1]
    assert psnr(found.images[rows], images).min().item() > 30
    assert found.labels[rows].argmax(dim=1).tolist() == labels.tolist()


def test_the_same_seed_finds_the_same_image_and_another_another():
    model, _, _, shared = victim()
    first, same, other = (
        deep_leakage(model, shared, (1, 8, 8), 10, ONE, iterations=2, generator=seeded(s))
        for s in (0, 0, 1)
    )
    assert torch.equal(first.images, same.images)
    assert first.trajectory == same.trajectory
    assert not torch.equal(first.images, other.images)


def test_an_attack_that_stands_still_ends_and_the_next_start_follows():
    model = linear([[0.0, 0.0], [0.0, 0.0]])
    # a gradient that no image leaves: the closest is of an image of zeros, at distance |1|^2 +
    # |1|^2, all of its norm
    shared = [torch.tensor([[1.0, 0.0], [1.0, 0.0]])]
    found = deep_leakage(
        model, shared, (1, 1, 2), 2, ONE, iterations=300, restarts=3, generator=seeded()
    )
    assert len(found.trajectory) < 300
    assert found.distance == pytest.approx(1.0, abs=1e-3)
    assert found.starts == 3
    assert not found.succeeded


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_shape": (3, 8, 8)}, r"does not take an image of shape \(3, 8, 8\)"),
        ({"image_shape": (1, 16, 16)}, r"does not take an image of shape \(1, 16, 16\)"),
        ({"classes": 7}, r"scores of shape \(1, 10\), not \(1, 7\)"),
        ({"iterations": 0}, "at least 1, not 0"),
        ({"restarts": 0}, "at least 1, not 300 and 0"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(change, message):
    model, _, _, shared = victim()
    fitting = {"image_shape": (1, 8, 8), "classes": 10, "iterations": 300, "restarts": 1}
    with pytest.raises(ValueError, match=message):
        deep_leakage(model, shared, threat=ONE, generator=seeded(), **{**fitting, **change})


def test_a_gradient_of_another_model_is_refused():
    model, _, _, shared = victim()
    with pytest.raises(ValueError, match="has 7 tensors, the model 8 parameters"):
        deep_leakage(model, shared[:-1], (1, 8, 8), 10, ONE, generator=seeded())
    with pytest.raises(ValueError, match=r"of head\.bias has shape \(3,\), not \(10,\)"):
        deep_leakage(model, [*shared[:-1], torch.zeros(3)], (1, 8, 8), 10, ONE, generator=seeded())


def test_a_gradient_that_is_not_a_number_or_zero_is_refused():
    model, _, _, shared = victim()
    with pytest.raises(ValueError, match=r"of head\.bias is not finite"):
        deep_leakage(
            model, [*shared[:-1], shared[-1] * math.nan], (1, 8, 8), 10, ONE, generator=seeded()
        )
    with pytest.raises(ValueError, match="zero everywhere"):
        deep_leakage(
            model,
            [torch.zeros_like(tensor) for tensor in shared],
            (1, 8, 8),
            10,
            ONE,
            generator=seeded(),
        )


def test_an_attack_on_weights_that_are_not_numbers_says_so():
    model, _, _, shared = victim()
    model.head.weight.data.fill_(math.inf)
    with pytest.raises(FloatingPointError, match="no start of 2 had a finite distance"):
        deep_leakage(model, shared, (1, 8, 8), 10, ONE, restarts=2, generator=seeded())
