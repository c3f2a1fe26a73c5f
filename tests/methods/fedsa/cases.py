"""FedSA as released, and with scores and draws that are given."""

from dataclasses import dataclass

import torch

from fedtables.methods.fedsa import FedSA
from tests.methods.private_servers import quick

RELEASED = {
    "transferability": "released",
    "saliency": "grad-cam",
    "retrain": False,
    "adaptation": "all",
}


@dataclass(frozen=True)
class Told(FedSA):
    """Scores and draws are given; scores depend on nothing."""

    given: tuple[float, ...] = (0.4, 0.2, 0.3)
    drawn: tuple[int, ...] = ()

    def scores(self, own, target, samples):
        return torch.tensor(self.given)

    def draw(self, federation, scores, number):
        return list(self.drawn) or super().draw(federation, scores, number)


def told(**changes):
    return quick(Told, **changes)
