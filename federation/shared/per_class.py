"""What methods share whose messages have a row for every class: tables of rows by class, means over
the clients that hold a class, and a network for every client that learns over rounds.

A table has all rows whatever a client holds, so that its shape tells nothing of the samples.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from fedtables.federation.data import Checkpoint, state_of
from fedtables.federation.federation import Federation
from fedtables.federation.tasks.base import check_single_label
from fedtables.federation.training.plan import Penalty
from fedtables.models.catalogue import find_head
from fedtables.models.entry import ModelError


class ClassTable(nn.Module):
    """A row of values (classes, width) and a count (classes,) for every class, 0 at first."""

    rows: torch.Tensor
    counts: torch.Tensor

    def __init__(self, classes: int, width: int):
        super().__init__()
        self.register_buffer("rows", torch.zeros(classes, width))
        self.register_buffer("counts", torch.zeros(classes))

    @torch.no_grad()
    def add(self, values: torch.Tensor, labels: torch.Tensor) -> None:
        """Add values (n, width) to the rows of their labels (n,), and count them.

        In place, so that a step which CUDA graphs hold may do it; in an order that CUDA repeats.
        """
        of_class = labels[:, None] == torch.arange(len(self.rows), device=labels.device)
        self.rows += of_class.to(values).T @ values
        self.counts += of_class.sum(dim=0)

    def means(self) -> torch.Tensor:
        """Rows by their counts, (classes, width); 0 for a class without any."""
        return self.rows / self.counts.clamp(min=1)[:, None]


def shares_of_holders(counts: torch.Tensor) -> torch.Tensor:
    """Each client's share of all samples of a class, (clients, classes), by their whole number;
    0 for a class that nobody holds.
    """
    return counts / counts.sum(dim=0).clamp(min=1)


def mean_over_holders(rows: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """The mean over clients of their rows (clients, classes, width), weighted per class by whole
    numbers (clients, classes); 0 for a class that nobody holds.
    """
    return (shares_of_holders(counts)[..., None] * rows).sum(dim=0)


class OwnNetworks:
    """A network for every client, which stays with it over rounds."""

    def __init__(self, federation: Federation):
        """Raises ValueError for a task without one class per image."""
        check_single_label(federation.task)
        self.federation = federation
        self.classes = federation.task.outputs
        self.models = [federation.networks.initial(client.network) for client in federation.clients]
        self.able = [client for client in federation.clients if client.size]
        """The clients that hold samples, and take part."""

    @property
    def feature_width(self) -> int:
        """How many values the last linear layers of those that are able take. Raises ModelError if
        they take different numbers, or for one without a bias.
        """
        heads = {c.network: find_head(self.models[c.index])[1] for c in self.able}
        widths = {head.in_features for head in heads.values()}
        if len(widths) != 1 or any(head.bias is None for head in heads.values()):
            found = ", ".join(f"{head.in_features} of {name}" for name, head in heads.items())
            raise ModelError(
                "this method averages features, so the last layers of all clients' networks must"
                f" take as many values, and have a bias; here they take {found}"
            )
        return widths.pop()

    def table(self, width: int) -> ClassTable:
        """A new table for a client."""
        return self.federation.networks.new_module(lambda: ClassTable(self.classes, width))

    def parts(self, tables: Sequence[ClassTable]) -> dict[str, Any]:
        """What a snapshot keeps, with the tables of the clients that are able."""
        own = {f"client-{index}": model for index, model in enumerate(self.models)}
        return own | {
            f"table-{client.index}": t for client, t in zip(self.able, tables, strict=True)
        }

    def train(self, number: int, penalties: Sequence[Penalty]) -> None:
        """Local epochs of round `number`, for each client that is able with its penalty."""
        federation, together = self.federation, self.federation.networks.execution.stacked
        for start in range(0, len(self.able), together):
            some = slice(start, start + together)
            federation.train_on_clients(
                [(client, self.models[client.index]) for client in self.able[some]],
                federation.local,
                "round",
                number,
                penalties=penalties[some],
            )

    @contextlib.contextmanager
    def with_heads(self, layers: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Iterator[None]:
        """Inside, the last linear layers of those that are able have these weights and biases; as
        they are if there are none.
        """
        heads = [find_head(self.models[client.index])[1] for client in self.able]
        before = [state_of(head) for head in heads]
        for head, (weight, bias) in zip(heads, layers, strict=bool(layers)):
            head.load_state_dict({"weight": weight, "bias": bias})
        yield
        for head, state in zip(heads, before, strict=True):
            head.load_state_dict(state)

    def track(self) -> None:
        """Note the test metrics of all that are able, at the end of a round."""
        for client in self.able:
            self.federation.evaluation.track(self.models[client.index], f"client-{client.index}")

    def checkpoints(self) -> list[Checkpoint]:
        """One per client, in order."""
        return [
            self.federation.networks.checkpoint(model, client.network, f"client-{client.index}")
            for client, model in zip(self.federation.clients, self.models, strict=True)
        ]
