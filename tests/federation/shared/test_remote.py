"""Clients as differentiable functions: the same numbers as without a channel, and every crossing in
the ledger.
"""

import pytest
import torch

from fedtables.federation.channel import Channel, Transfer, encoded_size
from fedtables.federation.shared.remote import ask

N, PIXELS, CLASSES = 4, 6, 3


@pytest.fixture
def network():
    """Two heads, as a client of FedIOD has: a classifier and a critic."""
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: torch.randn(PIXELS, size, generator=generator, dtype=torch.float64)
        for name, size in HEADS.items()
    }
    return lambda images: {name: (images @ w).tanh() for name, w in weights.items()}


HEADS = {"logits": CLASSES, "discriminator-outputs": 1}
KINDS = tuple(HEADS)


def make_images():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(N, PIXELS, generator=generator, dtype=torch.float64, requires_grad=True)


def size(name, *shape, dtype=torch.float64):
    return encoded_size({name: torch.empty(shape, dtype=dtype)})


def loss_of(logits, scores):
    return logits.square().sum() + (logits.sum(dim=1) * scores.squeeze(1)).mean()


# -- numbers --


def test_outputs_and_gradients_are_those_of_the_same_function_without_a_channel(network):
    remote, local = make_images(), make_images()
    answers = ask(Channel(), 0, remote, network, KINDS)
    expected = tuple(network(local)[kind] for kind in KINDS)
    assert all(torch.equal(a, b) for a, b in zip(answers, expected, strict=True))
    loss_of(*answers).backward()
    loss_of(*expected).backward()
    torch.testing.assert_close(remote.grad, local.grad, rtol=1e-14, atol=1e-15)


def test_the_gradient_by_hand():
    images = torch.tensor([[1.0, 2.0]], requires_grad=True)
    (outputs,) = ask(Channel(), 0, images, lambda x: {"logits": x**2}, ("logits",))
    (3 * outputs).sum().backward()
    assert outputs.tolist() == [[1, 4]]
    assert images.grad.tolist() == [[6, 12]]


# -- bytes --


def test_the_ledger_has_images_down_outputs_up_and_gradients_both_ways_to_the_byte(network):
    channel = Channel()
    channel.round = 2
    images = make_images()
    answers = ask(channel, 5, images, network, KINDS)
    forward = [
        Transfer(2, "down", "images", 5, size("images", N, PIXELS)),
        Transfer(2, "up", "logits", 5, size("outputs", N, CLASSES)),
        Transfer(2, "up", "discriminator-outputs", 5, size("outputs", N, 1)),
    ]
    assert channel.ledger == forward
    loss_of(*answers).backward()
    both = {
        "0": torch.empty(N, CLASSES, dtype=torch.float64),
        "1": torch.empty(N, 1, dtype=torch.float64),
    }
    assert channel.ledger == [
        *forward,
        Transfer(2, "down", "gradients", 5, encoded_size(both)),
        Transfer(2, "up", "gradients", 5, size("images", N, PIXELS)),
    ]


@pytest.mark.parametrize(("used", "columns"), [(0, CLASSES), (1, 1)])
def test_no_gradient_is_sent_for_an_output_that_the_loss_ignores(network, used, columns):
    channel, images, local = Channel(), make_images(), make_images()
    ask(channel, 0, images, network, KINDS)[used].sum().backward()
    assert channel.by_kind()["down/gradients"] == size(str(used), N, columns)
    network(local)[KINDS[used]].sum().backward()
    torch.testing.assert_close(images.grad, local.grad)
