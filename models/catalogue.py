"""Networks by name: `build("resnet8-narrow", in_channels=3, outputs=10, image_size=32)`.

A network declares what it makes: scores, maps or images. Behind the name of one that makes scores,
`+dense` asks for its encoder with a decoder that makes maps: `resnet8-narrow+dense`; and
`+projection` for a projection head before its last layer.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import torch
from torch import nn

from fedtables.models import networks as network_package
from fedtables.models.cut import encode
from fedtables.models.dense import Dense
from fedtables.models.entry import Builder, ModelError, NetworkEntry, Sides
from fedtables.models.projection import projected
from fedtables.results.files import digest
from fedtables.results.names import near
from fedtables.results.plugins import kept, listed, plugged_in
from fedtables.results.sourcecode import code_digest, source_digest

DENSE = "+dense"
"""Suffix of a network that makes maps with the encoder of one that makes scores."""
PROJECTION = "+projection"
"""Suffix of a network that makes scores, with a projection head before its last layer."""
SUFFIXES = {DENSE: "fedtables.models.dense", PROJECTION: "fedtables.models.projection"}
"""With the module that defines what is added."""

INPUTS = {2: "images", 3: "volumes"}
"""What has as many sides."""


class OwnNetwork(str):
    """A network that a script brings, where the suite takes a network's name: that of its builder.
    Two are the same if their builders are.
    """

    build: Builder
    number: int

    def __new__(cls, build: Builder) -> Self:
        own = super().__new__(cls, getattr(build, "__name__", type(build).__name__))
        own.build, own.number = build, next(_COUNT)
        return own

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnNetwork) and self.build is other.build

    __hash__ = str.__hash__


_COUNT = itertools.count()


@kept(None)
def networks() -> dict[str, NetworkEntry]:
    """Every network in `models/networks/` and in the plug-ins in use, by name. Raises RefusedError
    as `listed`.
    """
    found = listed(network_package, "NETWORKS", NetworkEntry, lambda networks: networks.items())
    return {name: declared for name, (declared, _) in found.items()}


def entry(name: str) -> NetworkEntry:
    """A network's builder and what it declares, of a name with a suffix too.

    Raises ModelError with near names if unknown, and for a suffix behind what makes no scores.
    """
    if isinstance(name, OwnNetwork):
        return NetworkEntry(name.build, smallest=1)
    base, suffix = _parts(name)
    if base not in networks():
        raise ModelError(f"unknown network {name!r}; {near(base, networks())}")
    declared = networks()[base]
    if not suffix:
        return declared
    if declared.makes != "scores":
        raise ModelError(f"{base} makes {declared.makes} by itself; leave {suffix} off")
    if suffix == PROJECTION:
        return replace(declared, build=_with_projection(declared.build))

    def dense(in_channels: int, outputs: int, sides: Sides) -> nn.Module:
        return Dense(declared.build(in_channels, 1, sides), in_channels, outputs, sides)

    return replace(declared, build=dense, makes="maps")


def _parts(name: str) -> tuple[str, str]:
    """A network's name without its suffix, and the suffix, which may be empty."""
    suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")
    return name.removesuffix(suffix), suffix


def _with_projection(build: Builder) -> Builder:
    def built(in_channels: int, outputs: int, sides: Sides) -> nn.Module:
        model = build(in_channels, outputs, sides)
        name, head = find_head(model)
        return _put(model, name, projected(head))

    return built


def network_for(name: str, *, dense: bool, dims: int = 2) -> str:
    """The network that learns a task: `name`, or its form with `+dense` if a dense task asks for
    maps and it makes scores. `dims` are the sides of an input. Raises ModelError for a network that
    makes or takes something else.
    """
    declared = entry(name)
    needed = "maps" if dense else "scores"
    base, _ = _parts(name)
    makes = {needed, "scores"}
    fitting = sorted(n for n, of in networks().items() if of.dims == dims and of.makes in makes)
    alike = [other for other in fitting if other.startswith(base)]
    instead = f"use {', '.join(alike or fitting)}"
    if declared.dims != dims:
        raise ModelError(
            f"{name} takes {INPUTS[declared.dims]}, and the data are {INPUTS[dims]}; {instead}"
        )
    if dense and declared.makes == "scores":
        return name + DENSE
    if declared.makes != needed:
        raise ModelError(f"{name} makes {declared.makes}, and the task needs {needed}; {instead}")
    return name


def _sides(name: str, declared: NetworkEntry, image_size: int | Sequence[int]) -> Sides:
    """The sides of an input that a network takes. Raises ModelError for others."""
    if isinstance(image_size, int):
        image_size = (image_size,) * declared.dims
    sides = tuple(map(int, image_size))
    shown = " x ".join(map(str, sides))
    if len(sides) != declared.dims:
        raise ModelError(
            f"{name} takes {INPUTS[declared.dims]} of {declared.dims} sides, not {shown}"
        )
    if min(sides) < declared.smallest or any(side % declared.multiple for side in sides):
        multiple = f" that are multiples of {declared.multiple}" if declared.multiple > 1 else ""
        raise ModelError(
            f"{name} takes sides from {declared.smallest} pixels{multiple}, not {shown}; resize or"
            " crop the data"
        )
    return sides


