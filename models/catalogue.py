"""Networks by name: `build("resnet8-narrow", in_channels=3, num_classes=10, image_size=32)`.

Behind any name, `+dense` asks for its encoder with a decoder that has outputs for every pixel:
`resnet8-narrow+dense`.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType

import torch
from torch import nn

import models.networks
from models.cut import encode
from models.dense import Dense
from results.names import near
from results.sourcecode import source_digest

Builder = Callable[[int, int, int], nn.Module]
"""Takes in_channels, num_classes and image_size (pixels of a side)."""

DENSE = "+dense"
"""Suffix of a network with outputs for every pixel."""


@functools.cache
def networks() -> dict[str, tuple[Builder, ModuleType]]:
    """Every network in `models/networks/`, by name, with its module. Raises ValueError on a
    duplicate name.
    """
    found: dict[str, tuple[Builder, ModuleType]] = {}
    for info in pkgutil.iter_modules(models.networks.__path__):
        module = importlib.import_module(f"models.networks.{info.name}")
        for name, builder in module.NETWORKS.items():
            if name in found:
                raise ValueError(f"two networks are called {name!r}; rename one")
            found[name] = (builder, module)
    return found


def _entry(name: str) -> tuple[Builder, ModuleType]:
    base = name.removesuffix(DENSE)
    if base not in networks():
        raise ValueError(f"unknown network {name!r}; {near(base, networks())}")
    return networks()[base]


def build(name: str, in_channels: int, num_classes: int, image_size: int) -> nn.Module:
    """A new network with the framework's random initialisation. Raises ValueError with near names
    if unknown.

    `num_classes` are the outputs, per pixel if the name ends in `+dense`.
    """
    builder, _ = _entry(name)
    if name.endswith(DENSE):
        return Dense(builder(in_channels, 1, image_size), in_channels, num_classes, image_size)
    return builder(in_channels, num_classes, image_size)


@functools.cache
def feature_shape(name: str, in_channels: int, image_size: int) -> tuple[int, int, int]:
    """The shape (c, h, w) of the map that a network's `forward_features` makes of an image; no
    weights are drawn for it.
    """
    with torch.device("meta"):
        images = torch.empty(1, in_channels, image_size, image_size)
        features = encode(build(name, in_channels, 1, image_size).eval(), images)
    _, channels, height, width = features.shape
    return channels, height, width


def network_digest(name: str) -> str:
    """Digest of the source that defines the network: part of the key of everything computed with
    it.
    """
    return source_digest(
        _entry(name)[1].__name__, *(["models.dense"] if name.endswith(DENSE) else [])
    )


def find_head(model: nn.Module) -> tuple[str, nn.Linear]:
    """Name and module of a network's head: its last Linear. Raises ValueError if it has none, as a
    network with `+dense`.
    """
    for name, module in reversed(list(model.named_modules())):
        if isinstance(module, nn.Linear):
            return name, module
    raise ValueError(
        "the network has no linear layer; one with outputs for every pixel ends in a convolution"
    )


def replace_head(model: nn.Module, num_outputs: int) -> nn.Module:
    """Put a new last layer with `num_outputs` outputs on `model`, in place; returns it.

    Its weights are drawn from the CPU's generator, as those of whole networks, wherever `model` is.
    """
    if isinstance(model, Dense):
        device = model.head.weight.device
        drawn = nn.Conv2d(
            model.head.in_channels,
            num_outputs,
            1,
            device="meta" if device.type == "meta" else "cpu",
        )
        model.head = drawn.to(device)
        return model
    name, head = find_head(model)
    parent, _, attribute = name.rpartition(".")
    device = head.weight.device
    fresh = nn.Linear(
        head.in_features, num_outputs, device="meta" if device.type == "meta" else "cpu"
    ).to(device)
    setattr(model.get_submodule(parent), attribute, fresh)
    return model
