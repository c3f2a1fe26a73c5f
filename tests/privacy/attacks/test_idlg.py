"""iDLG: the label read off the gradient, the image recovered with it, and what tells no label."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from torch import nn

from metrics.images import psnr
from models.catalogue import build
from privacy.attacks.idlg import improved_deep_leakage, leaked_label
from privacy.attacks.threat import ThreatModel, share

ONE = ThreatModel()
STEP = ThreatModel("update", local_lr=0.05)


def digit(row, threat=ONE):
    digits = load_digits()
    torch.manual_seed(row)
    model = build("lenet-sigmoid", 1, 10, 8).double()
    image, label = (
        torch.tensor(digits.images[row] / 16).view(1, 1, 8, 8),
        torch.tensor(digits.target[row : row + 1]),
    )
    return model, image, label, share(model, image, label, threat)


def head(bias, weight=None):
    """Two pixels, three scores; as released, the sum of a class's weights' gradients has the sign
    of its bias's.
    """
    model = nn.Sequential(nn.Flatten(), nn.Linear(2, 3, bias=bias)).double()
    torch.manual_seed(0)
    model[1].weight.data.normal_()
    return model


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 9), st.integers(0, 1000), st.sampled_from([ONE, STEP]))
def test_the_label_of_any_image_is_read_off(label, seed, threat):
    torch.manual_seed(seed)
    model, image = (
        build("lenet-sigmoid", 1, 10, 8).double(),
        torch.rand(1, 1, 8, 8, dtype=torch.float64),
    )
    assert leaked_label(share(model, image, torch.tensor([label]), threat), 10, threat) == label


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("label", [0, 1, 2])
def test_the_label_of_a_linear_model_with_and_without_bias(label, bias):
    image = torch.tensor([0.3, 0.7], dtype=torch.float64).view(1, 1, 1, 2)
    assert leaked_label(share(head(bias), image, torch.tensor([label]), ONE), 3, ONE) == label


def test_the_bias_tells_the_label_where_inputs_are_negative():
    image = torch.tensor([-2.0, 0.5], dtype=torch.float64).view(1, 1, 1, 2)
    assert leaked_label(share(head(True), image, torch.tensor([2]), ONE), 3, ONE) == 2
    with pytest.raises(ValueError, match="one class alone with a negative gradient"):
        leaked_label(share(head(False), image, torch.tensor([2]), ONE), 3, ONE)


@pytest.mark.parametrize("threat", [ONE, STEP], ids=lambda threat: threat.shares)
def test_a_digit_is_recovered_with_its_label(threat):
    model, image, label, shared = digit(3, threat)
    found = improved_deep_leakage(
        model,
        shared,
        (1, 8, 8),
        10,
        threat,
        iterations=60,
        restarts=5,
        generator=torch.Generator().manual_seed(0),
    )
    assert found.succeeded
    assert psnr(found.images, image).item() > 30
    assert torch.equal(found.labels, nn.functional.one_hot(label, 10).double())


@pytest.mark.parametrize(
    "threat",
    [
        ThreatModel(batch_size=2),
        ThreatModel("update", local_steps=2),
        ThreatModel("update", 1, 2, local_images=2),
    ],
)
def test_several_images_or_steps_are_refused(threat):
    model, _, _, shared = digit(0)
    with pytest.raises(ValueError, match="of one image and one step"):
        improved_deep_leakage(model, shared, (1, 8, 8), 10, threat, generator=torch.Generator())


def test_an_uncertain_label_is_refused():
    model, image, _, _ = digit(0)
    label = torch.tensor([[0.5, 0.5] + [0.0] * 8], dtype=torch.float64)
    with pytest.raises(ValueError, match="a label that is certain"):
        leaked_label(share(model, image, label, ONE), 10, ONE)


def test_a_model_that_does_not_end_in_a_linear_layer_of_the_classes_is_refused():
    with pytest.raises(ValueError, match=r"linear layer of 10 classes, not in \(3,\)"):
        leaked_label([torch.ones(3)], 10, ONE)
    with pytest.raises(ValueError, match=r"not in \(10, 4, 3, 3\)"):
        leaked_label([torch.ones(10, 4, 3, 3)], 10, ONE)
