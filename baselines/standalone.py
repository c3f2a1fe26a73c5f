"""Standalone: every client keeps the model it trained on its own shard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.privacy.plan import DP_SGD


@dataclass(frozen=True)
class Standalone(Method):
    """Local training only; a table prints the mean over clients."""

    title = "Client"
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: frozenset()}

    def fit(self, federation: Federation) -> Sequence[Checkpoint]:
        return federation.local_models()
