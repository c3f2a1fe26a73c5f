"""DLG: the distance by hand, a digit recovered from its gradient, and what it refuses."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

from models.catalogue import build
from privacy.attacks.dlg import dlg, gradient_distance, gradients


def linear(weight):
    """Two pixels to two scores, without bias."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False)).double()
    model[1].weight.data = torch.tensor(weight, dtype=torch.float64)
    return model


def victim(seed=0, dtype=torch.float64):
    """A digit, its label, a network and the gradient that it shares."""
    digits = load_digits()
    torch.manual_seed(seed)
    model = build("lenet-sigmoid", 1, 10, 8).to(dtype)
    image = torch.tensor(digits.images[seed] / 16, dtype=dtype).view(1, 8, 8)
    label = int(digits.target[seed])
    return model, image, label, gradients(model, image[None], F.one_hot(torch.tensor([label]), 10).to(dtype))


def psnr(image, truth):
    return -10 * math.log10(F.mse_loss(image, truth).item())


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_distance_is_the_sum_of_squares_over_all_parameters():
    first = [torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0])]
    second = [torch.tensor([[1.0, 0.0], [0.0, 4.0]]), torch.tensor([-1.0])]
    assert gradient_distance(first, second).item() == 2**2 + 3**2 + 2**2
    assert gradient_distance(first, first).item() == 0


def test_the_distance_of_different_numbers_of_tensors_is_refused():
    with pytest.raises(ValueError, match="shorter"):
        gradient_distance([torch.zeros(1), torch.zeros(1)], [torch.zeros(1)])


def test_the_gradient_of_a_linear_model_is_probability_minus_label_times_the_image():
    # scores (0, ln 3), so probabilities (1/4, 3/4); minus the label (1/2, 1/2) that is (-1/4, 1/4), times the image (1, 2)
    model = linear([[0.0, 0.0], [math.log(3), 0.0]])
    image, label = torch.tensor([[[[1.0, 2.0]]]], dtype=torch.float64), torch.tensor([[0.5, 0.5]], dtype=torch.float64)
    (gradient,) = gradients(model, image, label)
    torch.testing.assert_close(gradient, torch.tensor([[-0.25, -0.5], [0.25, 0.5]], dtype=torch.float64))
    assert not gradient.requires_grad
    assert model[1].weight.grad is None


def test_the_gradient_of_a_batch_is_the_mean_of_its_images():
    model, image, _, _ = victim()
    images, labels = torch.stack([image, 1 - image]), torch.eye(10, dtype=torch.float64)[:2]
    singles = [gradients(model, images[i : i + 1], labels[i : i + 1]) for i in (0, 1)]
    for both, a, b in zip(gradients(model, images, labels), *singles, strict=True):
        torch.testing.assert_close(both, (a + b) / 2)


def test_a_digit_is_recovered_from_its_gradient():
    model, image, label, shared = victim()
    found = dlg(model, shared, (1, 8, 8), 10, iterations=30, restarts=5, generator=seeded())
    assert psnr(found.image, image) > 30
    assert found.image.shape == image.shape
    assert found.label.argmax().item() == label
    assert found.label[label] > 0.99
    again = gradient_distance(gradients(model, found.image[None], found.label[None]), shared).item()
    assert again == pytest.approx(found.distance, rel=1e-3, abs=1e-12)
    assert found.distance <= min(found.distances)


def test_the_same_seed_finds_the_same_image_and_another_another():
    model, _, _, shared = victim()
    first, same, other = (dlg(model, shared, (1, 8, 8), 10, iterations=2, generator=seeded(s)) for s in (0, 0, 1))
    assert torch.equal(first.image, same.image)
    assert first.distances == same.distances
    assert not torch.equal(first.image, other.image)


def test_the_models_dtype_is_the_attacks():
    model, _, _, shared = victim()
    found = dlg(model.float(), shared, (1, 8, 8), 10, iterations=1, generator=seeded())
    assert found.image.dtype == found.label.dtype == torch.float32


def test_the_model_is_left_as_it_was():
    model = nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(4, 2)).double().requires_grad_(False)
    before = copy.deepcopy(model.state_dict())
    shared = [torch.ones_like(p) for p in model.parameters()]
    dlg(model, shared, (1, 2, 2), 2, iterations=2, generator=seeded())
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert not any(p.requires_grad or p.grad is not None for p in model.parameters())


def test_an_attack_that_stands_still_ends():
    model = linear([[0.0, 0.0], [0.0, 0.0]])
    # a gradient that no image leaves: the closest is of an image of zeros, at distance |1|^2 + |1|^2
    found = dlg(model, [torch.tensor([[1.0, 0.0], [1.0, 0.0]])], (1, 1, 2), 2, iterations=300, generator=seeded())
    assert len(found.distances) < 300
    assert found.distance == pytest.approx(2.0, abs=1e-3)


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
        dlg(model, shared, generator=seeded(), **{**fitting, **change})


def test_a_gradient_of_another_model_is_refused():
    model, _, _, shared = victim()
    with pytest.raises(ValueError, match="has 7 tensors, the model 8 parameters"):
        dlg(model, shared[:-1], (1, 8, 8), 10, generator=seeded())
    with pytest.raises(ValueError, match=r"of head\.bias has shape \(3,\), not \(10,\)"):
        dlg(model, [*shared[:-1], torch.zeros(3)], (1, 8, 8), 10, generator=seeded())


def test_a_gradient_that_is_not_a_number_is_refused():
    model, _, _, shared = victim()
    with pytest.raises(ValueError, match=r"of head\.bias is not finite"):
        dlg(model, [*shared[:-1], shared[-1] * math.nan], (1, 8, 8), 10, generator=seeded())


def test_an_attack_on_weights_that_are_not_numbers_says_so():
    model, _, _, shared = victim()
    model.head.weight.data.fill_(math.inf)
    with pytest.raises(FloatingPointError, match="no start of 2 had a finite gradient distance"):
        dlg(model, shared, (1, 8, 8), 10, restarts=2, generator=seeded())
