"""FedAvgM taken apart, round by round: a plug-in that shows what the server does with its clients'
average. docs/results/fediod.md runs it and prints what it shows. Samples that are held out
(`partition.validation_share`) are looked at in the place of the test set's.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from fedtables.baselines.fedavgm import FedAvgM
from fedtables.federation.client import Shard
from fedtables.federation.federation import Federation
from fedtables.federation.shared.averaging import average_states
from fedtables.federation.training.inputs import Normalisation, unit_range
from fedtables.federation.watching import is_watched, show
from fedtables.methods.fedavg import Round, State


def read(shard: Shard, model: nn.Module, normalise: Normalisation) -> State:
    """`model`'s state with BatchNorm's statistics of the client's own images."""
    model = copy.deepcopy(model).train()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None
    with torch.no_grad():
        for images in shard.images.split(250):
            model(normalise(unit_range(images)))
    return model.state_dict()


@dataclass(frozen=True)
class FedAvgMByRound(FedAvgM):
    """FedAvgM, which shows its clients, their average and the server's step in every round."""

    title = "FedAvgM, shown by round"

    def aggregate(self, this: Round, states: Iterator[State]) -> None:
        if not is_watched():
            super().aggregate(this, states)
            return
        federation, clients, model = this.federation, this.clients, this.model
        sizes, sent = [client.size for client in clients], list(states)
        average, before = copy.deepcopy(model), flat(model)
        average.load_state_dict(average_states(sent, sizes))
        super().aggregate(this, iter(sent))

        anew = copy.deepcopy(model)
        anew.load_state_dict(
            average_states([c.run(read, model, federation.normalise) for c in clients], sizes)
        )
        update, step = flat(average) - before, flat(model) - before
        shown = {
            "accuracy of the global model": accuracy(federation, model),
            "the same, BatchNorm read anew": accuracy(federation, anew),
            "accuracy of the clients' average": accuracy(federation, average),
            "norm of the average's update": update.norm(),
            "norm of the server's step": step.norm(),
            "cosine of step and update": torch.cosine_similarity(update, step, dim=0),
        }
        alone = copy.deepcopy(model)
        for client, state in zip(clients, sent, strict=True):
            alone.load_state_dict(state)
            name = f"accuracy of client {client.index + 1}"
            shown[name] = accuracy(federation, alone)
        for name, value in shown.items():
            show(name, this.number, value)


def flat(model: nn.Module) -> torch.Tensor:
    """All parameters in a row."""
    return torch.cat([weights.detach().flatten() for weights in model.parameters()])


def accuracy(federation: Federation, model: nn.Module) -> float:
    """In percent, on samples held out if there are any, else on the test set."""
    held = federation.evaluation.validation_set
    look = federation.evaluation.test if held is None else federation.evaluation.validate
    return 100 * look(model)["accuracy"]
