"""The CUDA device that is not there: what it catches, counts and leaves as it was."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from federation.method import Method
from federation.shared.remote import ask
from tests.device_fits import NEEDS_CUDA_CODE, federation_on
from tests.fakecuda import backward, fake_cuda, grad

pytestmark = NEEDS_CUDA_CODE

# -- methods that do not keep to their device --


@dataclass(frozen=True)
class Mixer(Method):
    """Adds zeros from the CPU to what the clients say of the public images."""

    def fit(self, federation):
        outputs = [federation.public_outputs(model) for model in federation.local_models()]
        return federation.distill(sum(outputs, torch.zeros(10)))


@dataclass(frozen=True)
class Forgetful(Method):
    """Distils targets that are on the CPU."""

    def fit(self, federation):
        return federation.distill(torch.zeros(len(federation.public), 10))


@dataclass(frozen=True)
class Chooser(Method):
    """Picks public images by indices on the CPU, which a GPU would forgive and wait for."""

    def fit(self, federation):
        federation.public.images[torch.arange(3)]


@dataclass(frozen=True)
class Masker(Method):
    """Sets to zero what a mask on the CPU says."""

    def fit(self, federation):
        images = federation.public.images.clone()
        images[torch.ones(len(images), dtype=torch.bool)] = 0


@dataclass(frozen=True)
class Drawer(Method):
    """Draws numbers for the device from a generator on the CPU."""

    def fit(self, federation):
        torch.randn(
            3,
            device=federation.networks.device,
            generator=federation.streams.seeds.torch("shuffling", "own"),
        )


@dataclass(frozen=True)
class Homebody(Method):
    """Trains a layer that it did not move to the device."""

    def fit(self, federation):
        nn.Linear(64, 10)(federation.public.images.flatten(1).float())


@dataclass(frozen=True)
class Reader(Method):
    """Reads a tensor of the device as if it were the host's."""

    def fit(self, federation):
        return federation.label_counts().numpy()


@dataclass(frozen=True)
class Guarded(Method):
    """A client's guard adds noise from the CPU to the gradients that leave it: wrong in the
    backward pass alone.
    """

    def fit(self, federation):
        images = torch.ones(4, 64, device=federation.networks.device, requires_grad=True)
        (answer,) = ask(
            federation.channel,
            0,
            images,
            lambda x: {"logits": 2 * x},
            ["logits"],
            guard=lambda g: g + torch.randn(g.shape),
        )
        answer.sum().backward()


@dataclass(frozen=True)
class Dicer(Method):
    """Draws a layer's weights on the device."""

    def fit(self, federation):
        nn.Linear(64, 10, device=federation.networks.device)


@dataclass(frozen=True)
class Pooler(Method):
    """Learns through a layer whose gradient CUDA sums in any order."""

    def fit(self, federation):
        images = torch.ones(4, 3, 8, 8, device=federation.networks.device, requires_grad=True)
        nn.AdaptiveAvgPool2d(2)(images).sum().backward()


TWO_DEVICES = "(same device|two different devices).*cpu"
"""As torch says it, in one version or another."""


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (Mixer, TWO_DEVICES),
        (Forgetful, "tensor on cpu is indexed with one on cuda"),
        (Chooser, "tensor on cuda:0 is indexed with one on cpu"),
        (Masker, "tensor on cuda:0 is indexed with one on cpu"),
        (Drawer, "cuda:0 is drawn from a generator on cpu"),
        (Homebody, TWO_DEVICES),
        (Reader, "content of a tensor on cuda:0 is read"),
        (Guarded, TWO_DEVICES),
        (Dicer, "which nobody has seeded"),
        (Pooler, "adaptive_avg_pool2d.* not the same in every run"),
    ],
)
def test_a_method_that_leaves_something_on_the_cpu_or_to_chance_is_caught(method, message):
    with pytest.raises(RuntimeError, match=message), fake_cuda():
        method().fit(federation_on("cuda:0", method()))


# -- the device itself --


def test_syncs_are_counted_by_the_line_that_asks():
    with fake_cuda() as watch:
        ones = torch.ones(3, device="cuda:0")
        for _ in range(2):
            assert ones.sum().item() == 1  # whatever it is
        assert ones[ones > 0].shape == (3,)
        assert len(ones.nonzero()) == 3
        ones.cpu().to("cuda:0")
    counted = sorted((key.partition(" ")[2], times) for key, times in watch.syncs.items())
    assert counted == [
        ("cpu to cuda", 1),
        ("cuda to cpu", 1),
        ("item", 2),
        ("mask", 1),
        ("nonzero", 1),
    ]
    assert all(key.startswith("tests/test_fakecuda.py:") for key in watch.syncs)


def test_outside_nothing_has_changed():
    before = torch.Generator, torch.autograd.grad, torch.Tensor.numpy, nn.Module._apply
    with pytest.raises(ZeroDivisionError), fake_cuda():
        raise ZeroDivisionError
    assert before == (torch.Generator, torch.autograd.grad, torch.Tensor.numpy, nn.Module._apply)
    assert torch.ones(2).tolist() == [1, 1]


class Doubled(torch.autograd.Function):
    """Two outputs, of which one may not be used."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x, 3 * x

    @staticmethod
    def backward(ctx, first, second):
        return 2 * first + 3 * second


def test_gradients_are_those_of_autograd():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(256, 3)
    ).double()
    images = torch.rand(5, 1, 8, 8, dtype=torch.float64, requires_grad=True)
    parameters = list(net.parameters())

    def loss():
        outputs = net(Doubled.apply(images)[0])
        return nn.functional.cross_entropy(
            outputs + outputs.square(), torch.tensor([0, 1, 2, 0, 1])
        )

    def penalty(take):
        (slope,) = take(loss(), [images], create_graph=True)
        return slope.square().sum()

    theirs = torch.autograd.grad
    inputs = [images, *parameters]
    for ours, true in zip(grad(loss(), inputs), theirs(loss(), inputs), strict=True):
        torch.testing.assert_close(ours, true)
    for ours, true in zip(
        grad(penalty(grad), parameters), theirs(penalty(theirs), parameters), strict=True
    ):
        torch.testing.assert_close(ours, true)
    backward(loss(), inputs=parameters)
    backward(loss(), inputs=parameters)
    assert images.grad is None
    for parameter, once in zip(parameters, theirs(loss(), parameters), strict=True):
        torch.testing.assert_close(parameter.grad, 2 * once)
    with pytest.raises(RuntimeError, match="not have been used"):
        grad(loss(), [torch.ones(2, requires_grad=True)])
