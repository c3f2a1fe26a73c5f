"""The upper bound of DLAD: classifiers at their optimum, from labels that no real server has."""

import pytest
import torch

from fedtables.baselines.labeled_distillation import LabeledDistillation, optimal_confidence
from fedtables.methods.dlad import confidence_weights, mixture, teacher_probabilities
from tests.federation.tiny import make_federation


def test_the_optimal_confidence_under_niid1_is_five_sixths_for_own_classes_and_zero_for_others():
    counts = torch.zeros(5, 10)
    for client in range(5):
        counts[client, 2 * client : 2 * client + 2] = 2500
    confidence = optimal_confidence(counts, torch.arange(10).repeat(4))
    expected = torch.zeros(5, 10)
    for client in range(5):
        expected[client, 2 * client : 2 * client + 2] = 0.5 / (0.1 + 0.5)
    torch.testing.assert_close(confidence, expected.repeat(1, 4))
    assert confidence[0, 0].item() == pytest.approx(0.8333, abs=1e-4)


def test_the_optimal_confidence_counts_how_common_a_class_is_in_public():
    # Client: 3/4 and 1/4. Public: 1/3 and 2/3.
    confidence = optimal_confidence(torch.tensor([[3, 1]]), torch.tensor([0, 1, 1]))
    own, other = (3 / 4) / (1 / 3 + 3 / 4), (1 / 4) / (2 / 3 + 1 / 4)
    torch.testing.assert_close(confidence, torch.tensor([[own, other, other]]))


@pytest.fixture
def federation():
    return make_federation(
        oracle_labels=torch.tensor([0, 1, 2] * 2), oracle_allowed=LabeledDistillation.oracle
    )


def test_the_global_model_imitates_the_mixture_with_ideal_weights(federation, monkeypatch):
    distilled = []
    monkeypatch.setattr(federation, "distill", distilled.append)
    LabeledDistillation().fit(federation)
    # Client 0 holds classes 0 and 1 by halves, client 1 classes 1 and 2; public classes are thirds.
    own = 0.5 / (1 / 3 + 0.5)
    confidence = torch.tensor([[own, own, 0.0] * 2, [0.0, own, own] * 2])
    teachers = teacher_probabilities(federation, federation.local_models())
    torch.testing.assert_close(
        distilled[0], mixture(confidence_weights(confidence, 0.05), teachers)
    )
    torch.testing.assert_close(distilled[0][1], teachers[:, 1].mean(dim=0))
