"""Where a network is cut in two: the encoder, from images to a map of features, and the decoder,
from the map to outputs.

A network that can be cut offers timm's two methods, `forward_features` and `forward_head`. A U-Net
cannot: its decoder needs the maps of every level; there is its lowest map (`Latent`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.hooks import RemovableHandle

from fedtables.models.entry import ModelError

SIDE = 32
"""Pixels of a side of the image that shows what an encoder calls."""


Half = Callable[[torch.Tensor], torch.Tensor]
"""An encoder or a decoder."""


def halves(model: nn.Module) -> tuple[Half, Half]:
    """A network's encoder and decoder. Raises ModelError for one that is not cut in two."""
    if not hasattr(model, "forward_features"):
        raise ModelError(
            f"a {type(model).__name__} is not cut into encoder and decoder, as this method needs;"
            " use a network that makes scores, which gets maps by +dense"
        )
    return model.forward_features, model.forward_head  # type: ignore[return-value]


class Halved(nn.Module):
    """A network that is its decoder, `head`, after its encoder, `features`, if not overridden."""

    features: nn.Module
    head: nn.Module

    def forward_features(self, images: torch.Tensor) -> torch.Tensor:
        """Images (n, c, h, w) to a map (n, c, h, w)."""
        maps: torch.Tensor = self.features(images)
        return maps

    def forward_head(self, features: torch.Tensor) -> torch.Tensor:
        """The map to outputs (n, ...)."""
        outputs: torch.Tensor = self.head(features)
        return outputs

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.forward_head(self.forward_features(images))


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """`model` in evaluation mode, in which no buffer moves; afterwards as it was."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def encode(model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """The map (n, c, h, w) that the encoder makes of `images`."""
    return halves(model)[0](images)


def decode(model: nn.Module, features: torch.Tensor) -> torch.Tensor:
    """The outputs that the decoder makes of a map of features (n, c, h, w)."""
    return halves(model)[1](features)


def _encoder_modules(model: nn.Module) -> set[str]:
    """Names of the modules that `model.forward_features` calls."""
    halves(model)  # first of all: a network that is not cut says so
    called: set[str] = set()
    hooks = [
        module.register_forward_pre_hook(lambda module, inputs, name=name: called.add(name))
        for name, module in model.named_modules()
    ]
    stem = next(p for p in model.parameters() if p.ndim == 4)
    try:
        with torch.no_grad(), evaluating(model):
            encode(model, stem.new_zeros(1, stem.shape[1], SIDE, SIDE))
    finally:
        for hook in hooks:
            hook.remove()
    return called


def decoder_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters, by name, of the modules that the encoder does not call."""
    encoder = _encoder_modules(model)
    return {
        name: parameter
        for name, parameter in model.named_parameters()
        if name.rpartition(".")[0] not in encoder
    }


class FixedEncoder(nn.Module):
    """`model`, of which only the decoder trains: FedSA's task adaptation (end of section 3.2). The
    encoder computes without gradients and in evaluation mode; `parameters()` are the decoder's.
    `model` itself is trained, not a copy.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        self._encoder = _encoder_modules(model)
        self.train(model.training)

    def train(self, mode: bool = True) -> FixedEncoder:
        super().train(mode)
        for name in self._encoder:
            self.model.get_submodule(name).training = False
        return self

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, nn.Parameter]]:
        """The decoder's, by their names in `model` behind `model.`."""
        model_prefix = f"{prefix}.model." if prefix else "model."
        for name, parameter in super().named_parameters(prefix, recurse, remove_duplicate):
            if name.removeprefix(model_prefix).rpartition(".")[0] not in self._encoder:
                yield name, parameter

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            features = encode(self.model, images)
        return decode(self.model, features)


class Translator(nn.Module):
    """A student's map (n, from_channels, h, w) to (n, to_channels, h, w): three convolutions with 1
    x 1 kernels (FedSA, section 3.2). Channels between them, no bias, and BatchNorm and
    LeakyReLU(0.1) after each are the released code's.
    """

    def __init__(self, from_channels: int, to_channels: int):
        super().__init__()
        layers: list[nn.Module] = []
        channels = (from_channels, from_channels, to_channels, to_channels)
        for before, after in itertools.pairwise(channels):
            conv = nn.Conv2d(before, after, 1, bias=False)
            nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
            layers += [conv, nn.BatchNorm2d(after), nn.LeakyReLU(0.1)]
        self.layers = nn.Sequential(*layers)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        translated: torch.Tensor = self.layers(features)
        return translated


def pooled(features: torch.Tensor, side: tuple[int, int]) -> torch.Tensor:
    """A map (n, c, h, w) average-pooled to `side`, here the smaller of two maps': FedSA does not
    say.
    """
    height, width = features.shape[2:]
    if (height, width) == side:
        return features
    if height % side[0] == 0 and width % side[1] == 0:  # whose gradient CUDA repeats
        return F.avg_pool2d(features, (height // side[0], width // side[1]))
    return F.adaptive_avg_pool2d(features, side)


class Encoder(nn.Module):
    """The encoder of `model` as a network of its own: images to features (n, c, h, w)."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return encode(self.model, images)


def load_encoder(model: nn.Module, other: nn.Module) -> None:
    """Give `model` the encoder of `other`, weights and buffers; their decoders may differ. Raises
    ValueError if the encoders are of different networks.
    """

    def encoder_state(inside: nn.Module) -> dict[str, torch.Tensor]:
        decoder = decoder_parameters(inside)
        return {name: t for name, t in inside.state_dict().items() if name not in decoder}

    # Of a network with outputs for every pixel the encoder is the network inside.
    mine, others = (getattr(network, "encoder", network) for network in (model, other))
    state, other_state = encoder_state(mine), encoder_state(others)
    if {n: t.shape for n, t in state.items()} != {n: t.shape for n, t in other_state.items()}:
        raise ValueError(
            "the networks' encoders differ, so that one cannot take the weights of the other"
        )
    mine.load_state_dict(other_state, strict=False)


def bottom_of(model: nn.Module) -> nn.Module:
    """The module through which a U-Net's lowest map goes. Raises ModelError for another network."""
    if not isinstance(getattr(model, "bottom", None), nn.Module):
        raise ModelError(
            f"a {type(model).__name__} has no lowest map in the middle, as this method needs; use a"
            " U-Net such as unet-32-in"
        )
    return cast("nn.Module", model.bottom)


def when_passed(model: nn.Module, act: Callable[[torch.Tensor], None]) -> RemovableHandle:
    """Call `act` with the lowest map (n, c, h, w) in every forward pass."""
    return bottom_of(model).register_forward_pre_hook(lambda module, inputs: act(inputs[0]))


class Latent(nn.Module):
    """Images to `model`'s lowest map, pooled to `side` x `side`: (n, channels * side^2)."""

    def __init__(self, model: nn.Module, side: int):
        super().__init__()
        self.model = model
        self.side = side
        self.train(model.training)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps: list[torch.Tensor] = []
        handle = when_passed(self.model, maps.append)
        try:
            self.model(images)
        finally:
            handle.remove()
        return flat_pooled(maps[0], self.side)


def flat_pooled(maps: torch.Tensor, side: int) -> torch.Tensor:
    """Maps (n, c, h, w) averaged to `side` x `side` and flat, (n, c * side^2); what is left over at
    the right and at the bottom of sides that are no multiple does not count.
    """
    kernel = (maps.shape[2] // side, maps.shape[3] // side)  # adaptive pooling varies on CUDA
    return F.avg_pool2d(maps, kernel)[:, :, :side, :side].flatten(1)
