"""What a federation is made of, for its parts."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from federation.augmentation.basic import Augmentation
from federation.client import Client
from federation.data import LabelledSet, PublicData
from federation.execution import Execution
from federation.seeds import Seeds
from federation.tasks.base import Task
from federation.training.loops import Normalisation, TrainingPlan


@dataclass(frozen=True)
class Setup:
    """Who takes part in what, with which networks and plans, and how it runs; without the test
    set.
    """

    clients: tuple[Client, ...]
    public: PublicData
    probe: LabelledSet | None
    task: Task
    network: str
    image_shape: tuple[int, ...]
    normalise: Normalisation
    local: TrainingPlan
    server: TrainingPlan
    augmentation: Augmentation | None
    seeds: Seeds
    device: torch.device
    execution: Execution
    pretrained: bool

    @property
    def planned(self) -> bool:
        """Whether tensors have no content, since a plan follows their shapes alone."""
        return self.device.type == "meta"
