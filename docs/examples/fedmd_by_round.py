"""FedMD taken apart, round by round: a plug-in that shows what its clients and their consensus are
before each digest, and what prints it. Of FedAD's Table 4, where FedMD is below chance:

PYTHONPATH=. python docs/examples/fedmd_by_round.py [PROFILE [FOLDER [SEED ...]]]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pandas as pd
import torch
from torch import nn

import benchmarks
from federation.client import Client
from federation.federation import Federation
from federation.watching import is_watched, show
from methods.fedmd import FedMD


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


if __name__ == "__main__":
    profile, folder, *seeds = [*sys.argv[1:], *("smoke", "runs")[len(sys.argv) - 1 :]]
    points: list[tuple[str, str, int, float]] = []
    benchmarks.reproduce(
        "fedad/table4",
        profile=profile,
        methods="+fedmd-by-round",
        only={"row": "fedmd-by-round"},
        plugins=[__file__],
        seeds=[int(seed) for seed in seeds] or [0],
        precision="bf16" if profile == "cpu" else "",
        results=folder,
        fresh=True,
        quiet=True,
        log=lambda *point: points.append(point),
    )
    frame = pd.DataFrame(points, columns=["cell", "series", "round", "value"])
    frame = frame[frame["series"].str.contains(" of | in | with ")]
    for cell, of_cell in frame.groupby("cell"):
        print(cell)
        print(of_cell.pivot_table(index="series", columns="round", values="value").round(2))
