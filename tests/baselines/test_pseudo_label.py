"""Pseudo-Label: the weight of Eq. 16 and the loss by hand, and when unlabelled images begin to
matter.
"""

import math

import pytest
import torch

from fedtables.baselines.pseudo_label import PseudoLabel, pseudo_label_loss, ramped_weight
from fedtables.federation.data import PublicData
from tests.baselines.probes import probed
from tests.federation.tiny import bright_images
from tests.methods.shards import same_bits


@pytest.mark.parametrize(
    ("step", "alpha"),
    [(0, 0), (99, 0), (100, 0), (350, 1.5), (500, 2.4), (599, 2.994), (600, 3), (9999, 3)],
)
def test_the_weight_grows_between_the_papers_100_and_600(step, alpha):
    assert ramped_weight(step, 100, 600, 3.0) == pytest.approx(alpha)


def test_the_loss_is_the_cross_entropy_with_the_best_class():
    logits = torch.tensor([[math.log(3), 0.0], [0.0, math.log(7)]])  # probabilities 3/4 and 7/8
    assert pseudo_label_loss(logits).item() == pytest.approx(
        (math.log(4 / 3) + math.log(8 / 7)) / 2
    )


def test_unlabelled_images_matter_from_the_start_of_the_ramp_on():
    other = PublicData(bright_images(torch.tensor([2, 2, 1]), 5), "others")
    for start, same in ((6, True), (3, False)):
        method = PseudoLabel(
            steps=6, interval=4, unlabelled_batch_size=5, ramp_start=start, ramp_end=start
        )
        first, second = method.fit(probed()), method.fit(probed(public=other))
        assert same_bits(first.state, second.state) == same


def test_a_last_round_may_be_shorter():
    model = PseudoLabel(steps=7, interval=3, unlabelled_batch_size=5).fit(probed())
    assert len(model.history["accuracy"]) == 3
