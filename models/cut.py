"""Where a network is cut in two: the encoder, from images to a map of features, and the decoder,
from the map to outputs.

A network that can be cut offers timm's two methods: `forward_features(images)`, (n, c, h, w), is
the encoder, and `forward_head(features)` the decoder. FedSA compares, distils and averages
encoders, and adapts decoders. A U-Net cannot: its decoder needs the maps of every level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import nn

from models.entry import ModelError

SIDE = 32
"""Pixels of a side of the image that is sent through an encoder to see what it passes; the layers
are those of any image."""


def _encoder_modules(model: nn.Module) -> set[str]:
    """Names of the modules that `model.forward_features` calls."""
    halves(model)  # first of all: a network that is not cut says so
    called: set[str] = set()
    hooks = [
        module.register_forward_pre_hook(lambda module, inputs, name=name: called.add(name))
        for name, module in model.named_modules()
    ]
    training = [module for module in model.modules() if module.training]
    stem = next(p for p in model.parameters() if p.ndim == 4)
    try:
        with torch.no_grad():
            encode(
                model.eval(), stem.new_zeros(1, stem.shape[1], SIDE, SIDE)
            )  # in evaluation mode no buffer moves
    finally:
        for hook in hooks:
            hook.remove()
        for module in training:
            module.training = True
    return called


Half = Callable[[torch.Tensor], torch.Tensor]
"""An encoder or a decoder."""


def halves(model: nn.Module) -> tuple[Half, Half]:
    """The encoder and the decoder of a network. Raises ModelError for one that is not cut in
    two.
    """
    if not hasattr(model, "forward_features"):
        raise ModelError(
            f"a {type(model).__name__} is not cut into encoder and decoder, as this method needs;"
            " use a network that makes scores, which gets maps by +dense"
        )
    return model.forward_features, model.forward_head  # type: ignore[return-value]


def encode(model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """The map (n, c, h, w) that the encoder makes of `images`."""
    return halves(model)[0](images)


def decode(model: nn.Module, features: torch.Tensor) -> torch.Tensor:
    """The outputs that the decoder makes of a map of features (n, c, h, w)."""
    return halves(model)[1](features)


def decoder_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters, by name, of the modules that the encoder does not call: those that FedSA's
    adaptation trains.
    """
    encoder = _encoder_modules(model)
    return {
        name: parameter
        for name, parameter in model.named_parameters()
        if name.rpartition(".")[0] not in encoder
    }


class FixedEncoder(nn.Module):
    """`model`, of which only the decoder trains: FedSA's task adaptation (end of section 3.2).

    The encoder computes without gradients and stays in evaluation mode, so that neither its weights
    nor the statistics of its BatchNorms move; `parameters()` are the decoder's. `model` itself is
    trained, not a copy.
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
    """A student's map (n, from_channels, h, w) to one with a teacher's channels, (n, to_channels,
    h, w).

    Three convolutions with 1 x 1 kernels (FedSA, section 3.2); the channels between them, no bias,
    and BatchNorm and LeakyReLU(0.1) after each are the released code's. The maps' sides are made
    equal by `pooled`.
    """

    def __init__(self, from_channels: int, to_channels: int):
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in (
            (from_channels, from_channels),
            (from_channels, to_channels),
            (to_channels, to_channels),
        ):
            conv = nn.Conv2d(before, after, 1, bias=False)
            nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
            layers += [conv, nn.BatchNorm2d(after), nn.LeakyReLU(0.1)]
        self.layers = nn.Sequential(*layers)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        translated: torch.Tensor = self.layers(features)
        return translated


def pooled(features: torch.Tensor, side: tuple[int, int]) -> torch.Tensor:
    """A map (n, c, h, w) average-pooled to `side`; one that has it already is returned as it is.

    FedSA does not say how maps of different sides are compared; here at the smaller of the two.
    """
    height, width = features.shape[2:]
    if (height, width) == side:
        return features
    if (
        height % side[0] == 0 and width % side[1] == 0
    ):  # unlike the general form its gradient is the same in every run on CUDA
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
    """Give `model` the encoder of `other`, weights and buffers; their decoders may differ, as for
    classes and for pixels.

    Raises ValueError if the encoders are of different networks.
    """
    state, other_state = _encoder_state(model), _encoder_state(other)
    if {name: tensor.shape for name, tensor in state.items()} != {
        name: tensor.shape for name, tensor in other_state.items()
    }:
        raise ValueError(
            "the networks' encoders differ, so that one cannot take the weights of the other"
        )
    _encoder(model).load_state_dict(other_state, strict=False)


def _encoder(model: nn.Module) -> nn.Module:
    """What holds the encoder's weights: of a network with outputs for every pixel the network
    inside.
    """
    inside: nn.Module = getattr(model, "encoder", model)
    return inside


def _encoder_state(model: nn.Module) -> dict[str, torch.Tensor]:
    decoder = decoder_parameters(_encoder(model))
    return {
        name: tensor for name, tensor in _encoder(model).state_dict().items() if name not in decoder
    }
