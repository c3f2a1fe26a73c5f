"""What a federation is made of, for its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch

from federation.augmentation.basic import Augmentation
from federation.cache import StageCache
from federation.channel import Channel
from federation.client import Client
from federation.data import LabelledSet, PublicData
from federation.execution import DEFAULT, Execution
from federation.seeds import Seeds
from federation.tasks.base import Task
from federation.training.inputs import Normalisation
from federation.training.plan import TrainingPlan


@dataclass(frozen=True)
class Setup:
    """Who takes part in what, with which networks and plans, and how it runs; without what it is
    measured on.
    """

    clients: tuple[Client, ...]
    public: PublicData
    task: Task
    network: str
    """Of the global model."""
    image_shape: tuple[int, ...]
    """Channels and sides."""
    normalise: Normalisation
    local: TrainingPlan
    server: TrainingPlan
    seeds: Seeds
    stages: StageCache
    probe: LabelledSet | None = None
    augmentation: Augmentation | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    execution: Execution = DEFAULT
    pretrained: bool = False
    channel: Channel = field(default_factory=Channel)
    progress: Callable[[str, float], None] = lambda text, share: None

    @property
    def planned(self) -> bool:
        """Whether tensors have no content, since a plan follows their shapes alone."""
        return self.device.type == "meta"


@dataclass(frozen=True)
class HeldOut:
    """What a federation is measured on, and what an upper bound may see."""

    test: LabelledSet
    further_tests: Mapping[str, LabelledSet] = field(default_factory=dict)
    """Of further sites, by name."""
    validation: LabelledSet | None = None
    oracle_labels: torch.Tensor | None = None
    """The public images' true labels."""
    oracle_allowed: frozenset[str] = frozenset()
    """What knowledge that no server has the method declares."""
    looks: int = 0
    """After how many of a training's epochs or a fit's rounds test metrics are taken, evenly
    spread and the last among them; 0 for all."""
