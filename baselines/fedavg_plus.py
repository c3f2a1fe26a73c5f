"""FedAvg+: FedAvg in FedSA's problem, where local updates are distillation (Xie et al. 2022, Table 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from federation.federation import Federation
from methods.fedsa import FedSA


@dataclass(frozen=True)
class FedAvgPlus(FedSA):
    """Every teacher teaches in every round, and the average is weighted by the clients' sizes, as in FedAvg.

    The paper says that the baseline is "modified for our problem settings" and, as FedMD+ and FedProx+, "further fine-tuned on
    the downstream target data" (section 4.2). Here (assumed) it begins, like FedSA, with the target network trained on the
    probe set, once; fine-tuning, unlike FedSA's adaptation, is of all parameters.
    """

    title = "FedAvg+"
    sends = frozenset({"parameters"})
    quick: ClassVar[Mapping[str, Any]] = {**FedSA.quick}

    retrain: bool = False
    """FedAvg has no second look at the server's samples."""

    adaptation: str = "fine-tune"
    """Section 4.2."""

    @property
    def uses_saliency(self) -> bool:
        return False

    def select(self, federation: Federation, target: nn.Module, maps: Sequence[torch.Tensor], number: int) -> dict[int, float]:
        """All of them, with the weights n_k."""
        return {client.index: float(client.size) for client in federation.clients}
