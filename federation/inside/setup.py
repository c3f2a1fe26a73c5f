"""What a federation is made of, for its parts, and its random streams by name."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from fedtables.federation.augmentation import Augmentation
from fedtables.federation.cache import StageCache
from fedtables.federation.channel import Channel
from fedtables.federation.client import Client
from fedtables.federation.data import LabelledSet, PublicData
from fedtables.federation.execution import DEFAULT, Execution
from fedtables.federation.seeds import Seeds, Stream
from fedtables.federation.tasks.base import Task
from fedtables.federation.training.inputs import Normalisation
from fedtables.federation.training.plan import TrainingPlan


@dataclass(frozen=True)
class Setup:
    """Who takes part in what, by which plans, and how it runs; not what it is measured on."""

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

    def stream(self, axis: str, *names: object) -> Stream:
        """The stream `names` of an axis, on the run's device; while planning of shapes alone."""
        generator = None if self.planned else self.seeds.torch(axis, *names, device=self.device)
        return Stream(generator, self.device)


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


class Streams:
    """Streams of the run's seeds. While planning they draw shapes, but the same participants."""

    def __init__(self, setup: Setup):
        self._setup = setup
        self.seeds = setup.seeds

    def shuffling(self, *names: object) -> Stream:
        """The stream `names` of the shuffling axis."""
        return self._setup.stream("shuffling", *names)

    def participants(self, number: int, share: float) -> list[Client]:
        """The clients of round `number`: round(share x clients), at least one, drawn without
        replacement.

        Drawn from the sampling axis among the clients that hold samples. Raises ValueError for a
        share outside (0, 1].
        """
        if not 0 < share <= 1:
            raise ValueError(
                f"the share of participating clients must be above 0 and at most 1, not {share}"
            )
        clients = self._setup.clients
        able = [client for client in clients if client.size]
        count = min(len(able), max(1, round(share * len(clients))))
        chosen = self.seeds.numpy("sampling", "round", number).choice(
            len(able), count, replace=False
        )
        return [able[position] for position in sorted(chosen)]

    def draw(
        self,
        population: int,
        size: int,
        *names: object,
        probabilities: npt.NDArray[np.float64] | None = None,
        replace: bool = False,
    ) -> list[int]:
        """`size` indices below `population` from the stream `names` of the sampling axis; uniform
        if there are no `probabilities`. While planning different ones, the most that it can cost.
        """
        if self._setup.planned:
            return list(range(min(size, population)))
        rng = self.seeds.numpy("sampling", *names)
        return rng.choice(population, size, replace=replace, p=probabilities).tolist()

    @contextlib.contextmanager
    def dropout(self, *names: object) -> Iterator[None]:
        """Inside, what draws without a generator (dropout) draws from a stream of its own."""
        kind, index = self._setup.device.type, self._setup.device.index or 0
        if self._setup.planned:
            yield
            return
        seed = self.seeds.number("shuffling", "dropout", *names)
        # Not torch.manual_seed: without a GPU it keeps a traceback of every call, for the day that
        # there is one.
        with torch.random.fork_rng([index] if kind == "cuda" else []):
            torch.default_generator.manual_seed(seed)
            if kind == "cuda":
                with torch.cuda.device(index):
                    torch.cuda.manual_seed(seed)
            elif kind == "mps":
                torch.mps.manual_seed(seed)
            yield
