"""The one interface that every method and baseline implements."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from fedtables.datasets.access import is_fitting, while_fitting
from fedtables.federation.costs import active_meter
from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.privacy.plan import DP_SGD, RELEASED

Fitted = Checkpoint | torch.nn.Module | Sequence[Checkpoint]
"""What a method leaves: one global model, or one model per client."""


@dataclass(frozen=True)
class Method(ABC):
    """A federated learning method. Its fields are its hyper-parameters; `fit` is its algorithm.

    A file or package under `methods/` or `baselines/`, or a `--plugin`, exports exactly one
    subclass; the file's or folder's name, with hyphens for underscores, is the method's name.
    """

    title: ClassVar[str] = ""
    """The row's label in tables; the file's name if empty."""
    sends: ClassVar[frozenset[str]] = frozenset()
    """Payload kinds that leave a client. The contract sees to it that the ledger agrees."""
    protected: ClassVar[Mapping[str, frozenset[str]]] = {}
    """By mechanism of differential privacy, what leaves a client under it: all of it noisy or
    computed from what is, but for `released`, which gives no guarantee. A mechanism that the class
    itself does not name is refused."""
    oracle: ClassVar[frozenset[str]] = frozenset()
    """Knowledge no real server has, for upper bounds: `public-labels`, `private-samples`. Tables
    mark such rows."""
    dense: ClassVar[bool] = False
    """Whether it makes images of label maps, and so learns tasks with a class for every pixel
    alone (`fedtables.federation.tasks.base.ConditionedTask`)."""
    reconstructs: ClassVar[bool] = False
    """Whether it learns the reconstruction of undersampled images alone."""

    privacy: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": {"mechanism": DP_SGD}}
    """By protocol, the settings `privacy.*` of a private run that nobody has set: mechanism, and
    what goes with it. Those under `paper` hold where the protocol has none of its own."""

    quick: ClassVar[Mapping[str, Any]] = {}
    """Field values with which it learns something within seconds on the contract's small
    federation. Settings of the plans by which it trains there, such as `local.optimizer`, may stand
    beside them."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Every `fit` is a run of its own, whoever calls it; one that a mixin brings too."""
        super().__init_subclass__(**options)
        fit = cls.fit
        if not getattr(fit, "__isabstractmethod__", False) and getattr(fit, "run", None) is not fit:
            cls.fit = as_a_run(fit)  # type: ignore[assignment, method-assign]

    @classmethod
    def protections(cls) -> Mapping[str, frozenset[str]]:
        """`protected` as the class itself declares it: derived classes inherit no promise."""
        declared: Mapping[str, frozenset[str]] = vars(cls).get("protected", {})
        return declared

    @classmethod
    def kinds_under(cls, mechanism: str) -> frozenset[str]:
        """What leaves a client under a mechanism. Raises ValueError where it has no such form."""
        if mechanism not in cls.protections():
            raise ValueError(f"{cls.__name__} has no private form under {mechanism}")
        return cls.protections()[mechanism]

    @classmethod
    def privacy_defaults(cls, protocol: str) -> dict[str, Any]:
        """`privacy` under a protocol, by the settings' names."""
        settings = {**cls.privacy["paper"], **cls.privacy.get(protocol, {})}
        return {f"privacy.{name}": value for name, value in settings.items()}

    @property
    def declared_budgets(self) -> Mapping[str, float]:
        """By name the epsilons of its own noise, as its authors count them; empty for none."""
        return {}

    @abstractmethod
    def fit(self, federation: Federation) -> Fitted:
        """Run the method and return what it learnt.

        Called from outside it begins with an empty ledger and history, and what no method may see
        is closed as long as it runs. Raises AccessError if it reaches for that. Raises ValueError
        where it has sent what it does not declare, and where the federation is private and the
        method has no such form, told the accountant nothing, or has been fitted before.
        """


def as_a_run(
    fit: Callable[[Any, Federation], Fitted], name: str = ""
) -> Callable[[Any, Federation], Fitted]:
    """`fit` as `Method.fit` says; as it is inside of another's fit. Errors call the method `name`,
    by its class if empty."""

    @functools.wraps(fit)
    def run(method: Method, federation: Federation) -> Fitted:
        if is_fitting():
            return fit(method, federation)
        federation.evaluation.begin_history()
        federation.channel.round = 0
        federation.channel.load_state_dict([])
        if federation.privacy.protection is not None:
            federation.privacy.protection.begin(method.kinds_under)
        with while_fitting():
            fitted = fit(method, federation)
        if active_meter() is None:  # a plan follows one client for many
            _check_sent(name or type(method).__name__, federation, method)
        return fitted

    run.run = run  # type: ignore[attr-defined]  # a decorator that copies this is no run
    return run


def _check_sent(name: str, federation: Federation, method: Method) -> None:
    """Raises ValueError for a method that has sent what it does not declare, and for a private run
    of which the accountant was not told.
    """
    protection = federation.privacy.protection
    declared = method.sends if protection is None else protection.kinds or frozenset()
    sent = {t.kind for t in federation.channel.ledger if t.direction == "up"}
    if undeclared := sent - declared:
        where = "sends" if protection is None else "protected"
        raise ValueError(
            f"{name} sends {', '.join(sorted(undeclared))} without declaring it in `{where}`"
        )
    if protection is None or protection.plan.mechanism == RELEASED:
        return
    told = {
        client.index
        for client in federation.clients
        if protection.accountant.releases(client.index)
    }
    senders = {t.client for t in federation.channel.ledger if t.direction == "up"}
    silent = {client.index for client in federation.clients if client.size} & senders - told
    if silent or not (told or protection.notes):
        whose = f"what clients {sorted(silent)} send" if silent else "what it returns"
        raise ValueError(
            f"{name} told the accountant nothing of {whose}, so that no epsilon holds; call"
            " federation.privacy.spend"
        )
