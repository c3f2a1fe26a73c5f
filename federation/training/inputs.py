"""From stored samples to what a network takes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import nn

from fedtables.federation.augmentation import Augmentation, augment_pairs, filled

M = TypeVar("M", bound=nn.Module)

CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
"""The memory format of images (n, c, h, w) and of volumes (n, c, d, h, w)."""


def channels_last(module: M) -> M:
    """`module` with its weights in the memory format that `Normalisation` gives its inputs."""
    of_volumes = any(parameter.ndim == 5 for parameter in module.parameters())
    return module.to(memory_format=CHANNELS_LAST[5 if of_volumes else 4])


@dataclass(frozen=True)
class Normalisation:
    """From samples as `unit_range` gives them, (n, c, *sides), to network inputs: (x - mean) / std
    per channel.

    Raises ValueError for samples as they are stored, in uint8.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __call__(self, samples: torch.Tensor) -> torch.Tensor:
        if not samples.is_floating_point():
            raise ValueError(
                f"normalise takes samples in [0, 1], not {samples.dtype}; give it"
                " unit_range(samples) of fedtables.federation.training.inputs"
            )
        one_each = (-1, *[1] * (samples.ndim - 2))
        mean, std = (filled(values, samples).view(one_each) for values in (self.mean, self.std))
        # Convolutions on CPUs and tensor cores are faster with channels last; results differ by
        # rounding.
        return ((samples - mean) / std).contiguous(memory_format=CHANNELS_LAST[samples.ndim])


def unit_range(samples: torch.Tensor) -> torch.Tensor:
    """Stored samples as float32: uint8 ones in [0, 1], float32 ones as they are.

    Raises ValueError for samples of another dtype.
    """
    if samples.dtype == torch.uint8:
        return samples.to(torch.float32).div_(255)
    if samples.dtype != torch.float32:
        raise ValueError(f"samples are uint8 or float32, not {samples.dtype}")
    return samples


def augmented(
    samples: torch.Tensor,
    how: Augmentation | None,
    generator: torch.Generator | None,
    mean: tuple[float, ...],
) -> torch.Tensor:
    """Stored samples (n, c, *sides) as `unit_range` gives them, augmented by `how`."""
    return augmented_pairs(samples, None, how, generator, mean)[0]


def augmented_pairs(
    samples: torch.Tensor,
    maps: torch.Tensor | None,
    how: Augmentation | None,
    generator: torch.Generator | None,
    mean: tuple[float, ...],
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The same with maps of the samples' pixels.

    Raises ValueError for samples that the augmentation is not made for.
    """
    if how is not None and how.channel_shift and samples.dtype != torch.uint8:
        raise ValueError(
            "a channel shift is a share of the pixel range, and float32 samples have none; set"
            " augmentation.channel_shift to 0"
        )
    return augment_pairs(unit_range(samples), maps, how, generator, mean)


@dataclass(frozen=True)
class Inputs:
    """How a network in training gets its samples."""

    normalise: Normalisation
    augmentation: Augmentation | None = None
    generator: torch.Generator | None = None
    """Of their order and their augmentation; None while planning."""

    def pairs(
        self, samples: torch.Tensor, targets: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Stored samples (n, c, *sides), augmented if that is asked for, then normalised; and their
        targets, those of pixels (n, *sides) or (n, k, *sides) moved along.

        Raises ValueError for samples that the augmentation is not made for.
        """
        sides = samples.shape[2:]
        of_pixels = targets.ndim > len(sides) and targets.shape[-len(sides) :] == sides
        changed, moved = augmented_pairs(
            samples,
            targets if of_pixels else None,
            self.augmentation,
            self.generator,
            self.normalise.mean,
        )
        return self.normalise(changed), targets if moved is None else moved


def batches(
    samples: int, batch_size: int, generator: torch.Generator, device: torch.device | None = None
) -> Iterator[torch.Tensor]:
    """Shuffled batches of indices, on the generator's device or where they are wanted; a last
    single sample is left out (BatchNorm cannot take it).
    """
    order = torch.randperm(samples, generator=generator, device=generator.device)
    order = order.to(device or order.device)
    yield from order.split(batch_size)[: batch_count(samples, batch_size)]


def batch_count(samples: int, batch_size: int) -> int:
    """How many `batches` an epoch has."""
    whole, left = divmod(samples, batch_size)
    return whole + (left > 1 or (left == 1 and samples == 1))
