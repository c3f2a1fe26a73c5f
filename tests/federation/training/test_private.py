"""DP-SGD: one step by hand, what one sample can do, and the noise."""

import functools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fedtables.federation.costs import Meter, metering
from fedtables.federation.data import TrainingSet
from fedtables.federation.training.inputs import Inputs
from fedtables.federation.training.plan import DivergedError, Training, TrainingPlan
from fedtables.federation.training.private import (
    MixingLayerError,
    PrivateSteps,
    check_separable,
    train_privately,
)
from tests.federation.training.one_pixel import PLAIN, line, pixels, weight_of

ONE_EPOCH = TrainingPlan(epochs=1, batch_size=2, lr=1.0, optimizer="sgd")


def squared(outputs, targets):
    return 0.5 * (outputs.squeeze(1) - targets).square()


def privately(model, images, targets, private, loss=squared, plan=ONE_EPOCH, seed=0, **options):
    penalty = options.pop("penalty", None)
    generator, noise = (torch.Generator().manual_seed(seed) for _ in range(2))
    samples, training = TrainingSet(images, targets), Training(loss, plan, penalty=penalty)
    inputs = Inputs(PLAIN, generator=generator)
    train_privately(model, samples, training, private, inputs, noise=noise, **options)


def trained(images, targets, *, noise=0.0, rate=1.0, steps=1, clip=1.0, **options):
    model = line(0.0)
    privately(model, images, targets, PrivateSteps(noise, rate, steps, clip), **options)
    return weight_of(model)


def test_a_step_sums_clipped_gradients_and_divides_by_the_expected_batch():
    # x = 1 (255 / 255); d/dw of (w x - y)^2 / 2 at w = 0 is -y: -0.5, and -3, which is clipped to
    # -1.
    assert trained(pixels(255, 255), torch.tensor([0.5, 3.0])) == pytest.approx(
        (0.5 + 1.0) / 2, abs=1e-5
    )


def test_the_noise_has_the_standard_deviation_that_the_accountant_is_told():
    images, targets = pixels(*[0] * 4), torch.zeros(4)  # no gradient: what moves is noise
    weights = torch.tensor(
        [trained(images, targets, noise=3.0, clip=0.5, seed=seed) for seed in range(400)]
    )
    assert weights.mean().abs() < 4 * 3.0 * 0.5 / 4 / 20
    assert weights.std() == pytest.approx(3.0 * 0.5 / 4, rel=0.15)


def test_a_step_that_draws_nobody_is_noise_alone():
    weights = [
        trained(pixels(255), torch.tensor([0.5]), noise=1.0, rate=1e-9, seed=seed)
        for seed in (0, 1)
    ]
    assert weights[0] != weights[1]
    assert 0 not in weights


def test_samples_are_drawn_independently_with_the_sample_rate():
    drawn = []

    def counting(outputs, targets):
        drawn.append(len(targets))
        return squared(outputs, targets)

    private = PrivateSteps(0.0, 0.1, 200, 1.0)
    privately(line(), pixels(*[1] * 100), torch.zeros(100), private, counting)
    counts = torch.tensor(drawn, dtype=torch.float)
    assert counts.mean() == pytest.approx(10, rel=0.1)
    assert counts.var() == pytest.approx(9, rel=0.4)  # binomial; batches of one size have none


def test_a_penalty_is_added_unclipped_and_is_shown_no_sample():
    seen = []

    def pull(model, batch):
        seen.append((len(batch.inputs), len(batch.outputs), len(batch.targets)))
        return 10 * (model[1].weight - 1).square().sum() / 2

    assert trained(pixels(0, 0), torch.zeros(2), penalty=pull) == pytest.approx(10.0)
    assert seen == [(0, 0, 0)]


def test_an_epoch_sees_every_sample_once_on_average_and_the_last_may_be_short():
    epochs = []
    plan = TrainingPlan(epochs=3, batch_size=2, lr=0.1, optimizer="sgd")
    trained(
        pixels(1, 2, 3, 4), torch.zeros(4), rate=0.5, steps=5, plan=plan, after_epoch=epochs.append
    )
    assert epochs == [1, 2, 3]


def test_a_diverged_run_says_so():
    plan = TrainingPlan(epochs=1, batch_size=2, lr=1e38, optimizer="sgd")
    with pytest.raises(DivergedError, match="lower lr"):
        trained(pixels(255, 255), torch.ones(2), noise=100.0, steps=50, plan=plan)


def test_batchnorm_is_refused_with_what_to_do():
    check_separable(nn.Sequential(nn.Conv2d(1, 8, 3), nn.GroupNorm(1, 8)), "mine")
    with pytest.raises(MixingLayerError, match="no mine-gn with GroupNorm"):
        check_separable(nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8)), "mine")


def test_clipping_is_per_sample_across_all_parameters_together():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    start = [p.detach().clone() for p in model.parameters()]
    images = torch.randint(0, 256, (5, 1, 2, 2), dtype=torch.uint8)
    labels = torch.tensor([0, 1, 1, 0, 1])
    total = [torch.zeros_like(p) for p in start]
    for image, label in zip(images, labels, strict=True):
        loss = F.cross_entropy(model(image[None].float() / 255), label[None])
        own = torch.autograd.grad(loss, list(model.parameters()))
        norm = torch.stack([g.square().sum() for g in own]).sum().sqrt()
        total = [t + g * min(1.0, 0.3 / norm.item()) for t, g in zip(total, own, strict=True)]
    loss = functools.partial(F.cross_entropy, reduction="none")
    privately(model, images, labels, PrivateSteps(0.0, 1.0, 1, 0.3), loss)
    for now, before, step in zip(model.parameters(), start, total, strict=True):
        torch.testing.assert_close(now.detach(), before - step / 5, atol=1e-5, rtol=1e-4)


def test_a_plan_counts_as_many_samples_as_are_drawn_on_average():
    # Two epochs of three steps: batches of 4 of 10 samples, so 24 samples and not 20.
    plan = TrainingPlan(epochs=2, batch_size=4, lr=1.0, optimizer="sgd")
    with metering(Meter()) as meter:
        images, private = torch.empty((10, 1, 1, 1), device="meta"), PrivateSteps(1.0, 0.4, 6, 1.0)
        privately(line().to("meta"), images, torch.empty(10), private, plan=plan)
    assert meter.work.training_samples == 24


def test_a_plan_looks_as_often_as_a_run_a_short_last_epoch_too():
    plan = TrainingPlan(epochs=3, batch_size=4, lr=1.0, optimizer="sgd")
    steps, looks = PrivateSteps(1.0, 0.4, 7, 1.0), []
    with metering(Meter()) as meter:
        images = torch.empty((10, 1, 1, 1), device="meta")
        look = {"after_epoch": lambda epoch: looks.append((epoch, meter.times))}
        privately(line().to("meta"), images, torch.empty(10), steps, plan=plan, **look)
    assert looks == [(1, 3)]  # three steps, three, and one
