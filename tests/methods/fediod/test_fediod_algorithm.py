"""FedIOD: Eq. 2 to 10 by hand, and every byte that crosses in Algorithm 1."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.augmentation import Augmentation, augment
from federation.channel import Channel, encoded_size
from federation.costs import Meter, metering
from federation.federation import PublicData
from federation.protection import Protection
from federation.seeds import Seeds
from federation.training import DivergedError
from methods.fediod.algorithm import (
    FedIOD,
    adversarial_loss,
    aggregate,
    class_balance,
    confidence_loss,
    discriminator_loss,
    entropy,
    importance,
    jensen_shannon,
    label_ratio,
    mimic_loss,
    released_diversity,
    size_weights,
)
from privacy.accounting import epsilon
from privacy.plan import PrivacyPlan
from tests.federation.tiny import CLASSES, make_client, make_federation
from tests.methods.shards import client_with, mixed_clients, same_bits, uneven_clients

LN2, LN3, LN4 = math.log(2), math.log(3), math.log(4)
PI = torch.tensor([0.75, 0.25])
IDENTICAL = torch.tensor([[[1.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]])
DISJOINT = torch.tensor([[[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]])
EQUAL = torch.tensor([0.5, 0.5])


# -- realism: Eq. 2 --


def test_a_client_weighs_by_its_share_of_all_samples():
    assert size_weights(torch.tensor([12.0, 4.0])).tolist() == [0.75, 0.25]


def patch_logits():
    """Two clients, two samples, 1 x 2 patches, with D_k(x) of (1/2, 3/4; 1/4, 1/2) and of 3/4
    everywhere.
    """
    return torch.tensor([[[[0.0, LN3]], [[-LN3, 0.0]]], [[[LN3, LN3]], [[LN3, LN3]]]])


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


def test_the_papers_term_prefers_clients_that_differ_and_the_released_one_clients_that_agree():
    unique = [
        -jensen_shannon(probabilities, EQUAL).mean().item()
        for probabilities in (IDENTICAL, DISJOINT)
    ]
    released = [released_diversity(probabilities).item() for probabilities in (IDENTICAL, DISJOINT)]
    assert unique[1] < unique[0]
    assert released[0] < released[1]


def test_the_released_term_is_the_mean_divergence_of_clients_from_their_plain_mean_clamped():
    # The mean (1/2, 1/2, 0.01) against (0.99, 0.01, 0.01): the same for both clients.
    expected = 0.5 * math.log(0.5 / 0.99) + 0.5 * math.log(0.5 / 0.01)
    assert released_diversity(DISJOINT).item() == pytest.approx(expected)
    assert released_diversity(IDENTICAL).item() == 0


def test_the_class_balance_is_minus_the_entropy_in_bits_of_each_clients_mean_prediction():
    # Client 0 gives two classes in turn (1 bit), client 1 always the same (0 bits).
    probabilities = torch.tensor(
        [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]]
    )
    assert class_balance(probabilities, PI).item() == pytest.approx(-0.75)


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


SERVER = SimpleNamespace(pi=PI, counts=torch.tensor([[6.0, 6.0, 0.0], [1.0, 3.0, 0.0]]))
"""What the server knows of two clients with 12 and 4 samples."""
SCORES = torch.tensor([[[[-LN3, LN3]], [[LN3, LN3]]], [[[0.0, 0.0]], [[-LN3, -LN3]]]])
"""D_k(x) of two clients for two images, over patches: 1/2 and 3/4 for client 0, 1/2 and 1/4 for
client 1."""
OWN = torch.tensor([0.25, 0.5])
"""E[D_k(x')]: the ratios of Eq. 8 are 2 and 3 for client 0, 1 and 1/2 for client 1."""


def weights_of(kind):
    return FedIOD(weights=kind).ensemble_weights(SERVER, SCORES, OWN).expand(2, 2, 3)


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


def test_unknown_weights_are_refused_with_the_known_ones():
    with pytest.raises(
        ValueError, match=r"unknown weights 'eq9'; known: eq8, eq8-own, size, class-count"
    ):
        weights_of("eq9")


# -- imitation: Eq. 6 and 10 --

STUDENT = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
ENSEMBLE = torch.tensor([[0.0, 0.0, 3.0], [0.0, 0.0, 2.0]])


def test_at_temperature_zero_the_student_is_off_by_the_squared_distance_of_logits():
    assert mimic_loss(STUDENT, ENSEMBLE, 0).item() == (5 + 4) / 2


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


def test_only_at_a_finite_temperature_is_a_shift_of_all_logits_free():
    shifted = ENSEMBLE + 5
    assert mimic_loss(shifted, ENSEMBLE, 10_001).item() == pytest.approx(0, abs=1e-6)
    assert mimic_loss(shifted, ENSEMBLE, 0).item() == 3 * 25


@pytest.mark.parametrize(
    ("temperature", "gradient"), [(0, (STUDENT - ENSEMBLE) * 2 / 2), (1, None), (10_001, None)]
)
def test_a_step_down_the_gradient_brings_the_student_closer(temperature, gradient):
    student = STUDENT.clone().requires_grad_()
    loss = mimic_loss(student, ENSEMBLE, temperature)
    loss.backward()
    if temperature == 1:
        gradient = (STUDENT.softmax(dim=1) - ENSEMBLE.softmax(dim=1)) / 2
    elif temperature:
        difference = STUDENT - ENSEMBLE
        gradient = (difference - difference.mean(dim=1, keepdim=True)) / 3 / 2
    torch.testing.assert_close(student.grad, gradient, atol=1e-3, rtol=1e-3)
    assert mimic_loss(STUDENT - 0.1 * student.grad, ENSEMBLE, temperature) < loss


def test_a_student_that_agrees_has_nothing_to_learn():
    for temperature in (0, 1, 10_001):
        assert mimic_loss(STUDENT, STUDENT.clone(), temperature).item() == 0


def test_the_generator_is_confident_unique_realistic_and_hard_to_mimic():
    # Algorithm 1: L_conf + L_unique - L_mimic - sum of L_gan. The first sample parts the clients,
    # on the second they agree.
    certain = 50.0
    logits = torch.tensor(
        [[[certain, 0.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, certain, 0.0], [0.0, 0.0, 0.0]]]
    )
    conf, unique, gan = LN3 / 2, -entropy(PI).item() / 2, 0.75 * 0.5 + 0.25 * 0.75
    loss = FedIOD(logarithmic=False).generator_loss(logits, patch_logits(), torch.tensor(0.125), PI)
    assert loss.item() == pytest.approx(conf + unique - 0.125 + gan, abs=1e-6)
    ablated = FedIOD(
        gan=2.0, mimic=0.0, confidence=3.0, uniqueness=0.0, gan_weights="average", logarithmic=False
    )
    loss = ablated.generator_loss(logits, patch_logits(), torch.tensor(0.125), PI)
    assert loss.item() == pytest.approx(3 * conf + 2 * (0.5 + 0.75) / 2, abs=1e-6)


# -- what crosses --


def quick(**changes):
    sizes = {
        "epochs": 2,
        "steps": 3,
        "batch_size": 4,
        "latent": 5,
        "width": 4,
        "discriminator_width": 4,
        "samples": 7,
    }
    return FedIOD(**{**sizes, **changes})


IMAGES = encoded_size({"images": torch.empty(4, 1, 8, 8)})
LOGITS = encoded_size({"outputs": torch.empty(4, CLASSES)})
SCORES_SIZE = encoded_size({"outputs": torch.empty(4, 2, 2)})
OWN_SIZE = encoded_size({"own": torch.empty(())})
GRADIENTS = encoded_size({"0": torch.empty(4, CLASSES), "1": torch.empty(4, 2, 2)})
SCORE_GRADIENTS = encoded_size({"1": torch.empty(4, 2, 2)})
LABELS = encoded_size({"counts": torch.empty(CLASSES, dtype=torch.long)})


def ledger(federation, **changes):
    """Bytes and messages by round, direction, kind and client."""
    quick(**changes).fit(federation)
    return {
        (t.round, t.direction, t.kind, t.client): (t.bytes, t.messages)
        for t in federation.channel.ledger
    }


def expected_ledger(rounds=2, steps=3, clients=2, gradients=GRADIENTS, asked_again=0):
    """Every step asks each client once for everything and `asked_again` times for logits."""
    found = {}
    for k in range(clients):
        found[0, "up", "labels", k] = (LABELS, 1)
        for number in range(1, rounds + 1):
            asked = steps * (1 + asked_again)
            found[number, "down", "images", k] = (asked * IMAGES, asked)
            found[number, "up", "logits", k] = (asked * LOGITS, asked)
            found[number, "up", "discriminator-outputs", k] = (
                steps * (SCORES_SIZE + OWN_SIZE),
                2 * steps,
            )
            found[number, "down", "gradients", k] = (steps * gradients, steps)
            found[number, "up", "gradients", k] = (steps * IMAGES, steps)
    return found


def test_a_step_sends_images_down_outputs_up_and_gradients_both_ways_to_the_byte():
    federation = make_federation()
    assert ledger(federation) == expected_ledger()
    assert {t.kind for t in federation.channel.ledger if t.direction == "up"} == FedIOD.sends


def test_where_no_loss_asks_for_logits_their_gradients_do_not_cross():
    found = ledger(make_federation(), mimic=0.0, confidence=0.0, uniqueness=0.0)
    assert found == expected_ledger(gradients=SCORE_GRADIENTS)


@pytest.mark.parametrize("term", ["mimic", "confidence", "uniqueness", "diversity", "balance"])
def test_each_loss_of_logits_sends_their_gradients(term):
    weights = {"mimic": 0.0, "confidence": 0.0, "uniqueness": 0.0, term: 1.0}
    assert ledger(make_federation(), epochs=1, **weights) == expected_ledger(rounds=1)


def test_five_student_steps_ask_for_the_logits_of_five_more_batches():
    assert ledger(make_federation(), student_steps=5, weights="class-count") == expected_ledger(
        asked_again=5
    )


def test_an_epoch_has_as_many_steps_as_the_largest_client_has_batches():
    federation = make_federation(
        uneven_clients()
    )  # the largest has ten samples: three batches of four
    assert ledger(federation, steps=0) == expected_ledger(steps=3, clients=5)


def test_a_client_without_samples_sends_its_counts_and_is_never_asked():
    federation = make_federation([client_with(0, [0, 1, 2] * 2), client_with(1, [])])
    expected = {
        key: value for key, value in expected_ledger().items() if key[2] == "labels" or key[3] == 0
    }
    assert ledger(federation) == expected


@pytest.mark.parametrize("student_steps", [1, 5])
def test_a_plan_books_the_bytes_of_the_run(student_steps):
    real, planned = (
        make_federation(
            [make_client(k, device=device, network="densenet-tiny") for k in range(2)],
            device,
            "densenet-tiny",
        )
        for device in ("cpu", "meta")
    )
    method = quick(student_steps=student_steps, weights="class-count")
    method.fit(real)
    with metering(Meter()):
        method.fit(planned)
    assert planned.channel.by_kind() == real.channel.by_kind()


def test_every_client_gets_the_same_images_and_fresh_ones_in_every_step():
    received = {0: [], 1: []}

    def look(transfer, tensors):
        if (transfer.direction, transfer.kind) == ("down", "images"):
            received[transfer.client].append(tensors["images"])

    quick().fit(make_federation(channel=Channel(inspect=look)))
    assert len(received[0]) == 2 * 3
    assert all(torch.equal(a, b) for a, b in zip(received[0], received[1], strict=True))
    assert not any(torch.equal(a, b) for i, a in enumerate(received[0]) for b in received[0][:i])
    values = torch.stack(received[0]) * 0.25 + 0.5  # generated in [0, 1], then normalised
    assert 0 <= values.min() < 0.5 < values.max() <= 1


@pytest.mark.parametrize("weights", ["eq8", "eq8-own"])
def test_students_on_fresh_images_cannot_have_weights_that_need_the_discriminators(weights):
    with pytest.raises(ValueError, match=rf"weights '{weights}'.*extra student steps"):
        quick(student_steps=5, weights=weights).fit(make_federation())


@pytest.mark.parametrize("weights", ["eq8", "eq8-own"])
def test_the_ensembles_weights_are_constants_to_the_generator(weights):
    """Without L_gan nothing else that the generator learns from depends on the discriminators'
    scores.
    """
    seen = []

    def look(transfer, tensors):
        if (transfer.direction, transfer.kind) == ("down", "gradients"):
            seen.append(tensors)

    quick(gan=0.0, weights=weights).fit(make_federation(channel=Channel(inspect=look)))
    assert len(seen) == 2 * 2 * 3
    assert all(tensors["0"].any() for tensors in seen)
    assert not any(tensors["1"].any() for tensors in seen if "1" in tensors)


def test_clients_answer_with_the_logits_of_the_models_they_trained():
    clients = [
        client_with(k, [0, 1, 2] * 4, "resnet8-narrow") for k in range(2)
    ]  # with BatchNorm, which would give away training
    federation, messages = make_federation(clients), []
    federation.channel = Channel(inspect=lambda t, tensors: messages.append((t, tensors)))
    quick().fit(federation)
    for client, model in zip(federation.clients, federation.local_models(), strict=True):
        own = [(t, tensors) for t, tensors in messages if t.client == client.index]
        images = [
            tensors["images"] for t, tensors in own if (t.direction, t.kind) == ("down", "images")
        ]
        logits = [tensors["outputs"] for t, tensors in own if t.kind == "logits"]
        teacher = federation.module(model)
        assert len(images) == len(logits) == 6
        for batch, answer in zip(images, logits, strict=True):
            torch.testing.assert_close(answer, teacher(batch).detach(), atol=1e-4, rtol=1e-4)


def test_public_images_are_not_needed():
    nothing = PublicData(torch.empty(0, 1, 8, 8, dtype=torch.uint8), "nothing")
    assert same_bits(
        quick().fit(make_federation(public=nothing)).state, quick().fit(make_federation()).state
    )


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"student_steps": 2, "weights": "class-count"},
        {"weights": "size"},
        {"temperature": 4.0, "logarithmic": False},
    ],
)
def test_the_same_seeds_give_the_same_model_and_images_to_the_last_bit(fields):
    first, again = (quick(**fields).fit(make_federation()) for _ in range(2))
    assert same_bits(first.state, again.state)
    assert torch.equal(first.samples, again.samples)
    assert not same_bits(
        first.state, quick(**fields).fit(make_federation(seeds=Seeds(shuffling=1))).state
    )


