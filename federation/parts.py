"""What a federation is put together from, whoever brings it: a scenario, or a user's script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from fedtables.federation.augmentation import Augmentation
from fedtables.federation.cache import StageCache
from fedtables.federation.channel import Channel
from fedtables.federation.client import Client, Shard
from fedtables.federation.data import MOST_ON_DEVICE, Change, LabelledSet, PublicData
from fedtables.federation.execution import DEFAULT, Execution
from fedtables.federation.federation import Federation
from fedtables.federation.inside.privacy import Protection
from fedtables.federation.inside.setup import HeldOut, Setup
from fedtables.federation.seeds import Seeds
from fedtables.federation.tasks.base import Task
from fedtables.federation.training.inputs import Normalisation
from fedtables.federation.training.plan import TrainingPlan
from fedtables.models.catalogue import OwnNetwork, network_for
from fedtables.models.entry import Builder


@dataclass(frozen=True)
class ClientPart:
    """What one client holds."""

    shard: Shard
    label_counts: tuple[int, ...]
    """Samples per class; of findings, the samples that have each of the task's."""
    digest: str
    """Identifies the samples, with their targets, in stage keys."""
    source: str
    """The data set that the samples are of."""
    records: np.ndarray
    """Which of its training samples each entry of the shard is, (n,)."""
    groups: np.ndarray | None = None
    """Whose each entry is, (n,), as of a patient; None where nobody is known to have several."""
    task: Task | None = None
    """What they are labelled for, where that is another task than the federation's."""
    normalise: Normalisation | None = None
    """How the client's network sees them, where that is otherwise than the server's."""


