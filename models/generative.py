"""The image generator and the patch discriminator of FedIOD, which are those of MosaicKD (Fang et
al. 2021), and the discriminators of pix2pix, which judge an image alone or beside its condition.
"""

import torch
from torch import nn

from fedtables.models.entry import monai_networks


class Generator(nn.Module):
    """Latent vectors (n, latent) to images (n, channels, image_size, image_size) in [0, 1]. A
    linear layer to a map of a quarter of the size, then twice: enlarge by two, 3 x 3 convolution,
    BatchNorm, LeakyReLU; a last convolution and a sigmoid. `upsampling` are the modes of the two:
    nearest in MosaicKD, nearest and bilinear in FedIOD's released code. Raises ValueError unless
    `image_size` is a multiple of four.
    """

    def __init__(
        self,
        latent: int = 100,
        image_size: int = 32,
        channels: int = 3,
        width: int = 64,
        upsampling: tuple[str, str] = ("nearest", "nearest"),
    ):
        super().__init__()
        if image_size % 4:
            raise ValueError(
                f"the generator makes images with sides of a multiple of 4 pixels, not {image_size}"
            )
        self.start = (4 * width, image_size // 4, image_size // 4)
        self.project = nn.Linear(latent, 4 * width * (image_size // 4) ** 2)
        self.layers = nn.Sequential(
            nn.BatchNorm2d(4 * width),
            nn.Upsample(scale_factor=2, mode=upsampling[0]),
            nn.Conv2d(4 * width, 2 * width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.LeakyReLU(0.2),
            nn.Upsample(scale_factor=2, mode=upsampling[1]),
            nn.Conv2d(2 * width, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width, channels, 3, 1, 1),
            nn.Sigmoid(),
        )

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        images: torch.Tensor = self.layers(self.project(latents).unflatten(1, self.start))
        return images


class PatchDiscriminator(nn.Module):
    """Images (n, channels, h, w) to one logit per patch, (n, h / 4, w / 4)."""

    def __init__(self, channels: int = 3, width: int = 128):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, width, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.LeakyReLU(0.2),
            nn.Conv2d(2 * width, 1, 1, bias=False),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layers(images).squeeze(1)
        return logits


class PairDiscriminator(nn.Module):
    """The patch discriminator of pix2pix (Isola et al. 2017), by MONAI: images (n, channels, h, w)
    joined by condition maps (n, conditions, h, w) to one logit per patch, (n, h', w'). With three
    `layers` a patch has 70 x 70 pixels, with two 34 x 34, with one 16 x 16. Raises ValueError where
    the sides leave no patch.
    """

    def __init__(
        self,
        channels: int,
        conditions: int,
        sides: tuple[int, ...],
        width: int = 64,
        layers: int = 3,
    ):
        super().__init__()
        if layers < 1 or min(sides) // 2**layers < 3:
            raise ValueError(
                f"a patch discriminator of {layers} layers takes sides of {3 * 2**layers} pixels"
                f" and more, not {' x '.join(map(str, sides))}; give it other layers"
            )
        inputs = channels + conditions
        self.critic = monai_networks().PatchDiscriminator(2, width, inputs, 1, layers)

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.critic(pairs)[-1].squeeze(1)
        return logits
