"""The encoder of Taskonomy's networks (Zamir et al. 2018), and its released weights when the user
has them.

A ResNet-50 that strides in the last block of a stage, not the first, and in its first two stages
alone, and a last convolution to eight channels: 256 pixels leave a map of 8 x 16 x 16. Layers and
names are those of the authors' PyTorch release (alexsax/visual-prior), so that its weights load
unchanged. It takes images scaled to [-1, 1].
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from models.cut import pooled
from models.entry import NetworkEntry, Sides
from models.networks.imagenet import read_weights
from models.weight_files import WeightFile
from results.files import DataError

CHANNELS = 8
"""Of the encoder's map."""
POOLED = 4
"""Side to which the map is pooled before the linear head, which is ours: the release has no layers
of its classifiers."""

_HASHES = {
    "autoencoding": "e35146c09253720e97c0a7f8ee4e896ac931f5faa1449df003d81e6089ac6307",
    "class_object": "4a4e42dad58066039a0d2f9d128bb32e93a7e4aa52edb2d2a07bcdd1a6536c18",
    "class_scene": "ad85764467cddafd98211313ceddebb98adf2a6bee2cedfe0b922a37ae65eaf8",
    "colorization": "5ed817acdd28d13e443d98ad15ebe1c3059a3252396a2dff6a2090f6f86616a5",
    "curvature": "3767cf5d06d9c6bca859631eb5a3c368d66abeb15542171b94188ffbe47d7571",
    "denoising": "b64cab95af4a2c565066a7e8effaf37d6586c3b9389b47fff9376478d849db38",
    "depth_euclidean": "88f18d41313de7dbc88314a7f0feec3023047303d94d73eb8622dc40334ef149",
    "depth_zbuffer": "cc343a8ed622fd7ee3ce54398be8682bbbbfb5d11fa80e8d03a56a5ae4e11b09",
    "edge_occlusion": "5ac3f3e918131f61e01fe95e49f462ae2fc56aa463f8d353ca84cd4e248b9c08",
    "edge_texture": "be2d686a6a4dfebe968d16146a17176eba37e29f736d5cd9a714317c93718810",
    "egomotion": "9aa647c34bf98f9e491e0b37890d77566f6ae35ccf41d9375c674511318d571c",
    "fixated_pose": "78cf321518abc16f9f4782b9e5d4e8f5d6966c373d951928a26f872e55297567",
    "inpainting": "bf96fbaaea9268a820a19a1d13dbf6af31798f8983c6d9203c00fab2d236a142",
    "jigsaw": "0c2b342c9080f8713c178b04aa6c581ed3a0112fecaf78edc4c04e0a90516e39",
    "keypoints2d": "6b77695acff4c84091c484a7b128a1e28a7e9c36243eda278598f582cf667fe0",
    "keypoints3d": "7e3f1ec97b82ae30030b7ea4fec2dc606b71497d8c0335d05f0be3dc909d000d",
    "nonfixated_pose": "3433a600ca9ff384b9898e55d86a186d572c2ebbe4701489a373933e3cfd5b8b",
    "normal": "f5e2c7737e4948e3b2a822f584892c342eaabbe66661576ba50db7cdd40561c5",
    "point_matching": "4bd2a6b2909d9998fabaf0278ab568f42f2b692a648e28555ede6c6cda5361f4",
    "reshading": "de456246e171dc8407fb2951539aa60d75925ae0f1dbb43f110b7768398b36a6",
    "room_layout": "1e1662f43b834261464b1825227a04efba59b50cc8883bee9adc3ddafd4796c1",
    "segment_semantic": "bb3007244520fc89cd111e099744a22b1e5c98cd83ed3f116fbff6376d220127",
    "segment_unsup25d": "7d12d2500c18c003ffc23943214f5dfd74932f0e3d03dde2c3a81ebc406e31a0",
    "segment_unsup2d": "b679053a920e8bcabf0cd454606098ae85341e054080f2be29473971d4265964",
    "vanishing_point": "afd2ae9b71d46a54efc5231b3e38ebc3e35bfab78cb0a78d9b75863a240b19a8",
}
RELEASE = "https://github.com/alexsax/visual-prior/raw/networks/assets/pytorch"

