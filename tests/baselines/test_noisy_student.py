"""Noisy Student: which images are kept and how often, the noise, and clean pseudo-labels."""

import pytest
import torch

from fedtables.baselines.noisy_student import NoisyStudent, confident, drop, filter_and_balance
from fedtables.federation.data import PublicData
from fedtables.federation.seeds import Stream
from fedtables.federation.training.loops import predict
from tests.baselines.probes import probed
from tests.federation.tiny import bright_images
from tests.methods.shards import same_bits


def stream(seed=0):
    return Stream(torch.Generator().manual_seed(seed), torch.device("cpu"))


PROBABILITIES = torch.tensor(
    [
        [0.50, 0.20, 0.10, 0.20],  # 0
        [0.90, 0.05, 0.02, 0.03],  # 0
        [0.20, 0.60, 0.10, 0.10],  # 1
        [0.60, 0.10, 0.20, 0.10],  # 0
        [0.24, 0.25, 0.26, 0.25],  # 2, below 0.3
        [0.00, 0.25, 0.25, 0.50],  # 3
        [0.25, 0.15, 0.30, 0.30],  # 2, at 0.3 and first of two
    ]
)


def test_the_most_confident_of_a_class_are_kept_and_those_of_a_rare_class_repeated():
    kept = filter_and_balance(PROBABILITIES, 0.3, 2, stream())
    assert kept.tolist() == [1, 3, 2, 2, 6, 6, 5, 5]


def test_every_class_that_was_found_has_the_same_number_of_images():
    kept = filter_and_balance(PROBABILITIES, 0.3, 5, stream())
    labels = PROBABILITIES[kept].argmax(dim=1)
    assert torch.bincount(labels).tolist() == [5, 5, 5, 5]
    assert kept[:3].tolist() == [1, 3, 0]
    assert set(kept[3:5].tolist()) <= {0, 1, 3}


def test_what_is_not_confident_is_left_out_and_its_class_with_it():
    assert filter_and_balance(PROBABILITIES, 0.55, 2, stream()).tolist() == [1, 3, 2, 2]
    assert filter_and_balance(PROBABILITIES, 0.95, 2, stream()).tolist() == []


def test_images_of_pixels_are_kept_by_their_mean_confidence():
    sure, unsure = torch.tensor([0.9, 0.1]), torch.tensor([0.5, 0.5])
    images = torch.stack(
        [torch.stack(pixels, dim=1) for pixels in ((sure, sure), (sure, unsure), (unsure, unsure))]
    )[:, :, None]
    assert images.shape == (3, 2, 1, 2)
    assert confident(images, 0.65).tolist() == [0, 1]  # 0.9, 0.7 and 0.5
    assert confident(images, 0.75).tolist() == [0]


def test_dropout_takes_whole_channels_and_keeps_the_mean():
    out = drop(torch.ones(400, 10, 3, 3), 0.2, stream())
    assert sorted(out.unique().tolist()) == [0, 1.25]
    assert torch.equal(out, out[:, :, :1, :1].expand_as(out))
    assert out.mean().item() == pytest.approx(1, abs=0.03)  # a deviation of 0.008
    assert torch.equal(drop(torch.ones(3, 4), 0.0, stream()), torch.ones(3, 4))


def quick(**fields):
    return NoisyStudent(**{"iterations": 1, "steps": 4, "ratio": 2, "threshold": 0.0, **fields})


@pytest.mark.parametrize("soft", [True, False])
def test_labels_are_what_the_teacher_says_of_clean_images_without_dropout(soft):
    federation = probed()
    teacher = federation.networks.initial("cnn-small").train()
    images = federation.public.images[:3]
    kept, labels = quick(soft=soft, per_class=1).pseudo_labelled(
        federation, teacher, images, stream()
    )
    probabilities = predict(teacher, kept, normalise=federation.normalise).softmax(dim=1)
    torch.testing.assert_close(labels, probabilities if soft else probabilities.argmax(dim=1))
    assert {image.sum().item() for image in kept} <= {image.sum().item() for image in images}


def test_a_teacher_sees_no_unlabelled_image_and_a_student_does():
    other = PublicData(bright_images(torch.tensor([2, 2, 1]), 5), "others")
    for iterations, same in ((0, True), (1, False)):
        method = quick(iterations=iterations)
        assert same_bits(method.fit(probed()).state, method.fit(probed(public=other)).state) == same
