"""Transfer learning: one teacher gives its weights away, as FedSA's would not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.shared.learner import learn_probe
from fedtables.models.cut import FixedEncoder, load_encoder


@dataclass(frozen=True)
class Transfer(Method):
    """The target network begins with a teacher's encoder and learns from the server's probe set."""

    title = "Transfer"
    sends = frozenset({"parameters"})
    oracle = frozenset({"teacher-weights"})
    quick: ClassVar[Mapping[str, Any]] = {"teacher": 1}

    teacher: int = 0
    """Which teacher, from 1; 0 draws one (assumed: FedSA's Table 1 does not say which it took)."""
    frozen: bool = False
    """Whether only the decoder learns, as in FedSA's Table 3."""

    def fit(self, federation: Federation) -> Checkpoint:
        probe = federation.probe()
        teachers = federation.stages.teachers()
        drawn = int(
            federation.streams.seeds.numpy(
                "sampling", "teacher", probe.digest, federation.networks.server
            ).integers(len(teachers))
        )
        if self.teacher > len(teachers):
            raise ValueError(
                f"there are {len(teachers)} teachers; transfer.teacher is {self.teacher}"
            )
        index = self.teacher - 1 if self.teacher else drawn
        received = federation.upload(federation.clients[index], teachers[index])
        model = federation.networks.initial()
        load_encoder(model, federation.networks.module(received))
        learn_probe(
            federation,
            FixedEncoder(model) if self.frozen else model,
            federation.server,
            "transfer",
            track=True,
            label="transfer",
        )
        return federation.networks.checkpoint(model)