def test_networks_may_differ_between_clients_and_from_the_servers():
    federation = make_federation(mixed_clients(), network="densenet-tiny")
    model = quick().fit(federation)
    assert model.network == "densenet-tiny"
    assert federation.module(model)(torch.zeros(2, 1, 8, 8)).shape == (2, CLASSES)
    assert len(model.history["accuracy"]) == 2


@pytest.mark.parametrize("count", [7, 501])
def test_as_many_images_are_generated_in_the_end_as_asked_for(count):
    samples = quick(epochs=1, steps=1, samples=count).fit(make_federation()).samples
    assert samples.shape == (count, 1, 8, 8)
    assert samples.dtype == torch.uint8


def test_no_images_are_generated_in_the_end_if_none_are_asked_for():
    none, some = (
        quick(epochs=1, steps=1, samples=count).fit(make_federation()) for count in (0, 7)
    )
    assert none.samples is None
    assert same_bits(none.state, some.state)


def test_a_clients_own_images_are_cropped_and_flipped_for_its_discriminator_and_never_holed(
    monkeypatch,
):
    seen = []

    def look(images, how, generator, mean=None):
        assert mean is None
        seen.append(how)
        return augment(images, how, generator, mean)

    monkeypatch.setattr("methods.fediod.algorithm.augment", look)
    changes = {"augmentation": Augmentation(crop=1, horizontal_flip=True, cutout=4)}
    first, again = (quick(augment_own=True).fit(make_federation(**changes)) for _ in range(2))
    assert seen == [Augmentation(crop=1, horizontal_flip=True)] * (
        2 * 2 * 2 * 3
    )  # runs, clients, epochs, steps
    assert same_bits(first.state, again.state)
    seen.clear()
    assert not same_bits(quick().fit(make_federation(**changes)).state, first.state)
    quick(augment_own=True).fit(make_federation())
    assert seen == []


