"""The meter: work counted by hand, and none of it done."""

import pytest
import torch
from torch import nn

from federation.costs import Meter, active_meter, metering
from federation.training import Normalisation, TrainingPlan, predict, train

PLAIN = Normalisation((0.0,) * 3, (1.0,) * 3)


def linear():
    """12 inputs, 5 outputs: 2 x 12 x 5 = 120 FLOPs for a sample."""
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 5)).to("meta")


def images(count, side=2, channels=3):
    return torch.empty(count, channels, side, side, dtype=torch.uint8, device="meta")


def test_predicting_with_a_linear_layer_costs_two_operations_per_weight_and_sample():
    meter = Meter()
    outputs = meter.book_prediction(linear(), images(7))
    assert (meter.flops, meter.predicted_samples, meter.training_samples) == (7 * 120, 7, 0)
    assert (outputs.shape, outputs.is_meta) == ((7, 5), True)


def test_training_costs_three_forward_passes_per_sample_and_epoch():
    meter = Meter()
    meter.book_training(linear(), images(10), epochs=4, batch_size=5)
    assert (meter.flops, meter.training_samples, meter.predicted_samples) == (3 * 120 * 10 * 4, 40, 0)


def test_a_convolution_costs_two_operations_per_weight_and_output_pixel():
    meter = Meter()
    meter.book_prediction(nn.Conv2d(3, 8, 3, padding=1, bias=False).to("meta"), images(1, side=6))
    assert meter.flops == 2 * (3 * 3 * 3) * 8 * 36


def test_work_adds_up_over_models_and_sizes_of_images():
    meter = Meter()
    model = nn.Conv2d(3, 1, 1, bias=False).to("meta")
    meter.book_prediction(model, images(2, side=4))
    meter.book_prediction(model, images(3, side=8))
    meter.book_prediction(linear(), images(1))
    assert meter.flops == 2 * 3 * 16 * 2 + 2 * 3 * 64 * 3 + 120


def test_models_that_differ_only_in_stride_have_costs_of_their_own():
    meter = Meter()
    for stride in (1, 2):
        model = nn.Sequential(nn.Conv2d(3, 1, 2, stride=stride, padding=0, bias=False)).to("meta")
        meter.book_prediction(model, images(1, side=4))
    assert meter.flops == 2 * 12 * 9 + 2 * 12 * 4


def test_peak_memory_is_four_times_the_weights_and_the_activations_of_a_batch():
    meter = Meter()
    meter.book_training(linear(), images(10), epochs=1, batch_size=4)
    weights, activations = 4 * (12 * 5 + 5), 4 * (12 + 5)
    assert meter.peak_bytes == 4 * weights + 4 * activations + 10 * 12


def test_peak_memory_is_that_of_the_largest_training():
    meter = Meter()
    meter.book_training(linear(), images(100), epochs=1, batch_size=50)
    peak = meter.peak_bytes
    meter.book_training(linear(), images(10), epochs=1, batch_size=5)
    assert meter.peak_bytes == peak > 0


def test_metering_leaves_a_model_as_it_was():
    model = nn.Sequential(nn.Conv2d(3, 2, 1), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 5)).to("meta")
    Meter().book_training(model, images(4), epochs=1, batch_size=2)
    assert all(module.training for module in model.modules())


def test_a_meter_is_active_only_inside_and_nests():
    outer, inner = Meter(), Meter()
    assert active_meter() is None
    with metering(outer) as given:
        assert given is active_meter() is outer
        with metering(inner):
            assert active_meter() is inner
        assert active_meter() is outer
    assert active_meter() is None


def test_a_meter_is_put_away_after_an_error():
    with pytest.raises(KeyError), metering(Meter()):
        raise KeyError
    assert active_meter() is None


def test_the_loops_of_learning_book_on_the_active_meter_what_they_would_do():
    model = linear()
    with metering(Meter()) as meter:
        train(
            model, images(10), torch.empty(10, device="meta"), lambda o, t: o, TrainingPlan(2, 5), normalise=PLAIN, generator=None
        )
        predict(model, images(7), normalise=PLAIN)
    assert (meter.flops, meter.training_samples, meter.predicted_samples) == (3 * 120 * 20 + 7 * 120, 20, 7)
