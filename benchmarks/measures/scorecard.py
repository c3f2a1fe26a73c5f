"""What a user chooses a method by, beside its accuracy: that of its weakest clients and that on
corrupted images, and what a run takes of clients, server and network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.measures import final
from benchmarks.measures.exchange import followed, measurements, properties
from benchmarks.tables.measure import FittedCell, Measure, Taken, counted, mean_of_numbers
from metrics.names import (
    CLIENT_FLOPS,
    CORRUPTED,
    MEGABYTES_DOWN,
    MEGABYTES_UP,
    MEMORY,
    ROUNDS,
    SERVER_FLOPS,
    WEAKEST,
)
from results.arrays import pack
from results.record import Measurement

if TYPE_CHECKING:
    import torch

    from federation.channel import Transfer
    from federation.data import Checkpoint
    from federation.federation import Federation

ACCURACY = "accuracy"
PERCENTILE = 10
"""The clients that are the weakest."""
MIXED = {"network.client": "cnn-small+resnet8-narrow"}
"""Clients' networks of two kinds."""
WITHIN = 0.01
"""Of the accuracy at the end, which is reached where it stays as near as that."""


class Scorecard(Measure):
    """The accuracy of `final` and, of the other metrics, those that the table asks for; under the
    column key `property` what the run needs and exchanges. Its history goes with the record:
    accuracy and bytes after every epoch or round.
    """

    numbers = True
    every_epoch = True

    def take(self, run: FittedCell) -> Taken:
        from metrics.settling import epochs_to_end

        numbers = final.MEASURE.take(replace(run, metrics=(ACCURACY,)))
        federation, ledger = run.federation, run.federation.channel.ledger
        history = mean_of_numbers([model.history[ACCURACY] for model in run.models])
        meter, public = followed(run.method, run.on_meta({}))
        work = meter.work
        of_clients, clients = weakest(federation, run.models)
        values = {
            WEAKEST: run.percent * of_clients,
            CORRUPTED: run.percent * corrupted(federation, run.models),
            ROUNDS: float(epochs_to_end(history.tolist(), WITHIN)),
            MEGABYTES_UP: federation.channel.total("up") / 1e6,
            MEGABYTES_DOWN: federation.channel.total("down") / 1e6,
            CLIENT_FLOPS: work.client_flops / 1e12,
            SERVER_FLOPS: (work.flops - work.client_flops - work.look_flops) / 1e12,
            MEMORY: meter.peak_bytes / 1e6,
        }
        asked = [
            counted(name, values[name], [clients])
            if name == WEAKEST
            else Measurement(name, values[name])
            for name in run.metrics
            if name in values
        ]
        held = {**properties(ledger, public), "networks-differ": networks_may_differ(run)}
        return Taken(
            (*numbers.measurements, *asked, *measurements(held)),
            numbers.statistic,
            pack({ACCURACY: history, "bytes": sent_by(ledger, len(history))}),
        )


def networks_may_differ(run: FittedCell) -> bool:
    """Whether the method's fit goes through, followed with clients of two kinds of network: not if
    it refuses them (HeterogeneousClientsError), or if states or tensors of two shapes meet in it
    (ValueError, RuntimeError). Raises whatever else the fit raises then.
    """
    from federation.inside.networks import HeterogeneousClientsError

    try:
        followed(run.method, run.on_meta(MIXED))
    except (HeterogeneousClientsError, ValueError, RuntimeError):
        return False
    return True


def weakest(federation: Federation, models: Sequence[Checkpoint]) -> tuple[float, tuple[int, int]]:
    """Of the accuracies of clients, each on its own label distribution, the tenth percentile: of a
    client's own model if it has one, else of the global one, which is the only one. And of how many
    of the clients that hold samples: of no class of the others is there a test image.
    """
    from metrics.classification import accuracy_by_class, weighted_by_labels

    test = federation.evaluation.test_set
    by_owner = {
        model.owner: accuracy_by_class(
            _classes(federation, model, test.images), test.targets, federation.task.outputs
        )
        for model in models
    }
    accuracies = [
        weighted_by_labels(
            by_owner.get(f"client-{client.index}", by_owner[models[0].owner]), client.label_counts
        )
        for client in federation.clients
        if client.size
    ]
    known = [value for value in accuracies if not math.isnan(value)]
    value = float(np.percentile(known, PERCENTILE)) if known else math.nan
    return value, (len(known), len(accuracies))


def corrupted(federation: Federation, models: Sequence[Checkpoint]) -> float:
    """Accuracy on test images under each corruption, mean over these and over models."""
    from datasets.corruptions import CORRUPTIONS

    test = federation.evaluation.test_set
    shares = []
    for corrupt in CORRUPTIONS.values():
        images = corrupt(test.images)
        for model in models:
            right = _classes(federation, model, images) == test.targets
            shares.append(float(right.double().mean()))
    return float(np.mean(shares))


def sent_by(ledger: Sequence[Transfer], epochs: int) -> np.ndarray:
    """Bytes both ways until the end of each of `epochs` epochs or rounds, (epochs,).

    Where a run has as many rounds as its history has entries, these are rounds, and what crossed
    before the first counts with it; else all has crossed before the first, as in one-shot methods.
    """
    rounds = max((transfer.round for transfer in ledger), default=0)
    if rounds != epochs:
        return np.full(epochs, sum(transfer.bytes for transfer in ledger))
    by_round = np.zeros(epochs, dtype=np.int64)
    for transfer in ledger:
        by_round[max(0, transfer.round - 1)] += transfer.bytes
    return by_round.cumsum()


def _classes(federation: Federation, model: Checkpoint, images: torch.Tensor) -> torch.Tensor:
    """The class (n,) that a model sees in each image; -1 where a score is not a number."""
    from federation.training.loops import predict
    from metrics.running import unknown

    module = federation.networks.module(model)
    scores = predict(module, images, normalise=federation.normalise)
    return scores.argmax(dim=1).masked_fill(unknown(scores), -1)


MEASURE = Scorecard()
