"""FedAvg+: FedAvg in FedSA's problem, by distillation (Xie et al. 2022, Table 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from federation.data import Checkpoint
from federation.federation import Federation
from federation.method import Method
from federation.shared.amalgamation import ADAPTATIONS, Visits, adapt, look_at_copy, train_weak
from federation.training.plan import Penalty, TrainingPlan
from results.names import check_known
from results.numbers import Count, Positive


@dataclass(frozen=True)
class FedAvgPlus(Method):
    """Every teacher teaches in every round, and the average is weighted by the clients' sizes, as
    in FedAvg.

    The paper says that the baseline is "modified for our problem settings" and, as FedMD+ and
    FedProx+, "further fine-tuned on the downstream target data" (section 4.2). Here (assumed) it
    begins, like FedSA, with the target network trained on the probe set, once; fine-tuning, unlike
    FedSA's adaptation, is of all parameters.
    """

    title = "FedAvg+"
    sends = frozenset({"parameters"})
    quick: ClassVar[Mapping[str, Any]] = {"rounds": 2, "local_epochs": 1, "weak_epochs": 8}

    rounds: Count = 50
    """Rounds of communication (FedSA's released code)."""
    weak_epochs: int = 10
    """Epochs on the probe set before the first round (FedSA's released code)."""
    local_epochs: Count = 10
    """Epochs of a local student (FedSA's released code)."""
    local_lr: Positive = 1e-3
    """Of Adam, for student and translator (assumed; FedSA's released code has 0.1)."""
    local_batch_size: Count = 64
    """Private images in a step of a local student (FedSA's released code)."""
    adaptation: str = "fine-tune"
    """What learns in the end: everything (section 4.2), `decoder`, or `all` under a new head."""
    adaptation_epochs: int = 70
    """Epochs of that on the probe set (assumed: as many in all as FedSA's target has)."""
    adaptation_gap: int = 0
    """Rounds between looks at a copy that is adapted; 0 for none before the end."""

    def __post_init__(self) -> None:
        check_known(self, adaptation=ADAPTATIONS)

    def fit(self, federation: Federation) -> Checkpoint:
        target = federation.networks.initial()
        visits = Visits(federation, federation.stages.teachers())
        local = TrainingPlan(self.local_epochs, self.local_batch_size, self.local_lr)
        sizes = {client.index: float(client.size) for client in federation.clients}
        how, epochs = self.adaptation, self.adaptation_epochs
        for number in federation.rounds(self.rounds, target=target, **visits.parts):
            if number == 1:
                train_weak(federation, target, self.weak_epochs, number)
            visits.aggregate(target, sizes, local, number, self.penalty)
            if self.adaptation_gap and number % self.adaptation_gap == 0 and number < self.rounds:
                look_at_copy(federation, target, how, epochs, number)
        adapted = adapt(federation, target, how, epochs, self.rounds)
        federation.evaluation.track(adapted)
        return federation.networks.checkpoint(adapted)

    def penalty(self, student: nn.Module) -> Penalty | None:
        """A term that is added to the hint loss; `student` has just been received."""
        return None
