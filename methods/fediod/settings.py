"""FedIOD's hyper-parameters, each with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from federation.method import Method
from methods.fediod.losses import Objective
from results.names import check_known
from results.numbers import Count, Positive, Share


@dataclass(frozen=True)
class Settings(Objective, Method):
    """The fields of FedIOD; those that the ablations switch are those of Table 6."""

    quick: ClassVar[Mapping[str, Any]] = {
        "epochs": 2,
        "steps": 35,
        "batch_size": 32,
        "width": 16,
        "discriminator_width": 16,
        "samples": 20,
        "lr": 0.01,
        "generator_lr": 2e-3,
        "confidence": 0.1,
        "uniqueness": 0.1,
    }

    epochs: Count = 300
    """Epochs of distillation (appendix)."""
    steps: int = 0
    """Steps in an epoch; 0 for as many as the largest client has batches (released code)."""
    batch_size: Count = 64
    """Generated images in a step (appendix)."""
    latent: Count = 100
    """Dimension of w, which is standard normal (CIFAR section)."""
    width: Count = 64
    """Channels of the generator's last layer but one (MosaicKD, as the appendix says)."""
    discriminator_width: Count = 128
    """Channels of the discriminators' first layer (released code)."""
    second_upsampling: str = "nearest"
    """How the generator enlarges the second time: nearest (MosaicKD), bilinear (released code)."""
    optimizer: str = "adam"
    """The student's: adam (appendix), or sgd, momentum 0.9, weight decay 3e-5 (released code)."""
    lr: Positive = 1e-3
    """The student's learning rate, with a cosine over all steps (appendix)."""
    final_lr: float = 0.0
    """Where the student's cosine ends (appendix)."""
    generator_lr: Positive = 1e-3
    """Of Adam for G and D_k, with a cosine to 0 (appendix)."""
    generator_beta: Share = 0.5
    """First beta of Adam for G and D_k (released code)."""
    augment_own: bool = False
    """Whether D_k sees its images augmented (released code); G then makes black borders."""
    logarithmic: bool = True
    """Whether L_gan is the cross-entropy of a classical GAN, as the text and the code have it, or
    linear, as Eq. 2 is printed."""
    gan_weights: str = "size"
    """pi_k in L_gan: `size` (Eq. 2), or `average` (Table 6)."""
    gan: float = 1.0
    """Weight of L_gan for the generator (Eq. 11 has no weights)."""
    diversity: float = 0.0
    """Weight of the released code's diversity term, which pulls the other way."""
    balance: float = 0.0
    """Weight of the released code's class-balance term."""
    student_steps: Count = 1
    """Student steps for each of the generator's: one on the same images (Algorithm 1), or several,
    all on fresh ones (released code: 5)."""
    samples: int = 10_000
    """Images generated at the end, for measures of their quality."""

    def __post_init__(self) -> None:
        check_known(
            self,
            weights=("eq8", "eq8-own", "size", "class-count"),
            gan_weights=("size", "average"),
            optimizer=("adam", "sgd"),
            second_upsampling=("nearest", "bilinear"),
        )
        if self.student_steps != 1 and self.weights not in ("size", "class-count"):
            raise ValueError(
                f"weights {self.weights!r} need the discriminators, which do not see the images of"
                " extra student steps"
            )
