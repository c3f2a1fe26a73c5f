"""ResNets and DenseNet from timm, adapted to small images, and their ImageNet weights when the user
has them.

The adaptation for images below 64 pixels is explicit: the 7 x 7 stem convolution keeps its shape,
so that ImageNet weights load unchanged, but runs with stride 1, and the max-pooling after it is
dropped. Without it a 32-pixel image would reach the first stage at 8 x 8. Grey images: timm sums
the stem's weights over input channels, which equals feeding the same image to all three.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from models.entry import NetworkEntry, Sides
from models.weight_files import WeightFile
from results.files import DataError, file_digest

if TYPE_CHECKING:
    from timm.models.densenet import DenseNet

SMALL = 64
"""Images with shorter sides get the small-image stem."""


IMAGENET = {
    "resnet18": WeightFile(
        "resnet18-f37072fd.pth",
        "https://download.pytorch.org/models/resnet18-f37072fd.pth",
        "f37072fd",
    ),
    "resnet34": WeightFile(
        "resnet34-b627a593.pth",
        "https://download.pytorch.org/models/resnet34-b627a593.pth",
        "b627a593",
    ),
    "densenet121": WeightFile(
        "densenet121-a639ec97.pth",
        "https://download.pytorch.org/models/densenet121-a639ec97.pth",
        "a639ec97",
    ),
}


def weight_path(network: str) -> Path:
    """Where the suite looks for a network's ImageNet weights: `weights/` in the data home."""
    return IMAGENET[network].path


def read_weights(path: Path, expected: WeightFile) -> dict[str, torch.Tensor]:
    """Tensors of a downloaded weight file, after its SHA-256 was checked.

    Raises DataError if the file is absent, damaged, or holds anything but tensors.
    """
    if not path.exists():
        raise DataError(f"{path} is absent. Download {expected.url} and put it there.")
    if not file_digest(path).startswith(expected.sha256_head):
        raise DataError(
            f"{path} is damaged: its SHA-256 does not begin with {expected.sha256_head}. Download"
            " it again."
        )
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise DataError(
            f"{path} holds something else than tensors: {str(error).splitlines()[0]}"
        ) from error


def load_imagenet(model: nn.Module, network: str) -> None:
    """Load everything of the ImageNet weights but the head into `model`, summing the stem over
    channels if grey.
    """
    from timm.models.densenet import _filter_torchvision_pretrained

    state = _filter_torchvision_pretrained(read_weights(weight_path(network), IMAGENET[network]))
    model_state = model.state_dict()
    stem = next(name for name, value in model_state.items() if value.ndim == 4)
    if model_state[stem].shape[1] == 1:
        state[stem] = state[stem].sum(dim=1, keepdim=True)
    body = {
        name: value
        for name, value in state.items()
        if name in model_state
        and model_state[name].shape == value.shape
        and not name.startswith(("fc.", "classifier."))
    }
    absent = [
        name
        for name in model_state
        if name not in body and not name.startswith(("fc.", "classifier."))
    ]
    if [name for name in absent if not name.endswith("num_batches_tracked")]:
        raise DataError(
            f"the ImageNet weights do not fit {network}: {', '.join(absent[:3])} are missing"
        )
    model.load_state_dict(body, strict=False)


def _resnet(name: str, in_channels: int, num_classes: int, sides: Sides) -> nn.Module:
    import timm  # takes most of a second, which runs with other networks need not spend

    model = timm.create_model(name, num_classes=num_classes, in_chans=in_channels)
    if min(sides) < SMALL:
        model.conv1.stride = (1, 1)
        model.maxpool = nn.Identity()
    return model


def resnet18(in_channels: int, num_classes: int, sides: Sides) -> nn.Module:
    """timm's ResNet-18, with the small-image stem below 64 pixels."""
    return _resnet("resnet18", in_channels, num_classes, sides)


def resnet34(in_channels: int, num_classes: int, sides: Sides) -> nn.Module:
    """timm's ResNet-34, with the small-image stem below 64 pixels."""
    return _resnet("resnet34", in_channels, num_classes, sides)


def _small_stem(model: DenseNet, sides: Sides) -> DenseNet:
    if min(sides) < SMALL:
        model.features.conv0.stride = (1, 1)
        model.features.pool0 = nn.Identity()
    return model


def densenet121(in_channels: int, num_classes: int, sides: Sides) -> nn.Module:
    """timm's DenseNet-121, with the small-image stem below 64 pixels."""
    import timm

    return _small_stem(
        timm.create_model("densenet121", num_classes=num_classes, in_chans=in_channels), sides
    )


def small_densenet(in_channels: int, num_classes: int, blocks: tuple[int, ...]) -> nn.Module:
    """A DenseNet for reduced profiles: `blocks` layers per block, growth rate 8, and a 3 x 3
    stem.
    """
    from timm.models.densenet import DenseNet

    model = DenseNet(
        growth_rate=8, block_config=blocks, num_classes=num_classes, in_chans=in_channels
    )
    model.features.conv0 = nn.Conv2d(in_channels, 16, 3, 1, 1, bias=False)
    model.features.pool0 = nn.Identity()
    return model


NETWORKS = {
    "resnet18": NetworkEntry(resnet18),
    "resnet34": NetworkEntry(resnet34),
    "densenet121": NetworkEntry(densenet121, smallest=8),
    "densenet-small": NetworkEntry(lambda c, k, s: small_densenet(c, k, (2, 2, 2))),
    "densenet-tiny": NetworkEntry(lambda c, k, s: small_densenet(c, k, (1, 1))),
}
