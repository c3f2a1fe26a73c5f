"""What methods share whose messages have a row for every class: tables of rows by class, means over
the clients that hold a class, and a network for every client that learns over rounds.

A table has all rows whatever a client holds, so that its shape tells nothing of the samples.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.training.plan import Penalty


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
        """Raises ValueError for a task without one label per image."""
        task = federation.task
        if task.dense or task.classes is None:
            raise ValueError(
                f"messages per class are of images with one label each, and {task} has others; use"
                " classification"
            )
        self.federation = federation
        self.classes = task.classes
        self.models = [federation.networks.initial(client.network) for client in federation.clients]
        self.able = [client for client in federation.clients if client.size]
        """The clients that hold samples, and take part."""

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

    def checkpoints(self) -> list[Checkpoint]:
        """One per client."""
        return [
            self.federation.networks.checkpoint(model, client.network, f"client-{client.index}")
            for client, model in zip(self.federation.clients, self.models, strict=True)
        ]
