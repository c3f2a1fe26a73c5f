"""FedIOD's reconstruction of undersampled MRI (Gong et al., AAAI 2024; Table 9): the generator
makes fully sampled images of the contour of the brain.

As in its segmentation, but a client's label map is the foreground of an image, of which the
generator is told the contour; teachers and student see what k-space undersampling leaves of a
generated image. Outputs are images and no scores of classes: L_mimic is Eq. 10 of their pixels, the
weights of Eq. 8 are D_k's factor alone, and L_conf and L_unique, which are of classes, have no
meaning.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch

from fedtables.federation.federation import Federation
from fedtables.federation.tasks.values import Reconstruction
from fedtables.methods.fediod_segmentation import FedIODSegmentation, Server
from fedtables.results.numbers import Count


@dataclass(frozen=True)
class FedIODReconstruction(FedIODSegmentation):
    """Algorithm 1 with Eq. 2, 8 to 11, for reconstruction."""

    title = "FedIOD"
    reconstructs = True
    quick: ClassVar[Mapping[str, Any]] = {
        **FedIODSegmentation.quick,
        "confidence": 0.0,
        "uniqueness": 0.0,
        "l1": 30.0,
        "perceptual": 0.0,
        "batch_size": 2,
        "steps": 6,
        "epochs": 2,
    }

    warmup_epochs: int = 0
    """Epochs in which G and D_k learn alone (assumed: none is named)."""
    epochs: Count = 100
    """Epochs of distillation (appendix: as FedAD's comparison, a constant learning rate)."""
    printed_mimic: bool = True
    """Eq. 6 needs classes, and Eq. 10 as printed none."""
    confidence: float = 0.0
    """L_conf needs classes."""
    uniqueness: float = 0.0
    """L_unique needs classes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.confidence or self.uniqueness or self.supervised:
            raise ValueError(
                "L_conf and L_unique are of classes, and a foreground is no target; set"
                " confidence, uniqueness and supervised to 0 for reconstruction"
            )
        if self.temperature or not self.printed_mimic or self.weights in ("sum", "class-count"):
            raise ValueError(
                "images have no temperature and no classes; set temperature to 0, printed_mimic to"
                " true and weights to eq8, eq8-own or size for reconstruction"
            )

    def seen(
        self, federation: Federation, server: Server, images: torch.Tensor, step: int
    ) -> torch.Tensor:
        """What undersampling leaves of generated images (n, 1, h, w) in [-1, 1]; in a step the same
        columns for all teachers and the student.
        """
        task = cast(Reconstruction, federation.task)
        columns = federation.streams.shuffling("columns", server.epoch, step)
        draws = columns.uniform(len(images), images.shape[-1])
        return federation.normalise(task.seen((images + 1) / 2, draws))

    def as_scores(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs
