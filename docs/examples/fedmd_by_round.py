"""FedMD taken apart, round by round: a plug-in that shows what its clients and their consensus are
before each digest. docs/results/fedad.md runs it and prints what it shows.
"""

from dataclasses import dataclass

import torch
from torch import nn

from fedtables.federation.client import Client
from fedtables.federation.federation import Federation
from fedtables.federation.watching import is_watched, show
from fedtables.methods.fedmd import FedMD


class Contrast(nn.Module):
    """Answers every finding with the image's standard deviation over its pixels."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.zero = nn.Parameter(torch.zeros(outputs))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.zero + images.flatten(1).std(dim=1, keepdim=True)


@dataclass(frozen=True)
class FedMDByRound(FedMD):
    """FedMD, which shows its clients and its consensus in every round."""

    title = "FedMD, shown by round"

    def agree(
        self,
        federation: Federation,
        clients: list[Client],
        models: dict[int, nn.Module],
        images: torch.Tensor,
    ) -> torch.Tensor:
        consensus = super().agree(federation, clients, models, images)
        if is_watched():
            shown = {f"client {client.index + 1}": models[client.index] for client in clients}
            shown["contrast alone"] = Contrast(consensus.shape[1])
            for name, model in shown.items():
                for metric, value in federation.evaluation.test(model).items():
                    show(f"{metric} of {name}", federation.channel.round, 100 * value)
            centred = consensus - consensus.mean(dim=0)
            variances = torch.linalg.svdvals(centred).square()
            contrast = images.float().flatten(1).std(dim=1)
            with_it = torch.corrcoef(torch.column_stack([contrast, consensus]).T)[0, 1:]
            found = {
                "variance of the consensus": centred.square().mean(),
                "of it in one direction (%)": 100 * variances[0] / variances.sum(),
                "correlation with contrast": with_it.abs().mean(),
            }
            for name, value in found.items():
                show(name, federation.channel.round, value)
        return consensus
