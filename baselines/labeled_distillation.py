"""DLAD with perfect confidence: the upper bound "Global (labeled)" of DLAD (V-C).

Each classifier C_i is replaced by its optimum of Eq. 3, p_i(x) / (p_dist(x) + p_i(x)), where a
sample's density is that of its true class. It needs the labels of the public images, which no real
server has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch

from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.methods.dlad import confidence_weights, mixture, teacher_probabilities
from fedtables.privacy.plan import DP_SGD
from fedtables.results.numbers import Positive


def optimal_confidence(client_counts: torch.Tensor, public_labels: torch.Tensor) -> torch.Tensor:
    """Eq. 3's optimum (clients, n) for label counts (clients, classes), public labels (n,)."""
    p_client = client_counts / client_counts.sum(dim=1, keepdim=True).clamp_min(1e-12)
    classes = torch.arange(client_counts.shape[1], device=public_labels.device)
    p_public = (classes[:, None] == public_labels).float().mean(dim=1)
    return (p_client / (p_public + p_client))[:, public_labels]


@dataclass(frozen=True)
class LabeledDistillation(Method):
    """Eq. 2 to 4 of DLAD with ideal classifiers."""

    title = "Global (labeled)"
    sends = frozenset({"parameters", "labels"})
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: sends}
    oracle = frozenset({"public-labels"})

    temperature: Positive = 0.05
    """T of Eq. 4 (DLAD, V-B)."""

    def fit(self, federation: Federation) -> Checkpoint:
        local = federation.local_models()
        teachers = [federation.upload(c, m) for c, m in zip(federation.clients, local, strict=True)]
        counts = federation.label_counts()
        confidence = optimal_confidence(counts, federation.evaluation.public_labels())
        weights = confidence_weights(confidence, self.temperature)
        return federation.distill(mixture(weights, teacher_probabilities(federation, teachers)))
