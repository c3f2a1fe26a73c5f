"""Matching answers: the simulated training by hand, and the same code on a gradient, which does
give the image away.
"""

import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

from fedtables.models.catalogue import build
from fedtables.privacy.attacks.matching import (
    Search,
    match_answers,
    relative_distance,
    trained_weights,
)
from fedtables.privacy.attacks.threat import ThreatModel, share

SIDE, CLASSES = 8, 10
STEP = ThreatModel("update", local_lr=0.5)


@pytest.fixture
def linear():
    """Two scores of an image of one pixel, both zero."""
    layer = nn.Linear(1, 2).double()
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return nn.Sequential(nn.Flatten(), layer)


def test_weights_after_one_step_by_hand(linear):
    image, label = (
        torch.full((1, 1, 1, 1), 3.0, dtype=torch.float64),
        torch.tensor([[1.0, 0.0]], dtype=torch.float64),
    )
    # Both probabilities are a half: the gradients by the scores are -1/2 and 1/2, by the weights
    # three times as much.
    weights = trained_weights(linear, image, label, STEP)
    assert weights["1.weight"].flatten().tolist() == [0.75, -0.75]
    assert weights["1.bias"].tolist() == [0.25, -0.25]
    assert not linear[1].weight.any()  # the model is as it was


def test_every_kind_of_answer_counts_alike_whatever_its_size():
    observed = (torch.tensor([3.0, 4.0]), torch.tensor([0.01]))
    assert relative_distance(observed, observed) == 0
    assert relative_distance((torch.zeros(2), torch.zeros(1)), observed) == 1
    assert (
        float(relative_distance((torch.tensor([3.0, 9.0]), torch.tensor([0.01])), observed)) == 0.5
    )  # 25 / 25, and 0
    with pytest.raises(ValueError, match="zero everywhere"):
        relative_distance(observed, (torch.zeros(2), torch.zeros(1)))


def test_the_same_code_recovers_an_image_from_its_gradient():
    # A real digit of about zero mean and unit deviation.
    found, threat = load_digits(), ThreatModel()
    image = torch.tensor(found.images[:1])[:, None] / 16 * 2.7 - 0.8
    label = F.one_hot(torch.tensor(found.target[:1]), CLASSES).double()
    torch.manual_seed(0)
    model = build("lenet-sigmoid", 1, CLASSES, SIDE).double().eval()
    found = match_answers(
        lambda images, labels: share(model, images, labels, threat, create_graph=True),
        share(model, image, label, threat),
        (1, SIDE, SIDE),
        CLASSES,
        Search(torch.Generator().manual_seed(0), iterations=6),
    )
    assert found.distance < 1e-7
    assert (found.images - image).square().mean() < 1e-4
    assert found.labels.argmax() == label.argmax()


def test_answers_that_are_no_numbers_are_refused():
    observed, search = (torch.ones(1),), Search(torch.Generator(), 100, restarts=2)
    with pytest.raises(FloatingPointError, match="no start of 2"):
        match_answers(lambda i, y: (i.sum() + y.sum() + torch.nan,), observed, (1, 1, 1), 2, search)