def build(name: str, in_channels: int, outputs: int, image_size: int | Sequence[int]) -> nn.Module:
    """A new network with the framework's random initialisation. `outputs` are scores, or channels
    of maps or images; `image_size` is one number of pixels, or (h, w), or (d, h, w). Its `built_as`
    says name, channels, outputs and sides. Raises ModelError if the network is unknown, or none.
    """
    declared = entry(name)
    sides = _sides(name, declared, image_size)
    model = declared.build(in_channels, outputs, sides)
    if not isinstance(model, nn.Module):
        raise ModelError(f"{name} makes {type(model).__name__}, and no module")
    model.built_as = name, in_channels, outputs, sides  # type: ignore[assignment]
    return model


def check_outputs(model: nn.Module) -> None:
    """Raise ModelError if a plug-in's network, built on the device `meta`, makes something else
    than it declares. One that does not run there is let pass.
    """
    name, channels, outputs, sides = model.built_as  # type: ignore[misc]
    if not _plugin_of(_parts(name)[0]):
        return
    makes = entry(name).makes
    wanted = (2, outputs, *(() if makes == "scores" else sides))
    try:
        made = tuple(model(torch.empty(2, channels, *sides, device="meta")).shape)
    except Exception:  # the cell tells, where tensors have values
        return
    if made != wanted:
        raise ModelError(f"{name} makes {made} of 2 inputs, where {makes} are {wanted}")


@kept(None)
def feature_shape(
    name: str, in_channels: int, image_size: int | tuple[int, ...]
) -> tuple[int, int, int]:
    """The shape (c, h, w) of the map that a network's `forward_features` makes of an image; no
    weights are drawn for it. Raises ModelError if it cannot be cut.
    """
    with torch.device("meta"):
        images = torch.empty(1, in_channels, *_sides(name, entry(name), image_size))
        features = encode(build(name, in_channels, 1, image_size).eval(), images)
    _, channels, height, width = features.shape
    return channels, height, width


def network_digest(name: str) -> str:
    """Digest of the source that defines the network; of one of a script's own, which may have no
    file, another for each.
    """
    if isinstance(name, OwnNetwork):
        return digest([name, name.number])
    base, suffix = _parts(name)
    # Of a plug-in all, wherever its builder lies.
    code = code_digest(_plugin_of(base) or entry(base).build.__module__)
    return digest([code, source_digest(SUFFIXES[suffix])]) if suffix else code


def _plugin_of(base: str) -> str:
    """The module of the plug-in that a network is of; empty for one of this package."""
    plugins = (plugin for plugin in plugged_in() if base in getattr(plugin, "NETWORKS", ()))
    return next((plugin.__name__ for plugin in plugins), "")


def find_head(model: nn.Module) -> tuple[str, nn.Linear]:
    """Name and module of a network's last Linear. Raises ModelError if it has none."""
    for name, module in reversed(list(model.named_modules())):
        if isinstance(module, nn.Linear):
            return name, module
    raise ModelError(
        "the network has no linear layer; one with outputs for every pixel ends in a convolution"
    )


def replace_head(model: nn.Module, num_outputs: int) -> nn.Module:
    """Put a new last layer with `num_outputs` outputs on `model`, in place; returns it. Its weights
    are drawn from the CPU's generator. Raises ModelError for a network with neither scores nor
    `+dense`.
    """
    if hasattr(model, "built_as"):
        name, channels, _, sides = model.built_as  # type: ignore[misc]
        model.built_as = name, channels, num_outputs, sides  # type: ignore[assignment]
    device = next(model.parameters()).device
    drawn_on = "meta" if device.type == "meta" else "cpu"
    if isinstance(model, Dense):
        channels = model.head.in_channels
        model.head = nn.Conv2d(channels, num_outputs, 1, device=drawn_on).to(device)
        return model
    name, head = find_head(model)
    return _put(model, name, nn.Linear(head.in_features, num_outputs, device=drawn_on).to(device))


def _put(model: nn.Module, name: str, module: nn.Module) -> nn.Module:
    """Put `module` into `model` as its part `name`; returns the model."""
    parent, _, attribute = name.rpartition(".")
    setattr(model.get_submodule(parent), attribute, module)
    return model


@contextlib.contextmanager
def noting_features(model: nn.Module) -> Iterator[Callable[[], torch.Tensor | None]]:
    """Inside, a function that returns what the model's last linear layer got in its latest pass,
    (n, d), with its graph; None for a network without one.
    """
    head: Any = next((m for m in reversed(list(model.modules())) if isinstance(m, nn.Linear)), None)
    if head is None:
        yield lambda: None
        return
    head.got = None
    hook = head.register_forward_pre_hook(_note)
    try:
        yield lambda: head.got
    finally:
        hook.remove()
        del head.got


def _note(head: Any, inputs: tuple[torch.Tensor, ...]) -> None:
    head.got = inputs[0]


def features(model: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """What a network's last linear layer gets for `inputs`, (n, d). Raises ModelError for a network
    without one.
    """
    with noting_features(model) as noted:
        model(inputs)
        found = noted()
    if found is None:
        find_head(model)  # which says why
    assert found is not None
    return found


class Headless(nn.Module):
    """A network without its last linear layer: images to `features`, float32 (n, d)."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return features(self.model, images).float()
