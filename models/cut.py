"""Where a network is cut in two: the encoder, from images to a map of features, and the decoder, from the map to outputs.

Every network in `models/networks/` offers timm's two methods: `forward_features(images)`, (n, c, h, w), is the encoder, and
`forward_head(features)` the decoder. FedSA compares, distils and averages encoders, and adapts decoders.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

PROBE_SIDE = 32
"""Pixels of a side of the image that is followed through an encoder; which layers it passes depends on no image's size."""


def _follow(model: nn.Module) -> tuple[set[str], set[str]]:
    """Names of the modules that `forward_features` calls, and of the parameters that it uses."""
    model = copy.deepcopy(model).to("meta").eval().requires_grad_()  # shapes alone: nothing is computed, no buffer moves
    called: set[str] = set()
    for name, module in model.named_modules():
        module.register_forward_pre_hook(lambda module, inputs, name=name: called.add(name))
    names, parameters = zip(*model.named_parameters(), strict=True)
    stem = next(p for p in parameters if p.ndim == 4)
    features = model.forward_features(torch.empty(1, stem.shape[1], PROBE_SIDE, PROBE_SIDE, device="meta"))
    gradients = torch.autograd.grad(features.sum(), parameters, allow_unused=True)
    return called, {name for name, gradient in zip(names, gradients, strict=True) if gradient is not None}


def decoder_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters, by name, of which `model.forward_features` uses none: those that FedSA's adaptation trains."""
    _, encoder = _follow(model)
    return {name: parameter for name, parameter in model.named_parameters() if name not in encoder}


class FixedEncoder(nn.Module):
    """`model`, of which only the decoder trains: FedSA's task adaptation (end of section 3.2).

    The encoder computes without gradients and stays in evaluation mode, so that neither its weights nor the statistics of
    its BatchNorms move; `parameters()` are the decoder's. `model` itself is trained, not a copy.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        self._encoder_modules, self._encoder_parameters = _follow(model)
        self.train(model.training)

    def train(self, mode: bool = True) -> FixedEncoder:
        super().train(mode)
        for name in self._encoder_modules:
            self.model.get_submodule(name).training = False
        return self

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, nn.Parameter]]:
        """The decoder's, by their names in `model` behind `model.`."""
        own = f"{prefix}.model." if prefix else "model."
        for name, parameter in super().named_parameters(prefix, recurse, remove_duplicate):
            if name.removeprefix(own) not in self._encoder_parameters:
                yield name, parameter

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            features = self.model.forward_features(images)
        outputs: torch.Tensor = self.model.forward_head(features)
        return outputs


class Translator(nn.Module):
    """A student's map (n, from_channels, h, w) to one with a teacher's channels, (n, to_channels, h, w).

    Three convolutions with 1 x 1 kernels (FedSA, section 3.2); the channels between them, no bias, and BatchNorm and
    LeakyReLU(0.1) after each are the released code's. The maps' sides are made equal by `pooled`.
    """

    def __init__(self, from_channels: int, to_channels: int):
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in ((from_channels, from_channels), (from_channels, to_channels), (to_channels, to_channels)):
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
    return features if features.shape[2:] == side else F.adaptive_avg_pool2d(features, side)


class Encoder(nn.Module):
    """The encoder of `model` as a network of its own: images to features (n, c, h, w)."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.model.forward_features(images)
        return features


def load_encoder(model: nn.Module, other: nn.Module) -> None:
    """Give `model` the encoder of `other`, weights and buffers; their decoders may differ, as for classes and for pixels.

    Raises ValueError if the encoders are of different networks.
    """
    own, found = ({n: t for n, t in _encoder(m).state_dict().items() if n not in decoder_parameters(_encoder(m))} for m in (model, other))
    if {n: t.shape for n, t in own.items()} != {n: t.shape for n, t in found.items()}:
        raise ValueError("the networks' encoders differ, so that one cannot take the weights of the other")
    _encoder(model).load_state_dict(found, strict=False)


def _encoder(model: nn.Module) -> nn.Module:
    """What holds the encoder's weights: of a network with outputs for every pixel the network inside."""
    inside: nn.Module = getattr(model, "encoder", model)
    return inside
