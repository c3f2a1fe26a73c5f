"""Steps of training by hand, what is added to them or limits them, and when they are refused."""

import itertools
import math

import pytest
import torch
from torch import nn

from fedtables.federation.costs import Meter, metering
from fedtables.federation.training.plan import DivergedError, SteadyPenalty, TrainingPlan
from tests.federation.training.one_pixel import (
    DropsHalf,
    fit,
    line,
    outputs_only,
    pixels,
    sgd,
    weight_of,
)

# -- steps --


def test_one_step_follows_the_mean_gradient_of_the_batch():
    model = line(2.0)
    fit(model, pixels(255, 51), torch.tensor([1.0, 0.0]), sgd())
    # gradient: mean of 2 (2 x - t) x = (2 (2 - 1) 1 + 2 (0.4 - 0) 0.2) / 2 = (2 + 0.16) / 2 = 1.08
    assert weight_of(model) == pytest.approx(2.0 - 0.1 * 1.08)


def test_sample_weights_scale_losses_before_the_mean_over_the_batch():
    model = line(2.0)
    fit(
        model,
        pixels(255, 51),
        torch.tensor([1.0, 0.0]),
        sgd(),
        sample_weights=torch.tensor([1.5, 1.0]),
    )
    # (1.5 x 2 + 0.16) / 2 = 1.58: divided by the two samples and not by the weights' sum of 2.5
    assert weight_of(model) == pytest.approx(2.0 - 0.1 * 1.58)


def test_a_cosine_schedule_falls_from_the_first_rate_to_the_final_one():
    model, weights = line(0.0), [0.0]
    plan = sgd(epochs=4, lr=1.0, schedule="cosine", final_lr=0.2)
    fit(
        model,
        pixels(255, 255),
        torch.zeros(2),
        plan,
        loss=outputs_only,
        after_epoch=lambda e: weights.append(weight_of(model)),
    )
    rates = [before - after for before, after in itertools.pairwise(weights)]
    assert rates == pytest.approx(
        [0.2 + 0.8 * (1 + math.cos(math.pi * e / 4)) / 2 for e in range(4)]
    )


# -- penalties, limits and empty sets --


def decay(model, batch):
    """0.5 w^2, whose gradient is w."""
    return 0.5 * model[1].weight.square().sum()


def test_a_penalty_is_added_once_to_the_mean_loss_of_a_batch_of_any_size():
    for samples in (1, 2, 5):
        model = line(2.0)
        fit(
            model,
            pixels(*[255] * samples),
            torch.zeros(samples),
            sgd(),
            loss=outputs_only,
            penalty=decay,
        )
        # gradient: mean of x = 1, and 2 of the penalty
        assert weight_of(model) == pytest.approx(2.0 - 0.1 * (1 + 2))


def test_a_penalty_sees_the_batch_as_the_network_does_and_no_sample_weights():
    seen = []

    def penalty(model, batch):
        outputs = batch.outputs.squeeze(1)
        seen.append((batch.inputs.flatten().tolist(), outputs.tolist(), batch.targets.tolist()))
        return (outputs - batch.targets).sum()

    model = line(2.0)
    fit(
        model,
        pixels(255, 255),
        torch.tensor([1.0, 1.0]),
        sgd(),
        loss=outputs_only,
        sample_weights=torch.tensor([3.0, 3.0]),
        penalty=penalty,
    )
    assert seen == [([1, 1], [2, 2], [1, 1])]  # white pixels are 1, and the weight is 2
    assert weight_of(model) == pytest.approx(2.0 - 0.1 * (3 + 2))  # mean of 3 x, and the sum of x


class Plane(nn.Module):
    """Two weights: a x + b y, of images of two pixels."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))

    def forward(self, images):
        return images.flatten(1) @ torch.stack([self.a, self.b])


def test_the_norm_of_a_steps_gradient_is_limited_over_all_parameters_together():
    images = torch.tensor([[255, 255]], dtype=torch.uint8).view(1, 1, 1, 2)

    def moved(clip_norm):
        model = Plane()
        fit(
            model,
            images,
            torch.zeros(1),
            sgd(lr=1.0, clip_norm=clip_norm),
            loss=lambda o, t: 3 * o.squeeze(1) + 0 * t,
        )
        return model.a.item(), model.b.item()

    assert moved(0) == (-3, -3)  # no limit
    assert moved(10) == (-3, -3)  # the norm is 4.24
    assert moved(2**0.5) == (pytest.approx(-1, abs=1e-5), pytest.approx(-1, abs=1e-5))


def test_no_images_leave_a_model_as_it_is():
    model, epochs = DropsHalf(), []
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    empty = torch.empty(0, 1, 1, 1, dtype=torch.uint8)
    fit(
        model,
        empty,
        torch.empty(0),
        sgd(epochs=2, momentum=0.9, weight_decay=0.1),
        penalty=decay,
        after_epoch=epochs.append,
    )
    assert epochs == [1, 2]
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(
    ("options", "share"),
    [
        ({}, 1),
        ({"penalty": decay}, 0),
        ({"penalty": SteadyPenalty(decay)}, 1),
        ({"optimizer": "its own"}, 0),
    ],
)
def test_a_plan_says_which_steps_graphs_can_hold(options, share):
    model = nn.Sequential(nn.Flatten(), nn.Linear(1, 1)).to("meta")
    images = torch.empty(5, 1, 1, 1, dtype=torch.uint8, device="meta")
    with metering(Meter()) as meter:
        fit(model, images, torch.empty(5), sgd(epochs=2), **options)
    assert meter.work.flops == 5 * 2 * 3 * 2  # one weight: two operations a pass, three passes
    assert meter.work.replayable_flops == share * meter.work.flops


# -- failure --


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_stops_training_naming_its_epoch(bad):
    calls = iter([1.0, bad])
    epochs = []
    with pytest.raises(
        DivergedError,
        match=r"loss is (nan|inf) in epoch 2 of 3; lower lr \(now 0\.1\)",
    ):
        fit(
            line(),
            pixels(255, 0),
            torch.zeros(2),
            sgd(epochs=3),
            loss=lambda outputs, targets: outputs.squeeze(1) * next(calls),
            after_epoch=epochs.append,
        )
    assert epochs == [1]


def test_training_without_a_generator_is_refused():
    with pytest.raises(ValueError, match="needs a generator of the shuffling axis"):
        fit(line(), pixels(0, 0), torch.zeros(2), sgd(), generator=None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "at least 1"),
        ({"batch_size": 0}, "at least 1"),
        ({"lr": 0}, "lr above 0"),
        ({"lr": -1.0}, "lr above 0"),
        ({"lr": float("nan")}, "lr above 0"),
        ({"optimizer": "adamw"}, "unknown optimizer 'adamw'; known: adam, rmsprop, sgd"),
        ({"schedule": "step"}, "unknown schedule 'step'; known: constant, cosine"),
    ],
)
def test_an_impossible_plan_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        TrainingPlan(**{"epochs": 1, "batch_size": 1, **changes})