def test_generated_images_differ_and_span_the_range_of_bytes():
    samples = quick().fit(make_federation()).samples
    assert len({tuple(image.flatten().tolist()) for image in samples}) == 7
    assert 64 < samples.float().mean() < 192  # a generator that has hardly learnt is grey


@pytest.mark.parametrize("field", ["lr", "generator_lr"])
def test_a_fit_that_diverges_is_an_error(field):
    with pytest.raises(DivergedError):
        quick(**{field: 1e30}).fit(make_federation())


@pytest.mark.parametrize("field", ["optimizer", "gan_weights"])
def test_an_unknown_option_is_refused(field):
    with pytest.raises(ValueError, match="unknown"):
        quick(**{field: "sizes"}).fit(make_federation())


def test_the_hyper_parameters_are_those_of_the_paper():
    method = FedIOD()
    assert (method.epochs, method.batch_size, method.latent, method.student_steps) == (
        300,
        64,
        100,
        1,
    )
    assert (method.optimizer, method.lr, method.final_lr, method.generator_lr) == (
        "adam",
        1e-3,
        0.0,
        1e-3,
    )
    assert (method.gan, method.mimic, method.confidence, method.uniqueness) == (1.0, 1.0, 1.0, 1.0)
    assert (method.diversity, method.balance, method.temperature, method.weights) == (
        0.0,
        0.0,
        0.0,
        "eq8",
    )
    assert FedIOD.oracle == frozenset()


