"""FedIOD's Eq. 2 to 10, and the terms of the authors' code, by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedtables.methods.fediod.losses import (
    adversarial_loss,
    aggregate,
    class_balance,
    confidence_loss,
    discriminator_loss,
    ensemble_weights,
    entropy,
    importance,
    jensen_shannon,
    label_ratio,
    mimic_loss,
    released_diversity,
    size_weights,
)
from tests.methods.fediod.cases import DISJOINT, EQUAL, IDENTICAL, LN2, LN3, LN4, PI, patch_logits

LOW = math.log(4 / 3)

# -- realism: Eq. 2 --


def test_a_client_weighs_by_its_share_of_all_samples():
    assert size_weights(torch.tensor([12.0, 4.0])).tolist() == [0.75, 0.25]


@pytest.mark.parametrize(
    ("logarithmic", "by_client"),
    [
        (False, (0.5, 0.75)),
        # -ln(1 - D) is ln 2, ln 4 and ln 4/3 where D is 1/2, 3/4 and 1/4; summed over patches.
        (True, ((LN2 + LN4 + LOW + LN2) / 2, 2 * LN4)),
    ],
)
def test_the_generator_lowers_what_discriminators_say_weighted_by_client(logarithmic, by_client):
    loss = adversarial_loss(patch_logits(), PI, logarithmic)
    assert loss.item() == pytest.approx(0.75 * by_client[0] + 0.25 * by_client[1])


@pytest.mark.parametrize(
    ("logarithmic", "expected"),
    [(False, (0.25 + 0.5) / 2 + 1 - 0.75), (True, (LOW + LN2 + 4 * LOW) / 3)],
)
def test_a_discriminator_parts_its_own_images_from_generated_ones(logarithmic, expected):
    own, generated = torch.tensor([[[-LN3, 0.0]]]), torch.tensor([[[LN3, LN3]], [[LN3, LN3]]])
    loss = discriminator_loss(generated, own, logarithmic)
    assert loss.item() == pytest.approx(expected)


# -- clarity and uniqueness: Eq. 3 to 5 --


def test_the_entropy_is_in_nats_and_nothing_for_a_certain_prediction():
    probabilities = torch.tensor(
        [[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0], [0.75, 0.25, 0.0]]
    )
    expected = torch.tensor([0.0, LN3, LN2, 0.75 * LOW + 0.25 * LN4])
    torch.testing.assert_close(entropy(probabilities), expected)
    logits = torch.tensor([[200.0, 0.0, 0.0]], requires_grad=True)
    entropy(logits.softmax(dim=1)).sum().backward()
    assert torch.isfinite(logits.grad).all()


def test_the_confidence_loss_is_the_mean_over_samples_of_the_clients_weighted_entropies():
    certain, thirds, halves = [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0]
    probabilities = torch.tensor([[certain, thirds], [halves, certain]])
    assert confidence_loss(probabilities, PI).item() == pytest.approx((0.25 * LN2 + 0.75 * LN3) / 2)


def test_clients_diverge_by_the_entropy_of_their_weights_where_they_are_certain_and_differ():
    assert jensen_shannon(IDENTICAL, EQUAL).item() == 0
    assert jensen_shannon(DISJOINT, PI).item() == pytest.approx(0.25 * LN4 + 0.75 * LOW)
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


def test_importance_is_the_label_ratio_times_that_of_the_discriminators_sample_by_sample():
    counts = torch.tensor([[6.0, 6.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
    assert label_ratio(counts).tolist() == [*RATIO.tolist(), [0.0, 0.0, 0.0]]
    # For the second sample client 0 counts three times: 1.5 / 1.75, 1.5 / 2.25; nobody holds class
    # 2.
    weights = importance(RATIO, torch.tensor([[1.0, 3.0], [1.0, 1.0]]))
    expected = torch.tensor(
        [[[2 / 3, 0.4, 0.5], [6 / 7, 2 / 3, 0.5]], [[1 / 3, 0.6, 0.5], [1 / 7, 1 / 3, 0.5]]]
    )
    torch.testing.assert_close(weights, expected)
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


COUNTS = torch.tensor([[6.0, 6.0, 0.0], [1.0, 3.0, 0.0]])
"""Label counts of two clients with 12 and 4 samples."""
SCORES = torch.tensor([[[[-LN3, LN3]], [[LN3, LN3]]], [[[0.0, 0.0]], [[-LN3, -LN3]]]])
"""D_k(x) of two clients for two images, over patches: 1/2 and 3/4 for client 0, 1/2 and 1/4 for
client 1."""
OWN = torch.tensor([0.25, 0.5])
"""E[D_k(x')]: the ratios of Eq. 8 are 2 and 3 for client 0, 1 and 1/2 for client 1."""


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        # (2 * 1/2, 1 * 1/4), (2 * 1/2, 1 * 3/4); (3 * 1/2, 1/2 * 1/4), (3 * 1/2, 1/2 * 3/4)
        ("eq8", [[1 / 1.25, 1 / 1.75, 0.5], [1.5 / 1.625, 1.5 / 1.875, 0.5]]),
        # 1 - D_k(x) over 1 - E[D_k(x')]: 2/3 and 1/3 for client 0, 1 and 3/2 for client 1
        ("eq8-own", [[4 / 7, 4 / 13, 0.5], [4 / 13, 4 / 31, 0.5]]),
        ("size", [[0.75] * 3] * 2),
        ("class-count", [[6 / 7, 6 / 9, 0.5]] * 2),
    ],
)
def test_the_ensembles_weights(kind, first):
    found = ensemble_weights(kind, PI, COUNTS, SCORES, OWN).expand(2, 2, 3)
    expected = torch.tensor(first)
    torch.testing.assert_close(found, torch.stack([expected, 1 - expected]))


