"""Metrics that are fed batch by batch: by hand by sample and by group, and the same however the
samples are cut into batches.
"""

import math

import pytest
import torch

from fedtables.metrics.instances import ternary
from fedtables.metrics.running import AbsoluteError, Accuracy, MeanAUC, Overlap, measured
from fedtables.metrics.running_masks import BinaryOverlap, NucleiOverlap, RegionOverlap

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


@pytest.mark.parametrize(("groups", "rows"), [(None, 1), (torch.arange(4), 8)])
def test_overlap_keeps_one_matrix_unless_it_is_asked_by_group(groups, rows):
    running = Overlap(2, 255)
    for _ in range(2):
        running.update(PREDICTED, TARGETS, groups)
    assert sum(map(len, running._rows)) == rows


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
    """A metric, and outputs, targets and groups of eleven samples."""
    rng = torch.Generator().manual_seed(1)
    groups = torch.randint(0, 4, (11,), generator=rng)
    volumes = torch.randn(11, 3, 2, 4, 5, generator=rng)
    labels = torch.randint(5, (11, 2, 4, 5), generator=rng)
    cells = torch.randint(3, (11, 3, 4), generator=rng)
    nuclei = cells.repeat_interleave(6, 1).repeat_interleave(6, 2)
    classes = torch.nn.functional.one_hot(ternary(nuclei), 3).movedim(-1, 1)
    scores = classes + torch.randn(classes.shape, generator=rng) / 3
    regions = {"whole": (1, 2, 4), "core": (4,), "other": (3,)}
    return {
        "accuracy": (Accuracy, volumes[:, :, 0, 0, 0], labels[:, 0, 0, 0] % 3, groups),
        "auc": (MeanAUC, volumes[:, :2, 0, 0, 0], labels[:, 0, 0, :2] % 2, groups),
        "error": (AbsoluteError, volumes, volumes.flip(0), groups),
        "overlap": (lambda: Overlap(3, 255), volumes, labels % 3, groups),
        "binary": (lambda: BinaryOverlap(255), volumes[:, :1], labels % 2, groups),
        "regions": (lambda: RegionOverlap(regions, 255), volumes, labels, groups),
        "nuclei": (NucleiOverlap, scores, nuclei, groups),
    }[kind]


KINDS = ["accuracy", "auc", "error", "overlap", "binary", "regions", "nuclei"]


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
