"""FedIOD's Eq. 2 to 10 by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from methods.fediod.losses import (
    adversarial_loss,
    aggregate,
    confidence_loss,
    discriminator_loss,
    ensemble_weights,
    entropy,
    importance,
    jensen_shannon,
    label_ratio,
    mimic_loss,
    size_weights,
)
from tests.methods.fediod.cases import DISJOINT, EQUAL, IDENTICAL, LN2, LN3, LN4, PI, patch_logits

# -- realism: Eq. 2 --


def test_a_client_weighs_by_its_share_of_all_samples():
    assert size_weights(torch.tensor([12.0, 4.0])).tolist() == [0.75, 0.25]


def test_the_generator_lowers_the_mean_of_the_scores_weighted_by_client():
    assert adversarial_loss(patch_logits(), PI, logarithmic=False).item() == pytest.approx(
        0.75 * 0.5 + 0.25 * 0.75
    )


def test_with_logarithms_it_lowers_the_cross_entropy_against_own_summed_over_patches():
    # -ln(1 - D) is ln 2, ln 4 and ln 4/3 where D is 1/2, 3/4 and 1/4.
    first = ((LN2 + LN4) + (math.log(4 / 3) + LN2)) / 2
    assert adversarial_loss(patch_logits(), PI, logarithmic=True).item() == pytest.approx(
        0.75 * first + 0.25 * 2 * LN4
    )


@pytest.mark.parametrize("logarithmic", [False, True])
def test_the_generator_and_the_discriminators_pull_scores_of_generated_images_apart(logarithmic):
    generated, own = (
        torch.zeros(2, 1, 2, requires_grad=True),
        torch.zeros(2, 1, 2, requires_grad=True),
    )
    discriminator_loss(generated, own, logarithmic).backward()
    assert (generated.grad < 0).all()  # D_k descends: the score of generated images rises,
    assert (own.grad > 0).all()  # that of its own falls
    scores = torch.zeros(2, 2, 1, 2, requires_grad=True)
    adversarial_loss(scores, PI, logarithmic).backward()
    assert (scores.grad > 0).all()  # G descends: the score of generated images falls
    torch.testing.assert_close(scores.grad[0], 3 * scores.grad[1])


def test_a_discriminator_lowers_its_score_of_own_images_and_raises_that_of_generated_ones():
    own, generated = torch.tensor([[[-LN3, 0.0]]]), torch.tensor([[[LN3, LN3]], [[LN3, LN3]]])
    assert discriminator_loss(generated, own, logarithmic=False).item() == pytest.approx(
        (0.25 + 0.5) / 2 + 1 - 0.75
    )


def test_a_discriminators_cross_entropy_is_summed_over_patches_and_averaged_over_all_its_images():
    own, generated = torch.tensor([[[-LN3, 0.0]]]), torch.tensor([[[LN3, LN3]], [[LN3, LN3]]])
    real, fake = math.log(4 / 3) + LN2, 4 * math.log(4 / 3)
    assert discriminator_loss(generated, own, logarithmic=True).item() == pytest.approx(
        (real + fake) / 3
    )


# -- clarity and uniqueness: Eq. 3 to 5 --


def test_the_entropy_is_in_nats_and_nothing_for_a_certain_prediction():
    probabilities = torch.tensor(
        [[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0], [0.75, 0.25, 0.0]]
    )
    expected = torch.tensor([0.0, LN3, LN2, 0.75 * math.log(4 / 3) + 0.25 * LN4])
    torch.testing.assert_close(entropy(probabilities), expected)


def test_the_entropy_of_a_certain_prediction_has_a_finite_gradient():
    logits = torch.tensor([[200.0, 0.0, 0.0]], requires_grad=True)
    entropy(logits.softmax(dim=1)).sum().backward()
    assert torch.isfinite(logits.grad).all()


def test_the_confidence_loss_is_the_mean_over_samples_of_the_clients_weighted_entropies():
    certain, thirds, halves = [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0]
    probabilities = torch.tensor([[certain, thirds], [halves, certain]])
    assert confidence_loss(probabilities, PI).item() == pytest.approx((0.25 * LN2 + 0.75 * LN3) / 2)


def test_clients_that_say_the_same_do_not_diverge():
    assert jensen_shannon(IDENTICAL, EQUAL).item() == 0
    thirds = torch.full((2, 4, 3), 1 / 3)
    torch.testing.assert_close(jensen_shannon(thirds, PI), torch.zeros(4), atol=1e-6, rtol=0)


def test_clients_that_are_certain_of_different_classes_diverge_by_the_entropy_of_their_weights():
    assert jensen_shannon(DISJOINT, EQUAL).item() == pytest.approx(LN2)
    assert jensen_shannon(DISJOINT, torch.tensor([0.25, 0.75])).item() == pytest.approx(
        0.25 * LN4 + 0.75 * math.log(4 / 3)
    )


def test_the_divergence_is_taken_sample_by_sample():
    # The second sample: (1/2, 1/2, 0) and (1/2, 0, 1/2) mix to (1/2, 1/4, 1/4), of entropy 3/2 ln
    # 2; each has ln 2.
    probabilities = torch.tensor(
        [[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]], [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]]
    )
    torch.testing.assert_close(jensen_shannon(probabilities, EQUAL), torch.tensor([LN2, LN2 / 2]))


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(2, 6), st.integers(0, 99))
def test_the_divergence_lies_between_nothing_and_the_entropy_of_the_weights(
    clients, samples, classes, seed
):
    generator = torch.Generator().manual_seed(seed)
    probabilities = (3 * torch.randn(clients, samples, classes, generator=generator)).softmax(dim=2)
    weights = torch.rand(clients, generator=generator) + 0.01
    weights /= weights.sum()
    divergence = jensen_shannon(probabilities, weights)
    assert (divergence >= -1e-5).all()
    assert (divergence <= entropy(weights) + 1e-5).all()


# -- expertise: Eq. 8 and 9 --

RATIO = torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])


def test_the_label_ratio_is_a_classs_share_among_a_clients_own_labels():
    counts = torch.tensor([[6.0, 6.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
    assert label_ratio(counts).tolist() == [*RATIO.tolist(), [0.0, 0.0, 0.0]]


def test_where_discriminators_agree_importance_is_the_label_ratio_normalised_class_by_class():
    expected = torch.tensor([[2 / 3, 0.4, 0.5], [1 / 3, 0.6, 0.5]])
    torch.testing.assert_close(importance(RATIO, torch.full((2, 1), 0.3)), expected[:, None])


def test_importance_multiplies_by_the_discriminators_ratio_sample_by_sample():
    # For the second sample client 0 counts three times: 1.5 / 1.75, 1.5 / 2.25; nobody holds class
    # 2.
    weights = importance(RATIO, torch.tensor([[1.0, 3.0], [1.0, 1.0]]))
    expected = torch.tensor(
        [[[2 / 3, 0.4, 0.5], [6 / 7, 2 / 3, 0.5]], [[1 / 3, 0.6, 0.5], [1 / 7, 1 / 3, 0.5]]]
    )
    torch.testing.assert_close(weights, expected)


def test_where_no_discriminator_has_a_score_clients_count_alike():
    assert importance(RATIO, torch.zeros(2, 1)).tolist() == [[[0.5] * 3]] * 2


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 6), st.integers(0, 99))
def test_importance_sums_to_one_over_clients(clients, samples, classes, seed):
    generator = torch.Generator().manual_seed(seed)
    counts = torch.randint(0, 4, (clients, classes), generator=generator).float()
    weights = importance(label_ratio(counts), torch.rand(clients, samples, generator=generator))
    torch.testing.assert_close(weights.sum(dim=0), torch.ones(samples, classes))
    assert (weights >= 0).all()


def test_the_aggregate_weights_each_clients_logits_class_by_class():
    logits = torch.tensor([[[4.0, 8.0, 2.0], [7.0, 3.0, 0.0]], [[8.0, -2.0, 6.0], [0.0, 6.0, 2.0]]])
    weights = torch.tensor(
        [[[0.5, 0.0, 0.5], [6 / 7, 2 / 3, 0.5]], [[0.5, 1.0, 0.5], [1 / 7, 1 / 3, 0.5]]]
    )
    torch.testing.assert_close(
        aggregate(logits, weights), torch.tensor([[6.0, -2.0, 4.0], [6.0, 4.0, 1.0]])
    )


def test_the_aggregate_takes_weights_that_are_the_same_for_all_samples():
    logits = torch.tensor([[[4.0, 8.0]], [[8.0, -2.0]]])
    torch.testing.assert_close(aggregate(logits, PI[:, None, None]), torch.tensor([[5.0, 5.5]]))


COUNTS = torch.tensor([[6.0, 6.0, 0.0], [1.0, 3.0, 0.0]])
"""Label counts of two clients with 12 and 4 samples."""
SCORES = torch.tensor([[[[-LN3, LN3]], [[LN3, LN3]]], [[[0.0, 0.0]], [[-LN3, -LN3]]]])
"""D_k(x) of two clients for two images, over patches: 1/2 and 3/4 for client 0, 1/2 and 1/4 for
client 1."""
OWN = torch.tensor([0.25, 0.5])
"""E[D_k(x')]: the ratios of Eq. 8 are 2 and 3 for client 0, 1 and 1/2 for client 1."""


def weights_of(kind):
    return ensemble_weights(kind, PI, COUNTS, SCORES, OWN).expand(2, 2, 3)


def test_the_ensembles_weights_are_eq_8_with_the_label_ratio_and_the_discriminators():
    # First image: (2 * 1/2, 1 * 1/4), (2 * 1/2, 1 * 3/4); second: (3 * 1/2, 1/2 * 1/4), (3 * 1/2,
    # 1/2 * 3/4).
    expected = torch.tensor([[1 / 1.25, 1 / 1.75, 0.5], [1.5 / 1.625, 1.5 / 1.875, 0.5]])
    torch.testing.assert_close(weights_of("eq8"), torch.stack([expected, 1 - expected]))


def test_the_ensembles_weights_may_ask_how_much_an_image_looks_like_a_clients_own():
    # 1 - D_k(x) over 1 - E[D_k(x')]: (1/2) / (3/4) and (1/4) / (3/4); (1/2) / (1/2) and (3/4) /
    # (1/2).
    first, second = (2 / 3, 1 / 3), (1.0, 1.5)
    expected = torch.tensor(
        [
            [a * 0.5 / (a * 0.5 + b * 0.25), a * 0.5 / (a * 0.5 + b * 0.75), 0.5]
            for a, b in zip(first, second, strict=True)
        ]
    )
    torch.testing.assert_close(weights_of("eq8-own"), torch.stack([expected, 1 - expected]))


def test_the_ensembles_weights_may_be_the_clients_sizes():
    torch.testing.assert_close(weights_of("size"), PI[:, None, None].expand(2, 2, 3))


def test_the_ensembles_weights_may_be_shares_of_each_classs_samples():
    expected = torch.tensor([[6 / 7, 6 / 9, 0.5], [1 / 7, 3 / 9, 0.5]])
    torch.testing.assert_close(weights_of("class-count"), expected[:, None].expand(2, 2, 3))


# -- imitation: Eq. 6 and 10 --

STUDENT = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
ENSEMBLE = torch.tensor([[0.0, 0.0, 3.0], [0.0, 0.0, 2.0]])


def test_at_temperature_zero_it_is_the_squared_distance_of_centred_logits_over_twice_the_classes():
    # The differences (1, 2, 0) and (0, 0, -2) are centred (0, 1, -1) and (2/3, 2/3, -4/3).
    assert mimic_loss(STUDENT, ENSEMBLE, 0).item() == pytest.approx((2 / 6 + 8 / 3 / 6) / 2)


def test_that_is_the_limit_of_a_rising_temperature():
    limit = mimic_loss(STUDENT, ENSEMBLE, 0)
    at = [mimic_loss(STUDENT, ENSEMBLE, temperature) for temperature in (10.0, 100.0, 1000.0)]
    assert abs(at[0] - limit) > abs(at[1] - limit) > abs(at[2] - limit)
    torch.testing.assert_close(at[2], limit, rtol=1e-3, atol=0)


def test_eq_10_as_printed_is_the_squared_distance_of_logits():
    assert mimic_loss(STUDENT, ENSEMBLE, 0, printed=True).item() == (5 + 4) / 2


def test_at_temperature_one_it_is_the_divergence_of_the_student_from_the_ensemble():
    expected = F.kl_div(STUDENT.log_softmax(dim=1), ENSEMBLE.softmax(dim=1), reduction="batchmean")
    torch.testing.assert_close(mimic_loss(STUDENT, ENSEMBLE, 1), expected)
    # By hand: the ensemble says (3/4, 1/4), the student halves.
    two = mimic_loss(torch.zeros(1, 2), torch.tensor([[LN3, 0.0]]), 1)
    assert two.item() == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))


