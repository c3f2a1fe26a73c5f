"""What a network declares: what it makes of an input, and which inputs it takes."""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

from torch import nn

Makes = Literal["scores", "maps", "images"]
"""`scores` are (n, outputs); `maps` are (n, outputs, *sides), any number at every pixel or voxel;
`images` have the same shape and values in [-1, 1]."""

Sides = tuple[int, ...]
"""Height and width of an image, or depth, height and width of a volume, in pixels."""

Builder = Callable[[int, int, Sides], nn.Module]
"""Takes in_channels, outputs and the sides of an input; draws the weights."""


class ModelError(ValueError):
    """A network that is not there or cannot do what is asked of it; the message says what can."""


@dataclass(frozen=True)
class NetworkEntry:
    """A network: its builder, a function or class of its file, and what it declares."""

    build: Builder
    makes: Makes = "scores"
    dims: Literal[2, 3] = 2
    """Images have two sides, volumes three."""
    smallest: int = 4
    """Pixels of the shortest side that it takes."""
    multiple: int = 1
    """Every side is a multiple of this number of pixels."""


@functools.cache
def monai_networks() -> ModuleType:
    """`monai.networks.nets`, which takes seconds to import: only what builds its networks pays."""
    with warnings.catch_warnings():  # importing it calls what torch has deprecated
        warnings.simplefilter("ignore", FutureWarning)
        import monai.networks.nets
    return monai.networks.nets
