"""What a scenario is given, and what it contributes to a federation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from fedtables.datasets.catalogue import ResolvedData
from fedtables.federation.client import Shard
from fedtables.federation.data import LabelledSet, PublicData
from fedtables.federation.tasks.base import Task
from fedtables.federation.training.inputs import Normalisation


@dataclass(frozen=True)
class DataSets:
    """The data sets of a federation, as they were found."""

    target: ResolvedData
    """Of the task: its test samples, and the clients' samples unless `private` is given."""
    public: ResolvedData | None = None
    """Of the public samples, where they are of another."""
    private: ResolvedData | None = None
    """Of the clients' samples, where they are of another."""
    others: tuple[ResolvedData, ...] = ()
    """Of further sites, and of test samples that are none of the clients'."""


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
        """All samples and targets, which lie on the run's device as long as it goes on, by what
        identifies their memory: of many clients' samples there is one set.
        """
        sets = (self.test, *self.further_tests.values(), self.validation, self.probe)
        tensors = [tensor for part in self.clients for tensor in part.shard.whole()]
        tensors += [tensor for held in sets if held for tensor in (held.images, held.targets)]
        tensors += [self.public.images]
        tensors += [] if self.oracle_labels is None else [self.oracle_labels]
        return {tensor.untyped_storage()._cdata: tensor for tensor in tensors}


def _most(named: Sequence[tuple[str, np.ndarray]]) -> int:
    """How often one number is in all the arrays of one name, at most; 0 for none."""
    by_name: dict[str, list[np.ndarray]] = {}
    for name, numbers in named:
        by_name.setdefault(name, []).append(numbers)
    counts = [np.unique(np.concatenate(n), return_counts=True)[1] for n in by_name.values()]
    return max((int(count.max(initial=0)) for count in counts), default=0)