# -- with differential privacy --


def private_federation(mechanism="gs-wgan", budget=8.0, clients=3, **options):
    plan = PrivacyPlan(
        mechanism,
        epsilon=budget,
        queries=7,
        noise_multiplier=10.0 if mechanism == "released" else 0.0,
    )
    return make_federation(
        clients, protection=Protection(plan, FedIOD.protected[mechanism]), **options
    )


PRIVATE = FedIOD(epochs=2, steps=3, batch_size=4, width=4, discriminator_width=4, samples=5)


def test_in_private_only_noisy_gradients_and_votes_leave_a_client():
    federation = private_federation(channel=Channel())
    model = PRIVATE.fit(federation)
    crossed = {
        (t.round, t.direction, t.kind, t.client): (t.bytes, t.messages)
        for t in federation.channel.ledger
    }
    images = encoded_size({"images": torch.empty(4, 1, 8, 8)})
    asked = encoded_size({"images": torch.empty(7, 1, 8, 8, dtype=torch.uint8)})
    votes = encoded_size({"votes": torch.empty(7, CLASSES)})
    expected = {}
    for k in range(3):
        for epoch in (1, 2):
            expected[epoch, "down", "images", k] = expected[epoch, "up", "gradients", k] = (
                3 * images,
                3,
            )
        expected[3, "down", "images", k], expected[3, "up", "votes", k] = (asked, 1), (votes, 1)
    assert crossed == expected
    assert model.samples.shape == (5, 1, 8, 8)


