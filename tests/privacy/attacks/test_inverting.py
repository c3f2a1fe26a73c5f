"""Inverting Gradients: the total variation by hand, images recovered through ReLUs, and what it
refuses.
"""

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from metrics.images import psnr
from privacy.attacks.inverting import invert_gradients, total_variation
from privacy.attacks.matching import cosine_distance
from privacy.attacks.threat import ThreatModel, share

ONE = ThreatModel()


def victim(threat=ONE):
    """Digits and a network of ReLUs with batch normalisation, and what they share."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(1024, 10),
    )
    digits = load_digits()
    images, labels = (
        torch.tensor(digits.images[: threat.images] / 16).float()[:, None],
        torch.tensor(digits.target[: threat.images]),
    )
    return model, images, labels, share(model, images, labels, threat)


def attack(model, shared, labels, threat=ONE, **changes):
    settings = {
        "iterations": 150,
        "tv": 0.001,
        "generator": torch.Generator().manual_seed(0),
        **changes,
    }
    return invert_gradients(model, shared, (1, 8, 8), labels, 10, threat, **settings)


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
    model, images, labels, shared = victim(threat)
    found = attack(model, shared, labels, threat)
    assert psnr(found.images, images).item() > 20
    assert found.labels.argmax(dim=1).tolist() == labels.tolist()
    assert found.images.min() >= 0
    assert found.images.max() <= 1
    assert len(found.trajectory) == 150
    assert cosine_distance(
        share(model, found.images, labels, threat), shared
    ).item() == pytest.approx(found.distance, abs=1e-5)


def test_the_first_iteration_by_hand():
    # Adam's first step is the learning rate times the sign, whatever the gradient; then images are
    # clamped
    model, _, labels, shared = victim()
    start = torch.randn(1, 1, 8, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()
    objective = cosine_distance(
        share(model, start, labels, ONE, create_graph=True), shared
    ) + 0.2 * total_variation(start)
    (gradient,) = torch.autograd.grad(objective, start)
    expected = (start - 0.3 * gradient.sign()).clamp(-0.5, 0.5)
    found = attack(model, shared, labels, iterations=1, lr=0.3, tv=0.2, bounds=(-0.5, 0.5))
    torch.testing.assert_close(found.images, expected.detach(), rtol=1e-4, atol=1e-5)
    assert found.trajectory == (pytest.approx(objective.item()),)


def test_bounds_may_differ_by_channel():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(32, 3))
    labels = torch.tensor([1])
    shared = share(model, torch.rand(1, 2, 4, 4), labels, ONE)
    low, high = torch.tensor([-2.0, 0.0]).view(2, 1, 1), torch.tensor([-1.0, 0.1]).view(2, 1, 1)
    found = invert_gradients(
        model,
        shared,
        (2, 4, 4),
        labels,
        3,
        ONE,
        iterations=3,
        bounds=(low, high),
        generator=torch.Generator().manual_seed(0),
    )
    assert ((found.images >= low) & (found.images <= high)).all()


def test_the_best_of_several_starts_is_kept():
    model, _, labels, shared = victim()
    generator = torch.Generator().manual_seed(0)
    alone = [attack(model, shared, labels, iterations=5, generator=generator) for _ in range(3)]
    best = attack(model, shared, labels, iterations=5, restarts=3)
    assert best.starts == 3
    assert best.distance == min(one.distance for one in alone)


@pytest.mark.parametrize("labels", [[1, 2], [10], [-1], []], ids=str)
def test_labels_that_do_not_fit_are_refused(labels):
    model, _, _, shared = victim()
    with pytest.raises(ValueError, match="expected labels of 1 images, from 0 to 9"):
        attack(model, shared, torch.tensor(labels, dtype=torch.long))
