"""Networks by name: `build("resnet8-narrow", in_channels=3, num_classes=10, image_size=32)`."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType

from torch import nn

import models.networks
from results.names import near
from results.sourcecode import source_digest

Builder = Callable[[int, int, int], nn.Module]
"""Takes in_channels, num_classes and image_size (pixels of a side)."""


@functools.cache
def networks() -> dict[str, tuple[Builder, ModuleType]]:
    """Every network in `models/networks/`, by name, with its module. Raises ValueError on a duplicate name."""
    found: dict[str, tuple[Builder, ModuleType]] = {}
    for info in pkgutil.iter_modules(models.networks.__path__):
        module = importlib.import_module(f"models.networks.{info.name}")
        for name, builder in module.NETWORKS.items():
            if name in found:
                raise ValueError(f"two networks are called {name!r}; rename one")
            found[name] = (builder, module)
    return found


def _entry(name: str) -> tuple[Builder, ModuleType]:
    if name not in networks():
        raise ValueError(f"unknown network {name!r}; {near(name, networks())}")
    return networks()[name]


def build(name: str, in_channels: int, num_classes: int, image_size: int) -> nn.Module:
    """A new network with the framework's random initialisation. Raises ValueError with near names if unknown."""
    return _entry(name)[0](in_channels, num_classes, image_size)


def network_digest(name: str) -> str:
    """Digest of the source that defines the network: part of the key of everything computed with it."""
    return source_digest(_entry(name)[1].__name__)


def find_head(model: nn.Module) -> tuple[str, nn.Linear]:
    """Name and module of a network's head: its last Linear."""
    return next((n, m) for n, m in reversed(list(model.named_modules())) if isinstance(m, nn.Linear))


def replace_head(model: nn.Module, num_outputs: int) -> nn.Module:
    """Put a new linear head with `num_outputs` outputs on `model`, in place; returns it.

    Its weights are drawn from the CPU's generator, as those of whole networks, wherever `model` is.
    """
    name, head = find_head(model)
    parent, _, attribute = name.rpartition(".")
    device = head.weight.device
    fresh = nn.Linear(head.in_features, num_outputs, device="meta" if device.type == "meta" else "cpu").to(device)
    setattr(model.get_submodule(parent), attribute, fresh)
    return model