def test_in_private_gradients_and_votes_share_the_budget():
    federation = private_federation()
    PRIVATE.fit(federation)
    for client in federation.clients:
        gradients, votes = federation.protection.accountant.releases(client.index)
        assert (gradients.sample_rate, gradients.steps) == (pytest.approx(1 / 3), 2 * 3 * 4)
        assert (votes.sample_rate, votes.steps) == (1.0, 7)
        assert 3.9 < epsilon([gradients], 1e-5) <= 4
        assert 7.9 < federation.protection.accountant.epsilon(client.index) <= 8


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_what_a_client_sends_of_an_image_is_clipped_whatever_its_discriminator(scale):
    federation = private_federation()
    node, *_ = nodes = PRIVATE.make_nodes(federation)
    PRIVATE.begin_epoch(federation, nodes, 1)
    for parameter in node.discriminator.module.parameters():
        parameter.data.mul_(scale)
    stream = federation.stream("test")
    images = torch.randn(6, 1, 8, 8)
    sent = PRIVATE.noisy_gradient(
        federation, node, images, stream, rate=1.0, noise=1e-12, clients=3
    )
    norms = sent.flatten(1).norm(dim=1)
    assert norms.max() <= (1 + 1e-4) / 6  # one over the batch, since the loss is a mean over it
    assert (
        norms.min() > (0.05 if scale == 1.0 else 0.99) / 6
    )  # untrained, gradients are not far below the norm
    assert (
        PRIVATE.noisy_gradient(federation, node, images, stream, rate=0.0, noise=1e-12, clients=3)
        .abs()
        .max()
        < 1e-9
    )