@dataclass(frozen=True)
class Parts:
    """What is a scenario's own in a federation: samples, and what is learnt of them. The rest
    follows from the configuration.
    """

    clients: Sequence[ClientPart]
    public: PublicData
    test: LabelledSet
    task: Task
    image_shape: tuple[int, ...]
    """Channels and sides, as networks see them: height and width, or depth, height and width."""
    normalise: Normalisation
    further_tests: Mapping[str, LabelledSet] = field(default_factory=dict)
    """Test samples of further sites, by name: histories have their metrics too, so that cells
    which are measured on different sites share their fits."""
    validation: LabelledSet | None = None
    """Labelled samples at the server, to choose models by; None if it has none."""
    probe: LabelledSet | None = None
    """Labelled samples at the server, to train on; None if it has none."""
    oracle_labels: torch.Tensor | None = None
    """Targets of the public samples, where they are the task's; for upper bounds only."""

    def copies(self) -> int:
        """How often one sample lies with the clients, all together, at most."""
        return _most([(part.source, part.records) for part in self.clients])

    def largest_group(self) -> int:
        """How many entries of one group, such as a patient, lie with the clients at most; 1 where
        there are no groups.
        """
        grouped = [(part.source, part.groups) for part in self.clients if part.groups is not None]
        return max(1, _most(grouped))

    def held(self) -> dict[int, torch.Tensor]:
        """All samples and targets, which a run keeps as long as it goes on, by what identifies
        their memory: of many clients' samples there is one set.
        """
        found: dict[int, torch.Tensor] = {}

        def note(tensor: torch.Tensor) -> torch.Tensor:
            return found.setdefault(tensor.untyped_storage()._cdata, tensor)

        self._map(note)
        return found

    def on(self, device: str) -> Parts:
        """The same with samples and targets on a device; as they are where they take more than
        `MOST_ON_DEVICE` together, or than a third of a GPU.
        """
        most, kind = MOST_ON_DEVICE, torch.device(device)
        if kind.type == "cuda":
            most = min(most, torch.cuda.get_device_properties(kind).total_memory // 3)
        if bytes_of(self.held()) > most:
            return self
        moved: dict[int, torch.Tensor] = {}
        return self._map(lambda tensor: moved.setdefault(id(tensor), tensor.to(device)))

    def _map(self, change: Change) -> Parts:
        def of(held: LabelledSet | None) -> LabelledSet | None:
            return None if held is None else held.map(change)

        return replace(
            self,
            clients=[replace(part, shard=part.shard.map(change)) for part in self.clients],
            public=self.public.map(change),
            test=self.test.map(change),
            further_tests={name: held.map(change) for name, held in self.further_tests.items()},
            validation=of(self.validation),
            probe=of(self.probe),
            oracle_labels=None if self.oracle_labels is None else change(self.oracle_labels),
        )


def bytes_of(held: Mapping[int, torch.Tensor]) -> int:
    """The memory of `held` samples."""
    return sum(tensor.untyped_storage().nbytes() for tensor in held.values())


def _most(named: Sequence[tuple[str, np.ndarray]]) -> int:
    """How often one number is in all the arrays of one name, at most; 0 for none."""
    by_name: dict[str, list[np.ndarray]] = {}
    for name, numbers in named:
        by_name.setdefault(name, []).append(numbers)
    counts = [np.unique(np.concatenate(n), return_counts=True)[1] for n in by_name.values()]
    return max((int(count.max(initial=0)) for count in counts), default=0)


LOCAL, SERVER = TrainingPlan(epochs=5, batch_size=32), TrainingPlan(epochs=20, batch_size=64)
"""Plans where nobody gives others."""


@dataclass(frozen=True)
class Plans:
    """Networks of the parties, and how they train."""

    network: str | Builder = "cnn"
    """The global model: a network's name, or a function of channels, classes and sides that returns
    a module."""
    clients: Sequence[str | Builder] = ()
    """The network of each client; empty: `network` for all."""
    roles: Sequence[str] = ()
    """Names of the clients' kinds of network, for tables; empty: the networks' names."""
    local: TrainingPlan = LOCAL
    """How clients train."""
    server: TrainingPlan = SERVER
    """How the server trains."""
    augmentation: Augmentation | None = None
    """Augmentation of training images; None for none."""
    pretrained: bool = False
    """Whether networks begin with weights from ImageNet."""
    looks: int = 0
    """How many epochs or rounds are followed by a look at the test set, evenly spread; 0: all."""


@dataclass(frozen=True)
class Run:
    """How a federation runs. On the device `meta` nothing is computed; only sizes are known."""

    seeds: Seeds = field(default_factory=Seeds)
    """One seed for each kind of randomness."""
    stages: StageCache = field(default_factory=lambda: StageCache(None))
    """Keeps trained stages; by default in memory."""
    device: str = "cpu"
    """`cpu`, `cuda`, `cuda:1` or `mps`."""
    channel: Channel | None = None
    """The ledger; None for a new one."""
    progress: Callable[[str, float], None] = lambda text, share: None
    """Called as `progress(text, share)`, with what is being done and the share done."""
    execution: Execution = DEFAULT
    """Precision, compilation and stacking; by default fp32, one client after another."""


def put_together(
    parts: Parts,
    plans: Plans,
    run: Run,
    protection: Protection | None = None,
    oracle: frozenset[str] = frozenset(),
) -> Federation:
    """The federation, with the samples where `Parts.on` has them; a method that fits it may know
    what `oracle` says.

    Raises ValueError for an augmentation of images whose targets are values of every pixel, a
    network that does not learn the task, and what `Federation` refuses.
    """
    parts = parts.on(run.device)
    tasks = (parts.task, *(client.task for client in parts.clients if client.task))
    if plans.augmentation is not None and any(t.dense and t.classes is None for t in tasks):
        raise ValueError(
            "images with values for every pixel are not augmented: a direction among them would not"
            " turn with its image; leave augmentation.* off"
        )
    dims = len(parts.image_shape) - 1
    own: dict[Builder, str] = {}

    def network(given: str | Builder, task: Task) -> str:
        name = given if isinstance(given, str) else own.setdefault(given, OwnNetwork(given))
        return network_for(name, dense=task.dense, dims=dims)

    given = plans.clients or [plans.network] * len(parts.clients)
    networks = [
        network(one, client.task or parts.task)
        for one, client in zip(given, parts.clients, strict=True)
    ]
    clients = tuple(
        Client(
            index,
            role,
            networks[index],
            client.shard,
            client.label_counts,
            client.digest,
            client.task,
            client.normalise,
        )
        for index, (role, client) in enumerate(
            zip(plans.roles or networks, parts.clients, strict=True)
        )
    )
    setup = Setup(
        clients=clients,
        public=parts.public,
        probe=parts.probe,
        task=parts.task,
        network=network(plans.network, parts.task),
        image_shape=parts.image_shape,
        normalise=parts.normalise,
        local=plans.local,
        server=plans.server,
        augmentation=plans.augmentation,
        seeds=run.seeds,
        stages=run.stages,
        channel=run.channel or Channel(),
        device=torch.device(run.device),
        execution=run.execution,
        pretrained=plans.pretrained,
        progress=run.progress,
    )
    held = HeldOut(
        test=parts.test,
        further_tests=parts.further_tests,
        validation=parts.validation,
        oracle_labels=parts.oracle_labels,
        oracle_allowed=oracle,
        looks=plans.looks,
    )
    return Federation(setup, held, protection)
