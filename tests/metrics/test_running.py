"""Metrics that are fed batch by batch: by hand by sample and by group, and the same however the
samples are cut into batches.
"""

import math

import pytest
import torch

from metrics.running import AbsoluteError, Accuracy, MeanAUC, Overlap, measured

SCORES = torch.tensor([[3.0, 1.0, 2.0], [0.0, -1.0, 5.0], [0.1, 0.3, 0.2], [9.0, 8.0, 7.0]])
GROUPS = torch.tensor([7, 3, 7, 7])


def accuracy(scores, labels):
    return measured(Accuracy(), scores, torch.tensor(labels))["accuracy"]


def test_accuracy_is_the_share_of_samples_whose_highest_score_is_at_the_label():
    assert accuracy(SCORES, [0, 2, 0, 1]) == 0.5
    assert accuracy(SCORES, [0, 2, 1, 0]) == 1.0
    assert accuracy(SCORES, [1, 1, 2, 2]) == 0.0


def test_accuracy_by_group_is_the_mean_over_groups():
    # Group 7 has one of three right, group 3 its only one.
    assert measured(Accuracy(), SCORES, torch.tensor([0, 2, 0, 1]), GROUPS) == {
        "accuracy": 0.5,
        "accuracy-by-group": pytest.approx((1 / 3 + 1) / 2),
    }


def one_hot(predicted, classes):
    return torch.nn.functional.one_hot(torch.tensor(predicted), classes).movedim(-1, 1).float()


# Four samples of two pixels, of background 0 and an organ 1.
PREDICTED = one_hot([[[1, 1]], [[1, 0]], [[0, 1]], [[0, 0]]], 2)
TARGETS = torch.tensor([[[1, 0]], [[1, 1]], [[1, 255]], [[0, 0]]])


def test_overlap_without_groups_is_the_mean_iou_of_all_pixels():
    # Of either class two pixels are found, of five that are predicted or there.
    assert measured(Overlap(2, 255), PREDICTED, TARGETS) == {
        "miou": pytest.approx((2 / 5 + 2 / 5) / 2),
        "miou#defined": 2,
        "miou#of": 2,
    }


def counts(values, name):
    return values[f"{name}#defined"], values[f"{name}#of"]


def test_the_count_of_the_mean_iou_is_that_of_the_classes_that_are_there():
    # Of three classes one is there, which is found, and one is predicted beside it: IoU 1/2 and 0.
    outputs = one_hot([[[1, 2]]], 3)
    values = measured(Overlap(3, 255), outputs, torch.tensor([[[1, 1]]]))
    assert values["miou"] == (1 / 2 + 0) / 2
    assert counts(values, "miou") == (1, 3)


LOST = torch.full((1, 2, 1, 2), math.nan)


def test_a_sample_whose_scores_are_not_numbers_is_a_miss_and_not_of_the_first_class():
    scores = torch.tensor([[math.nan, math.nan], [3.0, 1.0], [0.0, math.nan]])
    assert accuracy(scores, [0, 0, 0]) == 1 / 3
    # Of the two samples one is right; the other's pixels are all of another class than they should.
    values = measured(
        Overlap(2, 255), torch.cat([LOST, PREDICTED[3:]]), torch.zeros(2, 1, 2).long()
    )
    assert values["miou"] == (2 / 4 + 0) / 2


def test_a_score_that_is_not_a_number_is_ranked_wrongly_and_a_class_without_any_has_no_auc():
    scores = torch.tensor([[0.9, math.nan], [math.nan, math.nan], [0.1, math.nan], [0.2, math.nan]])
    targets = torch.tensor([[1, 1], [1, 1], [0, 0], [0, 0]], dtype=torch.uint8)
    # Of four pairs the two with the positive that has no score are wrong.
    assert measured(MeanAUC(), scores, targets) == {"mauc": 0.5, "mauc#defined": 1, "mauc#of": 2}
    with pytest.raises(ValueError, match="no finding has images both with and without it"):
        measured(MeanAUC(), scores, torch.ones_like(targets))
    with pytest.raises(ValueError, match="training diverged"):
        measured(MeanAUC(), scores * math.nan, targets)


def test_dice_is_the_mean_over_samples_and_over_groups_that_have_the_organ():
    values = measured(Overlap(2, 255), PREDICTED, TARGETS, torch.tensor([7, 7, 3, 5]))
    assert values["dice"] == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    # Group 7: two pixels found of three there and three predicted; 3: one there, none predicted.
    assert values["dice-by-group"] == pytest.approx((4 / 6 + 0) / 2)
    assert (counts(values, "dice"), counts(values, "dice-by-group")) == ((3, 4), (2, 3))


def test_dice_of_nothing_but_background_is_no_number():
    values = measured(Overlap(2, 255), PREDICTED[3:], TARGETS[3:], torch.tensor([1]))
    assert values["miou"] == 1
    assert math.isnan(values["dice"])
    assert math.isnan(values["dice-by-group"])


def test_the_absolute_error_by_group_is_the_mean_over_groups():
    outputs = torch.tensor([0.0, 1.0, 4.0]).view(3, 1, 1, 1).expand(3, 2, 1, 2)
    assert measured(AbsoluteError(), outputs, torch.zeros(3, 2, 1, 2), torch.tensor([7, 7, 3])) == {
        "mean-absolute-error": pytest.approx(5 / 3),
        "mean-absolute-error-by-group": pytest.approx((0.5 + 4) / 2),
    }


def random_case(kind):
    rng = torch.Generator().manual_seed(1)
    groups = torch.randint(0, 4, (11,), generator=rng)
    if kind is Accuracy:
        scores, labels = torch.rand(11, 3, generator=rng), torch.randint(3, (11,), generator=rng)
        return Accuracy, scores, labels, groups
    if kind is MeanAUC:
        scores, known = torch.rand(11, 2, generator=rng), torch.rand(11, 2, generator=rng) < 0.5
        return MeanAUC, scores, known.to(torch.uint8), groups
    shape = (11, 3, 2, 4, 5)
    outputs = torch.randn(shape, generator=rng)
    if kind is AbsoluteError:
        return AbsoluteError, outputs, torch.randn(shape, generator=rng), groups
    labels = torch.randint(3, (11, *shape[2:]), generator=rng)
    return lambda: Overlap(3, 255), outputs, labels, groups


KINDS = [Accuracy, Overlap, AbsoluteError, MeanAUC]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batches", [0, 1])
@pytest.mark.parametrize("grouped", [True, False])
def test_the_metrics_of_no_samples_are_refused(kind, batches, grouped):
    make, outputs, targets, groups = random_case(kind)
    running = make()
    for _ in range(batches):
        running.update(outputs[:0], targets[:0], groups[:0] if grouped else None)
    with pytest.raises(ValueError, match=r"of no (labelled pixels|samples) (is|are) undefined"):
        running.compute()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", [1, 4, 10])
@pytest.mark.parametrize("grouped", [True, False])
def test_batches_give_what_all_samples_at_once_give(kind, batch, grouped):
    make, outputs, targets, groups = random_case(kind)
    running = make()
    for start in range(0, len(outputs), batch):
        part = slice(start, start + batch)
        running.update(outputs[part], targets[part], groups[part] if grouped else None)
    assert running.compute() == measured(make(), outputs, targets, groups if grouped else None)
