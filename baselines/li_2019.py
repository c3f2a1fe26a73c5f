"""Li et al., "Privacy-preserving federated brain tumour segmentation" (MLMI 2019).

FedAvg whose clients send part of their updates: what the sparse vector technique selects, clipped
and noisy (section 2.3). The mechanism, in the paper's form and both of the reference
implementation's (NVFlare), is in `privacy/sparse_vector.py`.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from fedtables.federation.client import Client
from fedtables.federation.data import state_of
from fedtables.federation.federation import Federation
from fedtables.federation.training.plan import TrainingPlan
from fedtables.methods.fedavg import FedAvg, Round, State
from fedtables.privacy.plan import DP_SGD
from fedtables.privacy.sparse_vector import (
    RELEASED,
    SparseVector,
    declared,
    packed,
    sanitise,
    unpacked,
)


@dataclass(frozen=True)
class Li2019(FedAvg):
    """FedAvg with selected, clipped and noisy updates; with both epsilons infinite it is FedAvg
    itself, the naive version of FedAD's Table 5.

    An update is that of all real numbers of a network's state, BatchNorm's statistics included;
    whole numbers (its counts of batches) cross as they are, as in the reference implementation. A
    selected entry crosses as a float32, and a bit for every entry says which are selected. No
    accountant counts these epsilons, so that no budget (`privacy.epsilon`) is kept by them:
    `fedtables.privacy.sparse_vector` says what they come to. Under DP-SGD it works on what is
    private already.
    """

    title = "Li et al. 2019"
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: FedAvg.sends}
    quick: ClassVar[Mapping[str, Any]] = {
        **FedAvg.quick,
        "eps1": 1e5,
        "eps3": 100.0,
        "gamma": 5e-3,
    }

    share: float = 0.9
    """Share of the update's entries that a client selects (reference implementation, from 2.1 on;
    with it an account of FedAD's bytes comes closest to print)."""
    eps1: float = 1.0
    """Budget of the threshold in an upload, in `revised` of threshold and queries (FedAD's Table
    5); infinite for no noise."""
    eps3: float = 1.0
    """Budget of each released value, in `paper` of all in an upload (FedAD's Table 5: 1 and 0.01);
    infinite for no noise."""
    gamma: float = 1e-4
    """Bound of an entry of the update, per local step (reference implementation, from 2.1 on)."""
    tau: float = 1e-6
    """Threshold of such an entry's magnitude (reference implementation)."""
    generation: str = RELEASED
    """`released`, the reference implementation as it was when FedAD was written (assumed);
    `revised`, since 2026; or `paper`."""

    def __post_init__(self) -> None:
        """Raises ValueError for settings that make no sense."""
        _ = self.mechanism

    @property
    def mechanism(self) -> SparseVector:
        """Its settings as the mechanism takes them."""
        return SparseVector(self.share, self.eps1, self.eps3, self.gamma, self.tau, self.generation)

    @property
    def naive(self) -> bool:
        """Whether all is uploaded as it is."""
        return math.isinf(self.eps1) and math.isinf(self.eps3)

    @property
    def declared_budgets(self) -> Mapping[str, float]:
        return {} if self.naive else {"eps1": self.eps1, "eps3": self.eps3}

    def server_state(self, federation: Federation, model: nn.Module) -> dict[str, Any]:
        if federation.privacy.mechanism and not self.naive:
            cost = declared(self.mechanism, len(flat(model.state_dict())))
            federation.privacy.note(
                "sparse vectors add noise that no accountant counts: by their own count"
                f" ({self.generation}) an upload costs eps1 {cost.threshold:.4g}, eps2"
                f" {cost.queries:.4g} and eps3 {cost.answers:.4g}"
            )
        return {}

    def payload(self, this: Round, client: Client, worker: nn.Module, received: State) -> State:
        """The update per local step, selected, clipped and noisy; times the steps again."""
        trained = worker.state_dict()
        if self.naive:
            return trained
        federation = this.federation
        steps = local_steps(client, federation.local)
        update = (flat(trained) - flat(received)) / steps
        # The axis of noise belongs to runs with an accountant. Other settings have other noise.
        names = ("sparse", self.mechanism, client.index, this.number)
        stream = federation.streams.shuffling(*names)
        chosen, values = sanitise(update, self.mechanism, generator=stream.generator)
        return {"chosen": packed(chosen), "values": values * steps, **whole_numbers(trained)}

    def aggregate(self, this: Round, states: Iterator[State]) -> None:
        """w <- w + sum_k n_k / n dw_k: FedAvg's average of w + dw_k, with dw_k 0 where nothing
        crossed. Variances that noise has made negative are set to 0.
        """
        if self.naive:
            super().aggregate(this, states)
            return
        before = state_of(this.model)
        super().aggregate(this, (updated(before, sent) for sent in states))
        for name, buffer in this.model.named_buffers():
            if name.endswith("running_var"):
                buffer.clamp_(min=0)


def local_steps(client: Client, plan: TrainingPlan) -> int:
    """A client's local steps by `plan`; a last batch of one, which is left out, counts too."""
    return plan.epochs * math.ceil(client.size / plan.batch_size)


def flat(state: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """All real numbers of a state, (n,), in its order."""
    return torch.cat([entry.flatten() for entry in state.values() if entry.is_floating_point()])


def whole_numbers(state: Mapping[str, torch.Tensor]) -> State:
    """What else a state has, by name."""
    return {name: entry for name, entry in state.items() if not entry.is_floating_point()}


def updated(state: State, sent: State) -> State:
    """The state w + dw that a client's upload stands for."""
    before = flat(state)
    after = before + unpacked(sent["chosen"], sent["values"], len(before))
    parts = iter(after.split([e.numel() for e in state.values() if e.is_floating_point()]))
    return {
        name: next(parts).view_as(entry) if entry.is_floating_point() else sent[name]
        for name, entry in state.items()
    }
