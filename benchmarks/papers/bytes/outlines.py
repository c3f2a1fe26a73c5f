"""How many numbers the networks have whose bytes are counted from first principles: they are built
on the `meta` device, without weights.

torch is imported only when something is counted: `list` reads the papers' spec files, and has no
use for it.
"""

from __future__ import annotations

import functools


@functools.cache
def numbers(network: str, in_channels: int, outputs: int, *sides: int) -> int:
    """Floating-point numbers in the state of a network of the catalogue: parameters, and running
    statistics, which methods average with them. `sides` are those of its input, in pixels.
    """
    import torch

    from models.catalogue import build

    with torch.device("meta"):
        state = build(network, in_channels, outputs, sides).state_dict()
    return sum(tensor.numel() for tensor in state.values() if tensor.is_floating_point())


@functools.cache
def patches(size: int) -> int:
    """Scores that the patch discriminator of Isola et al. 2017 (70 x 70) gives an image of `size` x
    `size`.
    """
    import torch

    from models.generative import isola_discriminator

    with torch.device("meta"):
        *_, scores = isola_discriminator(1)(torch.empty(1, 1, size, size))
    return int(scores.numel())
