"""Plain distillation of the clients' mean probabilities ("Global (avg.)" of DLAD, V-C)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.methods.dlad import teacher_probabilities
from fedtables.privacy.plan import DP_SGD


@dataclass(frozen=True)
class AverageDistillation(Method):
    """Eq. 2 of DLAD with w_i(x) = 1/N."""

    title = "Global (avg.)"
    sends = frozenset({"parameters"})
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: sends}

    def fit(self, federation: Federation) -> Checkpoint:
        local = federation.local_models()
        teachers = [federation.upload(c, m) for c, m in zip(federation.clients, local, strict=True)]
        return federation.distill(teacher_probabilities(federation, teachers).mean(dim=0))
