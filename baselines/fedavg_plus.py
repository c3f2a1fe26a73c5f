"""FedAvg+: FedAvg in FedSA's problem, by distillation (Xie et al. 2022, Table 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.shared.amalgamation import Amalgamation, train_weak
from fedtables.results.numbers import SomeShare


@dataclass(frozen=True)
class FedAvgPlus(Amalgamation, Method):
    """All teachers, or a random share of them, teach in a round, and the average is weighted by the
    clients' sizes, as in FedAvg.

    The paper says that the baseline is "modified for our problem settings" and, as FedMD+ and
    FedProx+, "further fine-tuned on the downstream target data" (section 4.2). Here (assumed) it
    begins, like FedSA, with the target network trained on the probe set, once; fine-tuning, unlike
    FedSA's adaptation, is of all parameters.
    """

    title = "FedAvg+"
    sends = frozenset({"parameters"})
    quick: ClassVar[Mapping[str, Any]] = {"rounds": 2, "local_epochs": 1, "weak_epochs": 8}

    participation: SomeShare = 1.0
    """Share of the teachers that a round has, drawn anew (assumed: all; the paper is silent)."""
    adaptation: str = "fine-tune"
    """What learns in the end: everything (section 4.2), `decoder`, or `all` under a new head."""
    adaptation_epochs: int = 70
    """Epochs of that on the probe set (assumed: as many in all as FedSA's target has)."""

    def choose(
        self, federation: Federation, target: nn.Module, maps: Sequence[torch.Tensor], number: int
    ) -> dict[int, float]:
        if number == 1:
            train_weak(federation, target, self.weak_epochs, number)
        taking_part = federation.streams.participants(number, self.participation)
        return {client.index: float(client.size) for client in taking_part}
