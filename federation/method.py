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

    A file in `methods/` or `baselines/`, or a `--plugin`, has exactly one subclass. The method has
    the file's name, with hyphens for underscores.
    """

    title: ClassVar[str] = ""
    """Title of its row in tables; empty: the file's name."""
    sends: ClassVar[frozenset[str]] = frozenset()
    """Kinds of messages that leave a client. The contract compares them with the ledger."""
    protected: ClassVar[Mapping[str, frozenset[str]]] = {}
    """Kinds of messages that leave a client under each privacy mechanism. Each is noisy, or
    computed from noisy values; only `released` gives no guarantee. Other mechanisms are refused.
    Derived classes do not inherit it."""
    oracle: ClassVar[frozenset[str]] = frozenset()
    """Knowledge that no real server has, for upper bounds: `public-labels`, `private-samples`.
    Tables mark such rows with †."""
    dense: ClassVar[bool] = False
    """Whether it makes images of label maps. Then it learns only tasks with a class for every
    pixel."""
    reconstructs: ClassVar[bool] = False
    """Whether it only reconstructs undersampled images."""

    privacy: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": {"mechanism": DP_SGD}}
    """Default settings `privacy.*` of a private run, by protocol. A protocol without an entry takes
    those of `paper`."""

    quick: ClassVar[Mapping[str, Any]] = {}
    """Field values with which it learns something in seconds, on the contract's small federation.
    Settings of plans, such as `local.optimizer`, may be added."""

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
        """Run the method.

        It begins with an empty ledger and history. Test data are closed while it runs.

        Args:
            federation: clients, server data and channel.

        Returns:
            One global model, as a module or a checkpoint, or one checkpoint per client.

        Raises:
            AccessError: it reads what no method may see.
            ValueError: it sends what it does not declare. In a private run also: it has no private
                form, it tells the accountant nothing, or the federation was fitted before.
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
