"""FedAD's equations by hand, and which way its losses push."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedtables.federation.tasks.images import MultiLabel
from fedtables.methods.fedad import FedAD
from fedtables.methods.fedad.losses import (
    Answers,
    ensemble_logits,
    importance_weights,
    logit_loss,
    lower_loss,
    soft_mask,
    upper_loss,
)
from tests.federation.tiny import CLASSES, make_federation
from tests.methods.fedad.cases import SIDE
from tests.methods.shards import client_with

NAN = math.nan


# -- Eq. 4 to 9 --


def test_clients_weigh_by_the_samples_that_they_hold_of_a_class():
    counts = torch.tensor(
        [[3, 0, 0, 5], [1, 2, 0, 5]]
    )  # the second class at one site alone, the third nowhere
    assert importance_weights(counts).tolist() == [[0.75, 0.0, 0.0, 0.5], [0.25, 1.0, 0.0, 0.5]]


def test_the_ensemble_is_a_weighted_sum_to_which_a_client_without_the_class_adds_nothing():
    logits = torch.tensor([[[4.0, NAN, 7.0]], [[8.0, -2.0, 9.0]]])
    weights = torch.tensor([[0.75, 0.0, 0.0], [0.25, 1.0, 0.0]])
    assert ensemble_logits(logits, weights).tolist() == [[5.0, -2.0, 0.0]]
    per_pixel = logits[..., None, None].expand(-1, -1, -1, 2, 3)
    assert ensemble_logits(per_pixel, weights)[0, :, 1, 2].tolist() == [5.0, -2.0, 0.0]


def test_the_soft_mask_is_a_steep_sigmoid_about_its_threshold():
    found = soft_mask(torch.tensor([0.5, 0.7, 0.3]), 10.0, 0.5)
    torch.testing.assert_close(
        found, torch.tensor([0.5, 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))])
    )


STUDENT, BOUND = [[1.0, 0.5], [0.0, 0.25]], [[0.5, 0.0], [1.0, 0.5]]
LOG3 = math.log(3)
"""With rho = 4 log 3 and b = 1/2 the mask of 1, 3/4, 1/2, 1/4 and 0 is 9/10, 3/4, 1/2, 1/4 and
1/10."""


@pytest.mark.parametrize(("scale", "factor"), [("printed", 1 / 4), ("mean", 1.0)])
def test_the_lower_loss_by_hand(scale, factor):
    student, consensus = torch.tensor([[STUDENT]]), torch.tensor([[BOUND]])
    found = lower_loss(student, consensus, 4 * LOG3, 0.5, scale)
    torch.testing.assert_close(
        found, torch.tensor([[-factor * (0.5 * 0.9 + 1.0 * 0.1 + 0.5 * 0.25) / 2.0]])
    )


@pytest.mark.parametrize(("scale", "factor"), [("printed", 1 / 4), ("mean", 1.0)])
def test_the_upper_loss_by_hand(scale, factor):
    student, diversity = torch.tensor([[STUDENT]]), torch.tensor([[BOUND]])
    found = upper_loss(student, diversity, 4 * LOG3, 0.5, scale)
    torch.testing.assert_close(
        found, torch.tensor([[-factor * (1.0 * 0.5 + 0.5 * 0.1 + 0.25 * 0.5) / 1.75]])
    )


def test_without_consensus_or_attention_there_is_no_loss_and_no_gradient_that_is_none():
    student, empty = (
        torch.tensor([[STUDENT]], requires_grad=True),
        torch.zeros(1, 1, 2, 2, requires_grad=True),
    )
    lower = lower_loss(student, empty.detach(), 10.0, 0.5)
    upper = upper_loss(empty, student.detach(), 10.0, 0.5)
    assert (lower.item(), upper.item()) == (0.0, 0.0)
    assert torch.autograd.grad(lower, student)[0].abs().sum() == 0
    assert torch.autograd.grad(upper, empty)[0].isfinite().all()


@settings(deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["printed", "mean"]))
def test_bounded_losses_are_between_minus_one_and_zero(seed, scale):
    generator = torch.Generator().manual_seed(seed)
    student, bound = torch.rand(2, 2, 3, 4, 4, generator=generator)
    for loss in (lower_loss, upper_loss):
        found = loss(student, bound, 10.0, 0.5, scale)
        assert ((found <= 0) & (found >= (-1 / 16 if scale == "printed" else -1.0))).all()


def test_the_logit_loss_is_the_absolute_difference_of_each_class():
    assert logit_loss(torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, -1.0]])).tolist() == [
        [2.0, 1.0]
    ]
    pixels = logit_loss(torch.tensor([[[[1.0, 4.0]]]]), torch.tensor([[[[0.0, 1.0]]]]))
    assert pixels.tolist() == [[2.0]]


# -- the whole loss --


def answers():
    """Two clients' answers for three images of three classes; one holds the first class alone, none
    the last.
    """
    generator = torch.Generator().manual_seed(1)
    maps = torch.rand(2, 3, 3, SIDE, SIDE, generator=generator)
    return Answers(
        torch.randn(2, 3, 3, generator=generator), maps, torch.tensor([[4, 1, 0], [0, 3, 0]])
    )


def test_the_total_is_the_mean_of_all_three_terms_over_the_classes_that_are_known():
    method, source = FedAD(rho=7.0, threshold=0.4, bound_scale="mean"), answers()
    logits, maps = torch.randn(2, 3), torch.rand(2, 3, SIDE, SIDE)
    batch = torch.tensor([2, 0])
    federation = make_federation()
    found = method.loss(federation, source.ensemble(), federation.streams.shuffling("any"))(
        torch.cat([logits, maps.flatten(1)], 1), batch
    )
    first, second = source.logits[:, batch]
    expected = torch.zeros(2)
    for c, ensemble, held in (
        (0, first[:, 0], [0]),
        (1, 0.25 * first[:, 1] + 0.75 * second[:, 1], [0, 1]),
    ):
        seen = source.maps[held][:, batch, c]
        how = (7.0, 0.4, "mean")
        lower = lower_loss(maps[:, c, None], seen.amin(dim=0)[:, None], *how)[:, 0]
        upper = upper_loss(maps[:, c, None], seen.amax(dim=0)[:, None], *how)[:, 0]
        expected += ((logits[:, c] - ensemble).abs() + lower + upper) / 2
    torch.testing.assert_close(found, expected)


def test_in_every_step_other_clients_are_left_out_and_the_others_weigh_accordingly():
    logits = torch.tensor([10.0, 20.0, 40.0, 80.0]).view(4, 1, 1).expand(4, 2, CLASSES)
    source = Answers(logits, None, torch.ones(4, CLASSES, dtype=torch.long))
    federation = make_federation()
    step = FedAD(bounds=False, dropped=1).loss(
        federation, source, federation.streams.shuffling("dropped", 1)
    )
    zeros, batch = torch.zeros(2, CLASSES), torch.tensor([0, 1])
    found = [step(zeros, batch) for _ in range(40)]
    means = {(150 - left_out) / 3 for left_out in (10, 20, 40, 80)}
    assert {round(losses[0].item(), 3) for losses in found} == {round(mean, 3) for mean in means}
    assert all(losses[0] == losses[1] for losses in found)  # of one step all images are alike
    alone = FedAD(bounds=False, dropped=3).loss(
        federation, source, federation.streams.shuffling("dropped", 1)
    )
    assert {alone(zeros, batch)[0].item() for _ in range(40)} == {10.0, 20.0, 40.0, 80.0}


def test_a_class_whose_only_holder_is_left_out_is_not_asked_of_the_student_in_that_step():
    logits = torch.tensor([[[8.0, 2.0]], [[NAN, 4.0]]])
    source = Answers(logits, None, torch.tensor([[1, 1], [0, 1]]))
    federation = make_federation(task=MultiLabel(("a", "b")))
    step = FedAD(bounds=False, dropped=1).loss(
        federation, source, federation.streams.shuffling("dropped", 1)
    )
    found = {step(torch.zeros(1, 2), torch.tensor([0])).item() for _ in range(20)}
    assert found == {5.0, 4.0}  # (8 + 2) / 2 of the first client, 4 / 1 of the second


def test_the_last_client_cannot_be_left_out():
    with pytest.raises(ValueError, match="2 local models cannot be left out of 2"):
        FedAD(dropped=2).fit(make_federation())
    with pytest.raises(
        ValueError, match="2 local models cannot be left out of 2"
    ):  # a client without samples is none
        FedAD(dropped=2).fit(
            make_federation([client_with(0, [0, 1]), client_with(1, [1, 2]), client_with(2, [])])
        )


@pytest.mark.parametrize("fields", [{"bound_scale": "sum"}, {"dropped": -1}, {"rho": 0.0}])
def test_settings_that_do_not_exist_are_refused(fields):
    with pytest.raises(ValueError, match=r"bound_scale|dropped|rho"):
        FedAD(**fields)