# -- imitation: Eq. 6 and 10 --

STUDENT = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
ENSEMBLE = torch.tensor([[0.0, 0.0, 3.0], [0.0, 0.0, 2.0]])


@pytest.mark.parametrize(
    ("student", "ensemble", "temperature", "expected"),
    [
        # The differences (1, 2, 0) and (0, 0, -2) are centred (0, 1, -1) and (2/3, 2/3, -4/3).
        (STUDENT, ENSEMBLE, 0, (2 / 6 + 8 / 3 / 6) / 2),
        # The ensemble says (3/4, 1/4), the student halves.
        (torch.zeros(1, 2), torch.tensor([[LN3, 0.0]]), 1, 0.75 * math.log(1.5) - 0.25 * LN2),
        # Logits (2 ln 3, 0) at T = 2 are (ln 3, 0) at T = 1.
        (torch.zeros(1, 2), torch.tensor([[2 * LN3, 0.0]]), 2, 3 * math.log(1.5) - LN2),
    ],
)
def test_the_student_mimics_at_a_temperature(student, ensemble, temperature, expected):
    assert mimic_loss(student, ensemble, temperature).item() == pytest.approx(expected)


def test_eq_10_as_printed_is_the_squared_distance_of_logits():
    assert mimic_loss(STUDENT, ENSEMBLE, 0, printed=True).item() == (5 + 4) / 2


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_at_the_released_temperature_it_is_the_squared_distance_of_centred_logits(dtype):
    generator = torch.Generator().manual_seed(0)
    student, ensemble = (
        3 * torch.randn(16, 10, generator=generator, dtype=dtype) for _ in range(2)
    )
    loss = mimic_loss(student, ensemble, 10_001)
    assert loss.dtype == dtype
    torch.testing.assert_close(loss, mimic_loss(student, ensemble, 0), rtol=1e-3, atol=0)


def test_a_shift_of_all_logits_is_free_but_in_eq_10_as_printed():
    shifted = ENSEMBLE + 5
    assert mimic_loss(shifted, ENSEMBLE, 10_001).item() == pytest.approx(0, abs=1e-6)
    assert mimic_loss(shifted, ENSEMBLE, 0).item() == 0
    assert mimic_loss(shifted, ENSEMBLE, 0, printed=True).item() == 3 * 25


# -- the authors' code --


def test_the_papers_term_prefers_clients_that_differ_and_the_released_one_clients_that_agree():
    same, apart = (-jensen_shannon(said, EQUAL).mean() for said in (IDENTICAL, DISJOINT))
    assert apart < same
    assert released_diversity(IDENTICAL).item() == 0
    # The mean (1/2, 1/2, 0.01) against (0.99, 0.01, 0.01): the same for both clients.
    expected = 0.5 * math.log(0.5 / 0.99) + 0.5 * math.log(0.5 / 0.01)
    assert released_diversity(DISJOINT).item() == pytest.approx(expected)


def test_the_class_balance_is_minus_the_entropy_in_bits_of_each_clients_mean_prediction():
    # Client 0 gives two classes in turn (1 bit), client 1 always the same (0 bits).
    probabilities = torch.tensor(
        [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]]
    )
    assert class_balance(probabilities, PI).item() == pytest.approx(-0.75)