ENCODERS = {
    task: WeightFile(
        f"{task}_encoder-{sha256}.pth", f"{RELEASE}/{task}_encoder-{sha256}.pth", sha256
    )
    for task, sha256 in _HASHES.items()
}
"""The released encoders by task; their names carry their SHA-256."""


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 (with the stride) and 1 x 1 convolutions, each with BatchNorm, and a shortcut
    around them.

    The shortcut is a 1 x 1 convolution where the channels change, and leaves pixels out where there
    is a stride.
    """

    def __init__(self, in_channels: int, channels: int, stride: int = 1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, 4 * channels, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * channels)
        layers: list[nn.Module] = []
        if in_channels != 4 * channels:
            layers = [
                nn.Conv2d(in_channels, 4 * channels, 1, bias=False),
                nn.BatchNorm2d(4 * channels),
            ]
        if stride != 1:
            layers.append(nn.MaxPool2d(1, stride))
        self.downsample = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = F.relu(self.bn2(self.conv2(out)))
        return F.relu(self.bn3(self.conv3(out)) + self.downsample(x))


def _stage(in_channels: int, channels: int, blocks: int, stride: int = 1) -> nn.Sequential:
    first, *between = [
        Bottleneck(before, channels) for before in (in_channels, *[4 * channels] * (blocks - 2))
    ]
    return nn.Sequential(first, *between, Bottleneck(4 * channels, channels, stride))


class TaskonomyResNet50(nn.Module):
    """Images (n, in_channels, h, w) to a map (n, 8, h / 16, w / 16), and to scores (n,
    num_classes).
    """

    def __init__(self, in_channels: int, num_classes: int, sides: Sides):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.layer1 = _stage(64, 64, 3, stride=2)
        self.layer2 = _stage(256, 128, 4, stride=2)
        self.layer3 = _stage(512, 256, 6)
        self.layer4 = _stage(1024, 512, 3)
        self.compress1 = nn.Conv2d(2048, CHANNELS, 3, 1, 1, bias=False)
        self.compress_bn = nn.BatchNorm2d(CHANNELS)
        height, width = (min(POOLED, -(-side // 16)) for side in sides)
        self.pooled = (height, width)
        self.head = nn.Linear(CHANNELS * height * width, num_classes)

    def forward_features(self, images: torch.Tensor) -> torch.Tensor:
        maps = self.maxpool(F.relu(self.bn1(self.conv1(images))))
        maps = self.layer4(self.layer3(self.layer2(self.layer1(maps))))
        return F.relu(self.compress_bn(self.compress1(maps)))

    def forward_head(self, features: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = self.head(pooled(features, self.pooled).flatten(1))
        return outputs

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.forward_head(self.forward_features(images))


def load_taskonomy(model: nn.Module, task: str) -> None:
    """Load the released encoder of `task` into `model`, a `taskonomy-resnet50` or the `encoder` of
    one with `+dense`.

    The head stays as it is. Raises ValueError for an unknown task, DataError if the file is absent,
    damaged or of another network.
    """
    if task not in ENCODERS:
        raise ValueError(f"Taskonomy has no encoder of {task!r}; known: {', '.join(ENCODERS)}")
    file = ENCODERS[task]
    content = read_weights(file.path, file)
    weights = content.get("state_dict")
    if not isinstance(weights, dict):
        raise DataError(f"{file.path} has no weights under 'state_dict'")
    encoder_state = {
        name: tensor for name, tensor in model.state_dict().items() if not name.startswith("head.")
    }
    unfit = [
        name
        for name in encoder_state
        if not _counter(name)
        and (name not in weights or weights[name].shape != encoder_state[name].shape)
    ]
    unfit += [name for name in weights if name not in encoder_state]
    if unfit:
        raise DataError(
            f"{file.path} does not fit Taskonomy's encoder: {', '.join(unfit[:3])} are missing or"
            " differ"
        )
    model.load_state_dict(weights, strict=False)


def _counter(name: str) -> bool:
    """Whether `name` is BatchNorm's count of batches, which files older than it do not have."""
    return name.endswith("num_batches_tracked")


NETWORKS = {"taskonomy-resnet50": NetworkEntry(TaskonomyResNet50)}
