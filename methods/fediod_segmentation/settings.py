"""Hyper-parameters of FedIOD's segmentation, each with its source; defaults are those of the nuclei
(Tables 3, 4 and 8).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from federation.method import Method
from federation.shared.conditional_gan import GanSettings
from results.names import check_known
from results.numbers import Positive, Share


@dataclass(frozen=True)
class Settings(GanSettings, Method):
    """The fields of FedIOD's segmentation, beside those of the conditional GAN."""

    quick: ClassVar[Mapping[str, Any]] = {
        "generator": "resnet-generator-narrow",
        "discriminator_width": 8,
        "discriminator_layers": 1,
        "features": "vgg16-random",
        "generator_lr": 5e-3,
        "lr": 0.01,
        "batch_size": 4,
        "steps": 12,
        "warmup_epochs": 1,
        "epochs": 2,
        "decay_epochs": 0,
        "mimic": 1e-3,
        "confidence": 0.1,
        "uniqueness": 0.1,
    }

    warmup_epochs: int = 100
    """Epochs of the first part, in which G and D_k learn alone (appendix; none for BraTS)."""
    epochs: int = 300
    """Epochs of distillation after it (appendix; 400 for BraTS)."""
    generator_lr: Positive = 1e-4
    """Of Adam for G and D_k (appendix; 2e-4 for BraTS)."""
    decay_epochs: int = 0
    """Epochs at the end in which this learning rate falls to nearly 0 (released code: 200)."""
    lr: Positive = 1e-4
    """The student's learning rate, which is constant (appendix; 2e-4 for BraTS)."""
    student_beta: Share = 0.9
    """First beta of the student's Adam (released code: 0.5)."""
    weight_decay: float = 0.0
    """Of the student (released code: 1e-4)."""
    amsgrad: bool = False
    """Whether the student's Adam is AMSGrad (released code)."""
    judges: str = "all"
    """Images that D_k judges: `all` (Algorithm 1, Eq. 8), for which every client is sent the label
    maps of all, or `own`, those of its own maps (released code)."""
    gan_weights: str = "size"
    """Weight of each client in L_gan and the perceptual loss: `size` for pi_k of Eq. 2, or `one`
    (released code)."""
    generator_scale: float = 1.0
    """Weight of L_gan, with the perceptual loss in it, for G (Eq. 11 has no weights; released code:
    0.1)."""
    discriminator_scale: float = 1.0
    """What D_k's loss is multiplied by (released code: 0.05)."""
    l1: float = 0.0
    """Weight in L_gan of the mean absolute difference from the real image of the label map."""
    perceptual: float = 10.0
    """Weight in L_gan of the perceptual distance from that image (released code; the paper has no
    number)."""
    mimic: float = 1.0
    """Weight of L_mimic for G; 0 leaves it out there (released code)."""
    confidence: float = 1.0
    """Weight of L_conf for G (released code: 0)."""
    uniqueness: float = 1.0
    """Weight of L_unique for G (released code: 0)."""
    weights: str = "eq8"
    """Weights of the teachers: `eq8`; `eq8-own` with 1 - D_k for D_k; `size`; `class-count` of
    pixels; `sum`, all one (released code)."""
    temperature: float = 0.0
    """tau of L_mimic; 0 stands for infinity (released code: 5)."""
    printed_mimic: bool = False
    """Whether L_mimic at infinity is |S - A|^2 of Eq. 10 as printed, at least 2C times more than
    Eq. 6 tends to."""
    distillation: float = 1.0
    """Weight of L_mimic for the student (released code: 0.04, for its loss has no factor tau^2)."""
    supervised: float = 0.0
    """Weight for the student of the task's loss against the label map (released code: 1)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_known(
            self,
            judges=("all", "own"),
            weights=("eq8", "eq8-own", "size", "class-count", "sum"),
        )
        if self.judges == "own" and self.weights.startswith("eq8"):
            raise ValueError(
                f"weights {self.weights!r} need every client's D_k on every image; set judges = all"
            )
        if self.epochs < 1:
            raise ValueError("epochs must be at least 1")
