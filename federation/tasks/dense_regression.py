"""Values per pixel or voxel."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from federation.tasks.base import mean_over_pixels
from metrics.running import AbsoluteError, RunningMetrics


@dataclass(frozen=True)
class DenseRegression:
    """`channels` real values per pixel or voxel; targets float32 (n, channels, *sides) of
    `targets_of`.
    """

    channels: int

    @property
    def outputs(self) -> int:
        return self.channels

    @property
    def dense(self) -> bool:
        return True

    @property
    def classes(self) -> None:
        return None

    @property
    def metric_names(self) -> tuple[str, ...]:
        return ("mean-absolute-error",)

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean absolute error of each image, (n,)."""
        return mean_over_pixels((outputs - targets).abs())

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        """The outputs as they are: values have no probabilities."""
        return outputs

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean absolute difference from a teacher's outputs, (n,)."""
        return self.loss(outputs, targets)

    def metrics(self) -> RunningMetrics:
        return AbsoluteError()