def test_the_noise_of_all_clients_together_is_what_the_accountant_was_told():
    federation = private_federation(clients=4)
    nodes = PRIVATE.make_nodes(federation)
    PRIVATE.begin_epoch(federation, nodes, 1)
    images = torch.zeros(200, 1, 8, 8)
    total = sum(
        PRIVATE.noisy_gradient(
            federation, n, images, federation.stream(n.client.index), 0.0, 3.0, 4
        )
        for n in nodes
    )
    assert total.std() == pytest.approx(3.0 * 2 / 200, rel=0.05)


def test_another_seed_of_the_noise_gives_another_student():
    def weights(mechanism, noise):
        budget = math.inf if mechanism == "released" else 8.0
        return PRIVATE.fit(private_federation(mechanism, budget, seeds=Seeds(noise=noise))).state[
            "head.weight"
        ]

    for mechanism in ("gs-wgan", "released"):
        assert not torch.equal(weights(mechanism, 0), weights(mechanism, 1))


def test_the_released_noise_has_no_epsilon_and_says_so():
    federation = private_federation("released", math.inf)
    replace(PRIVATE, epochs=2).fit(federation)
    assert federation.protection.accountant.epsilon() == 0
    (note,) = federation.protection.notes
    assert note.startswith(
        "released DP has no epsilon: logits and the teachers' gradients leave without noise"
    )
    assert "the noise is 0.5 sensitivities" in note
    assert {t.kind for t in federation.channel.ledger if t.direction == "up"} == FedIOD.sends


def test_the_released_noise_moves_the_discriminators():
    def own_scores(federation):
        PRIVATE.fit(federation)
        return [tensors["own"] for transfer, tensors in sent if "own" in tensors]

    sent = []
    channel = Channel(inspect=lambda transfer, tensors: sent.append((transfer, dict(tensors))))
    plain = own_scores(make_federation(3, channel=channel))
    sent.clear()
    noisy = own_scores(private_federation("released", math.inf, channel=channel))
    torch.testing.assert_close(noisy[0], plain[0])  # before the first step
    assert not torch.allclose(noisy[-1], plain[-1])


@pytest.mark.parametrize("mechanism", ["gs-wgan", "released"])
def test_a_plan_books_the_bytes_of_a_private_run(mechanism):
    def fitted(device):
        budget = math.inf if mechanism == "released" else 8.0
        federation = private_federation(
            mechanism, budget, [make_client(k, device=device) for k in range(2)], device=device
        )
        PRIVATE.fit(federation)
        return federation.channel.by_kind()

    with metering(Meter()):
        planned = fitted("meta")
    assert planned == fitted("cpu")
