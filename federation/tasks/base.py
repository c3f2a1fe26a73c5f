"""Tasks: what a network's outputs mean, how they are trained, and how they are measured."""

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol, cast

import torch

from fedtables.metrics.running import RunningMetrics


class Task(Protocol):
    """What a federation needs to know of the problem it solves.

    A network's outputs are (n, outputs), or (n, outputs, *sides) of samples (n, c, *sides) if the
    task is dense; targets are of n samples, in the form that the task states.
    """

    @property
    def outputs(self) -> int:
        """Size of a network's last layer: its units, or its channels if the task is dense."""

    @property
    def dense(self) -> bool:
        """Whether there is an output for each pixel rather than for each image."""

    @property
    def classes(self) -> int | None:
        """Classes that outputs are scores of; None if they are values."""

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of what `metrics` measures without groups; the first is the headline."""

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Supervised loss per sample, (n,); of a dense task the mean over its pixels."""

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        """Outputs as probabilities, same shape; as predictions where a task has none."""

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Loss per sample, (n,), against what `probabilities` makes of a teacher's outputs."""

    def metrics(self) -> RunningMetrics:
        """What outputs are measured by, without any yet; `metric_names`, and with groups more."""


class ConditionedTask(Task, Protocol):
    """A dense task, of whose targets a generator is told enough to make images."""

    @property
    def condition_channels(self) -> int:
        """Channels of `condition`."""

    def label_maps(self, targets: torch.Tensor) -> torch.Tensor:
        """What a client sends of its targets for a generator, whole numbers (n, *sides)."""

    def condition(self, maps: torch.Tensor) -> torch.Tensor:
        """For a generator: float32 (n, condition_channels, *sides) in [-1, 1] of `label_maps`."""

    def pictured(self, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Which of a sample's images and targets a generator imitates, (n, c, *sides)."""

    def pixel_counts(self, maps: torch.Tensor) -> torch.Tensor:
        """How many pixels of all label maps each class has, int64 (classes,)."""


class LabelMaps(ABC):
    """What a generator is told and imitates where targets are classes or regions of pixels."""

    dense: ClassVar[bool] = True

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many classes or regions there are."""

    @abstractmethod
    def layers(self, maps: torch.Tensor) -> torch.Tensor:
        """Layers (n, outputs, *sides) of label maps: 1 where a class or region is, else 0."""

    @property
    def condition_channels(self) -> int:
        return self.outputs

    def condition(self, maps: torch.Tensor) -> torch.Tensor:
        """What a generator is told of an image: its layers, from -1 to 1."""
        return 2 * self.layers(maps).float() - 1

    def pixel_counts(self, maps: torch.Tensor) -> torch.Tensor:
        """How many pixels of all label maps are of each class or region, (outputs,)."""
        return self.layers(maps).flatten(2).sum(dim=(0, 2)).long()

    def label_maps(self, targets: torch.Tensor) -> torch.Tensor:
        """The targets themselves."""
        return targets

    def pictured(self, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The images."""
        return images


def conditioned(task: Task) -> ConditionedTask:
    """`task` as one with condition maps. Raises ValueError for a task that has none."""
    if not hasattr(task, "condition"):
        raise ValueError(
            "this method makes images of label maps, so it needs a task with a class for every"
            f" pixel or another target that tells of the image, not {task}"
        )
    return cast(ConditionedTask, task)


def check_single_label(task: Task) -> None:
    """Raise ValueError for a task whose samples do not have one class each."""
    if task.dense or task.classes is None:
        raise ValueError(
            f"this method needs one class per image, and {task} has none; use classification"
        )


def mean_over_pixels(values: torch.Tensor) -> torch.Tensor:
    """The mean of each sample, (n,), of values (n, ...)."""
    return values.mean(dim=tuple(range(1, values.ndim)))
