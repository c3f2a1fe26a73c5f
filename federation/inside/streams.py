"""Random streams by name, so that none depends on the order of calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

from federation.client import Client
from federation.inside.setup import Setup
from federation.seeds import Stream


class Streams:
    """Streams of the run's seeds. While planning they draw shapes, but participants all the
    same.
    """

    def __init__(self, setup: Setup):
        self._setup = setup
        self.seeds = setup.seeds

    def shuffling(self, *names: object) -> Stream:
        """The stream `names` of the shuffling axis."""
        if self._setup.planned:
            return Stream(None, self._setup.device)
        device = self._setup.device
        return Stream(self.seeds.torch("shuffling", *names, device=device), device)

    def participants(self, number: int, share: float) -> list[Client]:
        """The clients of round `number`: round(share x clients), at least one, drawn without
        replacement.

        Drawn from the sampling axis among the clients that hold samples. Raises ValueError for a
        share outside (0, 1].
        """
        if not 0 < share <= 1:
            raise ValueError(
                f"the share of participating clients must be above 0 and at most 1, not {share}"
            )
        clients = self._setup.clients
        able = [client for client in clients if client.size]
        count = min(len(able), max(1, round(share * len(clients))))
        chosen = self.seeds.numpy("sampling", "round", number).choice(
            len(able), count, replace=False
        )
        return [able[position] for position in sorted(chosen)]

    def draw(
        self,
        population: int,
        size: int,
        *names: object,
        probabilities: npt.NDArray[np.float64] | None = None,
        replace: bool = False,
    ) -> list[int]:
        """`size` indices below `population` from the stream `names` of the sampling axis; uniform
        if there are no `probabilities`. While planning different ones, the most that it can cost.
        """
        if self._setup.planned:
            return list(range(min(size, population)))
        rng = self.seeds.numpy("sampling", *names)
        return rng.choice(population, size, replace=replace, p=probabilities).tolist()

    @contextlib.contextmanager
    def dropout(self, *names: object) -> Iterator[None]:
        """Inside, what draws without a generator (dropout) draws from a stream of its own."""
        kind, index = self._setup.device.type, self._setup.device.index or 0
        if self._setup.planned:
            yield
            return
        seed = self.seeds.number("shuffling", "dropout", *names)
        # Not torch.manual_seed: without a GPU it keeps a traceback of every call, for the day that
        # there is one.
        with torch.random.fork_rng([index] if kind == "cuda" else []):
            torch.default_generator.manual_seed(seed)
            if kind == "cuda":
                with torch.cuda.device(index):
                    torch.cuda.manual_seed(seed)
            elif kind == "mps":
                torch.mps.manual_seed(seed)
            yield
