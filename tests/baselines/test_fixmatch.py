"""FixMatch: its mask and loss on logits worked by hand, its learning rate, and the average that it
returns.
"""

import math

import pytest
import torch

from fedtables.baselines.fixmatch import FixMatch, consistency_loss, cosine_factor
from fedtables.federation.data import PublicData
from tests.baselines.probes import probed
from tests.federation.tiny import bright_images
from tests.methods.shards import same_bits

WEAK = torch.tensor(
    [[math.log(99), 0.0], [math.log(3), 0.0], [0.0, math.log(24)]]
)  # 0.99 and 0.75 for class 0, 0.96 for class 1
STRONG = torch.tensor(
    [[0.0, 0.0], [5.0, -5.0], [math.log(3), 0.0]]
)  # 1/2 each, nearly class 0, 3/4 for class 0


@pytest.mark.parametrize(
    ("threshold", "losses"),
    [
        (0.95, [math.log(2), 0, math.log(4)]),
        (0.98, [math.log(2), 0, 0]),
        (0.5, [math.log(2), math.log1p(math.exp(-10)), math.log(4)]),
        (0.999, [0, 0, 0]),
    ],
)
def test_only_confident_labels_count_and_the_mean_is_over_all_images(threshold, losses):
    assert consistency_loss(WEAK, STRONG, threshold).item() == pytest.approx(
        sum(losses) / 3, abs=1e-6
    )


def test_the_loss_of_pixels_is_their_mean():
    weak, strong = (logits.T.reshape(1, 2, 3, 1) for logits in (WEAK, STRONG))
    assert consistency_loss(weak, strong, 0.95).item() == pytest.approx(
        (math.log(2) + math.log(4)) / 3
    )


def test_only_strong_views_have_a_gradient():
    weak, strong = WEAK.clone().requires_grad_(), STRONG.clone().requires_grad_()
    consistency_loss(weak, strong, 0.95).backward()
    assert weak.grad is None
    expected = (
        torch.tensor([[-0.5, 0.5], [0.0, 0.0], [0.75, -0.75]]) / 3
    )  # probabilities less the label
    torch.testing.assert_close(strong.grad, expected)


def test_the_learning_rate_ends_at_seven_sixteenths_of_pi():
    factors = [cosine_factor(step, 8) for step in (0, 4, 8)]
    assert factors == pytest.approx([1, math.cos(7 * math.pi / 32), 0.19509], abs=1e-5)


def quick(**fields):
    return FixMatch(**{"steps": 6, "interval": 3, "batch_size": 4, "mu": 2, **fields})


def test_what_no_one_is_confident_of_changes_nothing():
    other = PublicData(bright_images(torch.tensor([2, 2, 1]), 5), "others")
    for threshold, same in ((1.1, True), (0.0, False)):
        method = quick(threshold=threshold, ema_decay=0.5)
        assert same_bits(method.fit(probed()).state, method.fit(probed(public=other)).state) == same


def test_the_average_of_the_weights_is_what_it_returns():
    federation = probed()
    assert same_bits(
        quick(ema_decay=1.0).fit(federation).state,
        federation.networks.initial("cnn-small").state_dict(),
    )
    assert not same_bits(
        quick(ema_decay=0.0).fit(federation).state, quick(ema_decay=0.9).fit(federation).state
    )


def test_weight_decay_spares_biases_and_batchnorm():
    def after_a_step(weight_decay):
        federation = probed(network="resnet8-narrow")
        method = quick(steps=1, interval=1, ema_decay=0.0, weight_decay=weight_decay)
        return federation.networks.module(method.fit(federation)).named_parameters()

    for (name, plain), (_, decayed) in zip(after_a_step(0.0), after_a_step(0.1), strict=True):
        assert torch.equal(plain, decayed) == (plain.ndim == 1), name
