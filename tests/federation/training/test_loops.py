"""The two loops of learning, by hand."""

import copy
import functools
import itertools
import math
import os
import shutil
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from federation.costs import Meter, metering
from federation.training import loops as training
from federation.training.augmentation import Augmentation
from federation.training.execution import DEFAULT, Execution
from federation.training.loops import (
    DivergedError,
    Normalisation,
    TrainingPlan,
    batches,
    channels_last,
    forward_pass,
    predict,
    prediction_batch,
    train,
    training_pairs,
    unit_range,
)
from tests.federation.tiny import CLASSES, bright_images, make_federation

PLAIN = Normalisation((0.0,), (1.0,))


def line(weight=2.0):
    """x -> weight x, for images of one pixel."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(1, 1, bias=False))
    nn.init.constant_(model[1].weight, weight)
    return model


def weight_of(model):
    return model[1].weight.item()


def pixels(*values):
    return torch.tensor(values, dtype=torch.uint8).view(-1, 1, 1, 1)


def squared(outputs, targets):
    return (outputs.squeeze(1) - targets) ** 2


def outputs_only(outputs, targets):
    return outputs.squeeze(1)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def sgd(epochs=1, batch_size=10, lr=0.1, **changes):
    return TrainingPlan(epochs, batch_size, lr, optimizer="sgd", **changes)


def fit(model, images, targets, plan, loss=squared, **changes):
    train(
        model,
        images,
        targets,
        loss,
        plan,
        **{"normalise": PLAIN, "generator": generator(), **changes},
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


def test_sample_weights_stay_with_their_samples_when_these_are_shuffled():
    weights = torch.tensor([1.0, 0, 0, 0, 0, 0, 0, 0])
    model = line(2.0)
    fit(model, pixels(255, *[0] * 7), torch.ones(8), sgd(batch_size=2), sample_weights=weights)
    assert weight_of(model) == pytest.approx(2.0 - 0.1 * (2 * (2 - 1) * 1) / 2)


def test_inputs_are_normalised():
    model = line(2.0)
    fit(
        model,
        pixels(255, 255),
        torch.zeros(2),
        sgd(),
        loss=outputs_only,
        normalise=Normalisation((0.5,), (0.25,)),
    )
    assert weight_of(model) == pytest.approx(2.0 - 0.1 * (1 - 0.5) / 0.25)


def test_an_epoch_takes_one_step_per_batch():
    model = line(0.0)
    fit(model, pixels(*[255] * 6), torch.zeros(6), sgd(epochs=2, batch_size=3), loss=outputs_only)
    assert weight_of(model) == pytest.approx(-4 * 0.1)


def test_momentum_and_weight_decay_are_those_of_the_plan():
    model = line(1.0)
    fit(
        model,
        pixels(255, 255),
        torch.zeros(2),
        sgd(epochs=2, momentum=0.5, weight_decay=0.2),
        loss=outputs_only,
    )
    # Step 1: velocity 1 + 0.2 x 1 = 1.2, weight 0.88. Step 2: velocity 0.6 + 1 + 0.2 x 0.88 =
    # 1.776, weight 0.7024.
    assert weight_of(model) == pytest.approx(0.7024)


def test_the_first_step_of_adam_has_the_length_of_the_learning_rate():
    model = line(1.0)
    fit(model, pixels(255, 255), torch.zeros(2), TrainingPlan(1, 2, lr=0.05), loss=outputs_only)
    assert weight_of(model) == pytest.approx(0.95, abs=1e-6)


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


def test_a_constant_schedule_keeps_the_rate():
    model, weights = line(0.0), []
    fit(
        model,
        pixels(255, 255),
        torch.zeros(2),
        sgd(epochs=3),
        outputs_only,
        after_epoch=lambda e: weights.append(weight_of(model)),
    )
    assert weights == pytest.approx([-0.1, -0.2, -0.3])


def test_augmentation_is_applied_to_the_training_images():
    model = line(0.0)
    images = torch.zeros(50, 1, 1, 1, dtype=torch.uint8)
    fit(
        model,
        images,
        torch.zeros(50),
        sgd(batch_size=50),
        outputs_only,
        augmentation=Augmentation(channel_shift=0.5),
    )
    assert weight_of(model) < -0.001  # black images alone would leave the weight at 0


def test_the_shuffling_generator_determines_the_result():
    def trained(seed):
        model = line(2.0)
        fit(
            model,
            pixels(0, 50, 100, 150, 200, 250),
            torch.arange(6.0),
            sgd(batch_size=2),
            generator=generator(seed),
        )
        return weight_of(model)

    assert trained(1) == trained(1)
    assert len({trained(seed) for seed in range(5)}) > 1


def test_callbacks_come_after_every_epoch_in_training_mode():
    model, seen = line(), []
    fit(
        model,
        pixels(255, 0),
        torch.zeros(2),
        sgd(epochs=3),
        after_epoch=lambda epoch: seen.append((epoch, model.training)),
    )
    assert seen == [(1, True), (2, True), (3, True)]


def test_a_model_put_into_evaluation_mode_by_a_callback_goes_on_training():
    modes = []

    class Watch(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = line()

        def forward(self, images):
            modes.append(self.training)
            return self.line(images)

    model = Watch()
    fit(
        model, pixels(255, 0), torch.zeros(2), sgd(epochs=2), after_epoch=lambda epoch: model.eval()
    )
    assert modes == [True, True]


# -- penalties, limits and empty sets --


def decay(model, outputs, targets):
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


def test_a_penalty_is_added_in_every_batch():
    model = line(2.0)
    fit(
        model,
        pixels(*[0] * 6),
        torch.zeros(6),
        sgd(batch_size=2, epochs=2),
        loss=outputs_only,
        penalty=decay,
    )
    assert weight_of(model) == pytest.approx(
        2.0 * 0.9**6
    )  # black images have no gradient of their own


def test_a_penalty_sees_the_batchs_outputs_and_targets_and_no_sample_weights():
    seen = []

    def penalty(model, outputs, targets):
        seen.append((outputs.squeeze(1).tolist(), targets.tolist()))
        return (outputs.squeeze(1) - targets).sum()

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
    assert seen == [([2, 2], [1, 1])]
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


def test_the_penaltys_gradient_is_limited_too():
    model = line(2.0)
    fit(
        model,
        pixels(255),
        torch.zeros(1),
        sgd(lr=1.0, clip_norm=0.5),
        loss=outputs_only,
        penalty=decay,
    )
    assert weight_of(model) == pytest.approx(1.5, abs=1e-5)


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


def test_no_images_cost_nothing():
    with metering(Meter()) as meter:
        fit(line(), torch.empty(0, 1, 1, 1, dtype=torch.uint8), torch.empty(0), sgd(epochs=2))
    assert (meter.flops, meter.training_samples) == (0, 0)


# -- failure --


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_stops_training_naming_its_epoch(bad):
    calls = iter([1.0, bad])
    epochs = []
    with pytest.raises(
        DivergedError, match=r"loss is (nan|inf) in epoch 2 of 3; lower lr \(now 0\.1\)"
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


def test_a_rate_that_is_far_too_high_is_told_and_not_hidden():
    with pytest.raises(DivergedError, match="lower lr"):
        fit(line(), pixels(255, 255), torch.zeros(2), sgd(epochs=100, lr=1e6))


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
        ({"optimizer": "adamw"}, "unknown optimizer 'adamw'; use adam or sgd"),
        ({"schedule": "step"}, "unknown schedule 'step'; use constant or cosine"),
    ],
)
def test_an_impossible_plan_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        TrainingPlan(**{"epochs": 1, "batch_size": 1, **changes})


# -- batches --


def test_no_samples_make_no_batch():
    assert list(batches(0, 3, generator())) == list(batches(0, 1, generator())) == []


def test_a_last_batch_of_one_sample_is_left_out():
    assert [len(batch) for batch in batches(7, 3, generator())] == [3, 3]


def test_a_last_batch_of_two_samples_is_kept():
    assert [len(batch) for batch in batches(8, 3, generator())] == [3, 3, 2]


def test_a_single_sample_is_a_batch():
    assert [batch.tolist() for batch in batches(1, 3, generator())] == [[0]]


def test_batches_of_one_hold_every_sample():
    assert sorted(batch.item() for batch in batches(5, 1, generator())) == [0, 1, 2, 3, 4]


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(2, 20), st.integers(0, 9))
def test_batches_hold_every_sample_once_but_for_a_lonely_last_one(samples, batch_size, seed):
    drawn = [
        index for batch in batches(samples, batch_size, generator(seed)) for index in batch.tolist()
    ]
    lonely = samples % batch_size == 1 and samples > 1
    assert len(set(drawn)) == len(drawn) == samples - lonely
    assert set(drawn) <= set(range(samples))


def test_batches_are_shuffled_anew_in_every_epoch():
    stream = generator()
    assert [b.tolist() for b in batches(50, 10, stream)] != [
        b.tolist() for b in batches(50, 10, stream)
    ]


# -- inputs and prediction --


def test_unit_range_divides_by_255_and_leaves_the_images():
    images = pixels(0, 51, 255)
    torch.testing.assert_close(unit_range(images).flatten(), torch.tensor([0.0, 0.2, 1.0]))
    assert images.dtype == torch.uint8


def test_normalisation_works_channel_by_channel():
    images = torch.tensor([0.5, 0.5, 0.5]).view(1, 3, 1, 1)
    out = Normalisation((0.5, 0.3, 0.0), (1.0, 0.1, 0.5))(images)
    torch.testing.assert_close(out.flatten(), torch.tensor([0.0, 2.0, 1.0]))


class DropsHalf(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.norm, self.line = nn.Dropout(0.5), nn.BatchNorm2d(1), line(3.0)

    def forward(self, images):
        return self.line(self.norm(self.drop(images)))


def test_predictions_are_made_in_evaluation_mode_without_gradients():
    model = DropsHalf()
    first, second = (predict(model, pixels(255, 51), normalise=PLAIN) for _ in range(2))
    torch.testing.assert_close(first, torch.tensor([[3.0], [0.6]]), atol=1e-4, rtol=0)
    assert torch.equal(first, second)
    assert not first.requires_grad
    assert model.norm.num_batches_tracked == 0


@pytest.mark.parametrize("training", [True, False])
def test_predicting_restores_the_mode(training):
    model = DropsHalf().train(training)
    predict(model, pixels(1, 2), normalise=PLAIN)
    assert all(module.training == training for module in model.modules())


def test_an_image_is_predicted_the_same_wherever_it_stands_among_many():
    images = pixels(*range(250)).repeat(3, 1, 1, 1)  # more than go through the network at once
    predicted = predict(line(), images, normalise=PLAIN)
    assert predicted.shape == (750, 1)
    torch.testing.assert_close(predicted[:250], predict(line(), images[:250], normalise=PLAIN))
    torch.testing.assert_close(predicted[250:500], predicted[:250])
    torch.testing.assert_close(predicted[500:], predicted[:250])


def test_under_a_meter_nothing_is_learnt_and_all_is_booked():
    model, epochs = line(2.0), []
    with metering(Meter()) as meter:
        fit(
            model,
            pixels(255, 0),
            torch.zeros(2),
            sgd(epochs=3),
            generator=None,
            after_epoch=epochs.append,
        )
    # What comes after an epoch is followed once, and booked three times.
    assert (weight_of(model), epochs, meter.training_samples) == (2.0, [1], 6)


# -- precision --

CPU = torch.device("cpu")
GREY = Normalisation((0.5,), (0.25,))


class Listening(nn.Module):
    """A linear layer that notes of every pass whether it is under autocast, and in what type it
    answers.
    """

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, CLASSES)
        self.heard = []

    def forward(self, images):
        outputs = self.linear(images.flatten(1))
        self.heard.append((torch.is_autocast_enabled("cpu"), outputs.dtype))
        return outputs


def cross_entropy(outputs, targets):
    return F.cross_entropy(outputs, targets, reduction="none")


def bright_task():
    labels = torch.arange(30) % CLASSES
    return bright_images(labels, 0), labels


def learn(model, execution=DEFAULT, epochs=20, batch_size=5, **changes):
    images, labels = bright_task()
    plan = sgd(epochs, batch_size, 0.02)
    train(
        model,
        images,
        labels,
        cross_entropy,
        plan,
        normalise=GREY,
        generator=generator(),
        execution=execution,
        **changes,
    )
    return model


def test_a_pass_in_bf16_is_close_to_one_in_single_precision_and_not_the_same():
    model, inputs = (
        make_federation().networks.initial("cnn-small"),
        GREY(unit_range(bright_task()[0])),
    )
    plain, half = (
        forward_pass(DEFAULT, CPU)(model, inputs),
        forward_pass(Execution("bf16"), CPU)(model, inputs),
    )
    assert torch.equal(plain, model(inputs))
    assert half.dtype == torch.float32
    assert 0 < (half - plain).abs().max() < 0.05
    assert forward_pass(Execution("bf16"), CPU, full_batch=False)(model, inputs).equal(
        half
    )  # precision is not a matter of size


def test_autocast_ends_with_the_pass():
    model = Listening()
    forward_pass(Execution("bf16"), CPU)(model, torch.ones(2, 1, 8, 8))
    assert model.heard == [(True, torch.bfloat16)]
    assert not torch.is_autocast_enabled("cpu")


def test_training_in_bf16_learns_the_same_with_other_weights_in_single_precision():
    federation = make_federation()
    images, labels = bright_task()
    states = []
    for execution in (DEFAULT, Execution("bf16")):
        model = learn(federation.networks.initial("cnn-small"), execution)
        assert (predict(model, images, normalise=GREY).argmax(1) == labels).double().mean() == 1
        states.append(model.state_dict())
    assert {tensor.dtype for tensor in states[1].values()} == {torch.float32}
    assert 0 < max((states[0][name] - states[1][name]).abs().max() for name in states[0]) < 0.1


def test_every_training_step_is_in_bf16_and_no_prediction_is():
    model, (images, _) = Listening(), bright_task()
    learn(
        model,
        Execution("bf16"),
        epochs=2,
        batch_size=20,
        after_epoch=lambda epoch: predict(model, images, normalise=GREY),
    )
    half, whole = (True, torch.bfloat16), (False, torch.float32)
    assert model.heard == [half, half, whole] * 2  # batches of 20 and 10, and a prediction
    model.eval()
    assert predict(model, images, normalise=GREY).equal(model(GREY(unit_range(images))))


def test_a_federation_trains_in_its_precision_and_evaluates_in_single():
    federation = make_federation(execution=Execution("bf16"))
    model = Listening()
    federation.train_on_clients([(federation.clients[0], model)], sgd(batch_size=4))
    assert set(model.heard) == {(True, torch.bfloat16)}
    assert federation.forward(model, torch.ones(2, 1, 8, 8)).dtype == torch.float32
    assert model.heard.pop() == (True, torch.bfloat16)
    model.heard.clear()
    federation.evaluation.test(model)
    federation.evaluation.validate(model)
    assert model.heard == [(False, torch.float32)] * 2


# -- compilation --


@pytest.fixture
def nothing_compiled():
    """Before the test, and after it."""
    training._compiled.cache_clear()
    yield
    training._compiled.cache_clear()
    torch.compiler.reset()


@pytest.fixture
def compiler(monkeypatch, nothing_compiled):
    """In place of torch.compile one that notes modes, and the sizes of the batches that go through
    what it made.
    """

    class Compiler:
        def __init__(self):
            self.modes, self.sizes = [], []

        def __call__(self, function, *, mode=None, **options):
            self.modes.append(mode)

            def compiled(autocast, model, inputs):
                self.sizes.append(len(inputs))
                return function(autocast, model, inputs)

            return compiled

    found = Compiler()
    monkeypatch.setattr(torch, "compile", found)
    return found


def test_full_batches_are_compiled_and_a_smaller_last_one_is_not(compiler):
    plain, compiled = learn(Listening(), epochs=2, batch_size=8), Listening()
    learn(compiled, Execution(compile="default"), epochs=2, batch_size=8)
    assert compiler.sizes == [8, 8, 8] * 2  # of 30 samples; six are left
    assert len(compiled.heard) == len(plain.heard) == 8


def test_what_is_not_to_be_compiled_is_not(compiler):
    learn(Listening())
    learn(Listening(), Execution("bf16"))
    predict(Listening(), bright_task()[0], normalise=GREY)
    assert (compiler.modes, compiler.sizes) == ([], [])


def test_all_clients_and_networks_share_one_compiled_function_for_each_mode(compiler):
    federation = make_federation(4, execution=Execution(compile="default"))
    for network in ("cnn-small", "resnet8-narrow"):
        for client in federation.clients:
            model = federation.networks.initial(network)
            federation.train_on_clients([(client, model)], sgd(batch_size=5))
    assert compiler.modes == [None]
    assert compiler.sizes == [5, 5] * 8  # of twelve samples
    learn(Listening(), Execution(compile="reduce-overhead"), epochs=1, batch_size=30)
    learn(Listening(), Execution("tf32", "reduce-overhead"), epochs=1, batch_size=30)
    assert compiler.modes == [None, "reduce-overhead"]


def test_compiled_passes_may_be_in_bf16(compiler):
    model = learn(Listening(), Execution("bf16", "default"), epochs=1, batch_size=20)
    assert compiler.sizes == [20]
    assert model.heard == [(True, torch.bfloat16)] * 2  # the smaller batch too


def test_a_loop_of_a_methods_own_is_compiled_and_predictions_are_not(compiler):
    federation = make_federation(execution=Execution(compile="default"))
    model = Listening()
    federation.forward(model, torch.ones(3, 1, 8, 8))
    federation.evaluation.test(model)
    assert compiler.sizes == [3]


@pytest.mark.slow  # the compiler alone takes a dozen seconds
@pytest.mark.skipif(
    not any(map(shutil.which, [os.environ.get("CXX", "g++"), "g++", "clang++"])),
    reason="no C++ compiler",
)
@pytest.mark.usefixtures("nothing_compiled")
def test_compiled_training_takes_the_steps_of_eager_training(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "compiled"))
    eager = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, CLASSES))
    compiled = copy.deepcopy(eager)
    learn(eager, epochs=2, batch_size=8)
    learn(compiled, Execution(compile="default"), epochs=2, batch_size=8)
    torch.testing.assert_close(compiled.state_dict(), eager.state_dict(), rtol=1e-4, atol=1e-4)
    assert [
        path for path in (tmp_path / "compiled").rglob("*") if path.is_file()
    ]  # else nothing was compiled


# -- samples of other kinds --


@dataclass(frozen=True)
class EveryOtherRow:
    """A transform that a test can undo: rows in between are lost."""

    rows: int = 2

    def __call__(self, samples):
        kept = torch.zeros_like(samples)
        kept[..., :: self.rows, :] = samples[..., :: self.rows, :]
        return kept


def test_float32_samples_are_not_rescaled_and_others_are_refused():
    stored = torch.tensor([-3.0, 500.0]).view(2, 1, 1, 1)
    assert unit_range(stored) is stored
    with pytest.raises(ValueError, match=r"^samples are uint8 or float32, not torch.float64$"):
        unit_range(stored.double())


def test_volumes_are_normalised_channel_by_channel_whatever_their_sides():
    volumes = torch.tensor([4.0, -2.0]).view(1, 2, 1, 1, 1).expand(3, 2, 4, 5, 6)
    out = Normalisation((2.0, 0.0), (4.0, 0.5))(volumes)
    assert out.shape == volumes.shape
    assert out.is_contiguous(memory_format=torch.channels_last_3d)
    assert torch.equal(out[:, 0], torch.full((3, 4, 5, 6), 0.5))
    assert torch.equal(out[:, 1], torch.full((3, 4, 5, 6), -4.0))


def test_a_transform_comes_before_the_mean_is_taken_off_in_training_and_prediction():
    stored = torch.full((2, 1, 2, 1), 255, dtype=torch.uint8)
    normalise = Normalisation((1.0,), (0.5,), EveryOtherRow())
    seen = [[0.0, -2.0]] * 2  # a row as it is, and one that is lost
    assert predict(nn.Flatten(), stored, normalise=normalise).tolist() == seen
    labels = torch.zeros(2, dtype=torch.int64)
    assert training_pairs(stored, labels, normalise)[0].flatten(1).tolist() == seen
    assert repr(normalise) != repr(Normalisation((1.0,), (0.5,), EveryOtherRow(3)))


def test_what_has_no_pixels_or_is_a_volume_is_not_augmented():
    flips = Augmentation(horizontal_flip=True)
    shifted = Augmentation(channel_shift=0.1)
    images, volumes = torch.randn(2, 1, 4, 6), torch.zeros(2, 1, 2, 4, 4, dtype=torch.uint8)
    labels = torch.zeros(2, dtype=torch.int64)
    found, _ = training_pairs(images, labels, PLAIN, flips, generator())
    for image, own in zip(found, images, strict=True):
        assert any(torch.allclose(image, view, atol=1e-5) for view in (own, own.flip(2)))
    with pytest.raises(ValueError, match="float32 samples have none"):
        training_pairs(images, labels, PLAIN, shifted, generator())
    with pytest.raises(ValueError, match=r"only images are augmented, not volumes; leave"):
        training_pairs(volumes, labels, PLAIN, flips, generator())


@pytest.mark.parametrize(
    "how",
    [
        Augmentation(horizontal_flip=True),
        Augmentation(vertical_flip=True, quarter_turns=True),
        Augmentation(horizontal_flip=True, crop=2, cutout=2),
        Augmentation(rotation=20, scale=0.2, horizontal_flip=True),
    ],
)
def test_targets_of_pixels_move_with_their_images(how):
    numbers = torch.arange(1, 65).view(1, 1, 8, 8).repeat(16, 1, 1, 1)
    images, labels = numbers.to(torch.uint8), numbers[:, 0] * (2**18)
    inputs, moved = training_pairs(images, labels, PLAIN, how, generator())
    assert moved.dtype == torch.int64
    kept = inputs[:, 0] * 255
    exact = not how.rotation
    if exact:
        same = (kept.round() * 2**18 == moved) | (kept == 0)  # a hole, or a crop's border
    else:
        same = (kept - moved / 2**18).abs() < 6  # bilinear beside the nearest, rows differ by 8
    assert same.float().mean() == (1 if exact else pytest.approx(1, abs=0.1))
    assert not torch.equal(moved, labels)
    values = torch.cat([numbers, -numbers], dim=1).float()
    _, both = training_pairs(images, values, PLAIN, how, generator())
    assert both.shape == values.shape
    assert torch.allclose(both[:, 0], -both[:, 1])


def test_a_quarter_turn_is_of_square_images():
    images, labels = torch.zeros(2, 1, 4, 6), torch.zeros(2, dtype=torch.int64)
    with pytest.raises(ValueError, match="square images"):
        training_pairs(images, labels, PLAIN, Augmentation(quarter_turns=True), generator())


def test_a_network_of_volumes_learns_from_float32_samples():
    torch.manual_seed(0)
    labels = torch.tensor([0, 1] * 8)
    volumes = torch.randn(16, 1, 3, 4, 5) + 40 * labels.view(-1, 1, 1, 1, 1)
    model = channels_last(
        nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(240, 2))
    )
    normalise = Normalisation((20.0,), (20.0,))
    plan = TrainingPlan(epochs=5, batch_size=4, lr=0.01)
    loss = functools.partial(F.cross_entropy, reduction="none")
    train(model, volumes, labels, loss, plan, normalise=normalise, generator=generator())
    assert predict(model, volumes, normalise=normalise).argmax(dim=1).tolist() == labels.tolist()


def test_large_samples_are_predicted_fewer_at_a_time():
    small, large = (torch.empty(1, 1, side, 128, 128, dtype=torch.uint8) for side in (1, 12))
    assert [prediction_batch(samples) for samples in (small, large)] == [250, 62]
    assert prediction_batch(torch.empty(1, 1).expand(1, 10**9)) == 1