def test_a_temperature_divides_the_logits_and_its_square_keeps_the_scale():
    # Logits (2 ln 3, 0) at T = 2 are (ln 3, 0) at T = 1.
    loss = mimic_loss(torch.zeros(1, 2), torch.tensor([[2 * LN3, 0.0]]), 2)
    assert loss.item() == pytest.approx(4 * (0.75 * math.log(1.5) + 0.25 * math.log(0.5)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_at_the_released_temperature_it_is_the_squared_distance_of_centred_logits(dtype):
    generator = torch.Generator().manual_seed(0)
    student, ensemble = (
        3 * torch.randn(16, 10, generator=generator, dtype=dtype) for _ in range(2)
    )
    difference = student - ensemble
    centred = difference - difference.mean(dim=1, keepdim=True)
    expected = (centred.square().sum(dim=1) / (2 * 10)).mean()
    loss = mimic_loss(student, ensemble, 10_001)
    assert loss.dtype == dtype
    torch.testing.assert_close(loss, expected, rtol=1e-3, atol=0)


def test_a_shift_of_all_logits_is_free_but_in_eq_10_as_printed():
    shifted = ENSEMBLE + 5
    assert mimic_loss(shifted, ENSEMBLE, 10_001).item() == pytest.approx(0, abs=1e-6)
    assert mimic_loss(shifted, ENSEMBLE, 0).item() == 0
    assert mimic_loss(shifted, ENSEMBLE, 0, printed=True).item() == 3 * 25


@pytest.mark.parametrize("temperature", [0, 1, 10_001])
def test_a_step_down_the_gradient_brings_the_student_closer(temperature):
    student = STUDENT.clone().requires_grad_()
    loss = mimic_loss(student, ENSEMBLE, temperature)
    loss.backward()
    if temperature == 1:
        gradient = (STUDENT.softmax(dim=1) - ENSEMBLE.softmax(dim=1)) / 2
    else:
        difference = STUDENT - ENSEMBLE
        gradient = (difference - difference.mean(dim=1, keepdim=True)) / 3 / 2
    torch.testing.assert_close(student.grad, gradient, atol=1e-3, rtol=1e-3)
    assert mimic_loss(STUDENT - 0.1 * student.grad, ENSEMBLE, temperature) < loss


def test_a_student_that_agrees_has_nothing_to_learn():
    for temperature in (0, 1, 10_001):
        assert mimic_loss(STUDENT, STUDENT.clone(), temperature).item() == 0
