"""Reconstruction: its loss by hand, and what it is measured by."""

import pytest
import torch

from federation.tasks.reconstruction import Reconstruction
from metrics.running import measured


def test_the_loss_is_the_mean_absolute_error_of_each_image():
    outputs = torch.tensor([[[[0.0, 1.0], [0.5, 0.5]]], [[[1.0, 1.0], [1.0, 1.0]]]])
    targets = torch.tensor([[[[0.0, 0.0], [0.5, 1.0]]], [[[1.0, 1.0], [1.0, 1.0]]]])
    assert Reconstruction().loss(outputs, targets).tolist() == pytest.approx([0.375, 0.0])
    assert Reconstruction().distillation_loss(outputs, targets).tolist() == pytest.approx(
        [0.375, 0]
    )


def test_it_is_measured_by_ssim_first():
    images = torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    found = measured(Reconstruction().metrics(), images + 0.1, images)
    assert tuple(found) == Reconstruction().metric_names == ("ssim", "psnr")
