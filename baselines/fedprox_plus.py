"""FedProx+: FedProx in FedSA's problem, by distillation (Xie et al. 2022, Table 1)."""

from dataclasses import dataclass

from torch import nn

from fedtables.baselines.fedavg_plus import FedAvgPlus
from fedtables.federation.training.plan import Penalty, SteadyPenalty
from fedtables.methods.fedprox import proximal_term


@dataclass(frozen=True)
class FedProxPlus(FedAvgPlus):
    """FedAvg+ with FedProx's proximal term on the local student (Li et al. 2020, Eq. 2);
    translators are free of it.

    Beside Eq. 4, a sum over hundreds of entries of a map, a mu of the usual size is next to
    nothing.
    """

    title = "FedProx+"

    mu: float = 0.01
    """Weight of the proximal term (assumed; FedProx's authors tune it, FedSA gives none)."""

    def penalty(self, student: nn.Module) -> Penalty | None:
        received = [w.detach().clone() for w in student.parameters()]
        return SteadyPenalty(
            lambda model, batch: proximal_term(list(student.parameters()), received, self.mu)
        )
