"""What a run exchanges, at what cost to privacy, and what it takes of clients, server and network:
read off its ledger, its method and what its fit looks at. FedAD's Tables 4 and 5, and the league.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fedtables.benchmarks.measures import final
from fedtables.benchmarks.tables.measure import FittedCell, Measure, Taken, counted, mean_of_numbers
from fedtables.metrics.names import (
    BANDWIDTH,
    CLIENT_FLOPS,
    CORRUPTED,
    MEGABYTES_DOWN,
    MEGABYTES_UP,
    MEMORY,
    PROPERTY,
    ROUNDS,
    SERVER_FLOPS,
    WEAKEST,
)
from fedtables.results.arrays import pack
from fedtables.results.record import Measurement

if TYPE_CHECKING:
    import torch

    from fedtables.federation.channel import Transfer
    from fedtables.federation.costs import Meter
    from fedtables.federation.data import Checkpoint, PublicData
    from fedtables.federation.federation import Federation
    from fedtables.federation.method import Method


WEIGHTS = frozenset({"parameters", "gradients"})
ANSWERS = frozenset({"logits", "attention", "votes", "labels"})
"""Kinds of payload that tell of a client's data only what its network answers, and how many labels
of a class it has."""


class Exchange(Measure):
    """The numbers of `final`, and under the column key `property` whether each property holds;
    only the numbers of a method with an oracle, which exchanges what no real client would. Of what
    is exchanged the table may ask for `bandwidth-gb`, `privacy-cost` and `privacy-NAME` of the
    budgets that a method declares.
    """

    def take(self, run: FittedCell) -> Taken:
        learnt = tuple(
            name for name in run.metrics if name != BANDWIDTH and not name.startswith("privacy-")
        )
        numbers = final.Final().take(replace(run, metrics=learnt))
        if run.method.oracle:
            return numbers
        ledger = run.federation.channel.ledger
        spent = costs(ledger, run.method.declared_budgets)
        _, public = followed(run.method, run.on_meta({}))
        held = properties(ledger, public)
        asked = (Measurement(name, spent[name]) for name in run.metrics if name in spent)
        return Taken((*numbers.measurements, *asked, *measurements(held)), numbers.statistic)


class _Watched:
    """Public data that know whether anyone has looked at the images."""

    def __init__(self, public: PublicData):
        self._public = public
        self.seen = False

    def __len__(self) -> int:
        return len(self._public)

    def __getattr__(self, name: str) -> Any:
        self.seen |= name == "images"
        return getattr(self._public, name)


def followed(method: Method, federation: Federation) -> tuple[Meter, bool]:
    """What a fit takes, and whether it looks at the public images: followed again on the `meta`
    device, where `federation` is, since the ledger does not know it and the fit may come from the
    cache.
    """
    from fedtables.federation.costs import Meter, metering

    watched = _Watched(federation.public)
    federation.public = cast("PublicData", watched)
    with metering(Meter()) as meter:
        method.fit(federation)
    return meter, watched.seen


def costs(ledger: Sequence[Transfer], budgets: Mapping[str, float]) -> dict[str, float]:
    """What a whole run's exchange costs, by metric: GB of all clients, both ways, and either the
    budgets that its method declares or, in one number, what the paper counts: infinite where
    anything but answers leaves a client, else 0. Nothing where nothing crosses.
    """
    if not ledger:
        return {}
    spent = {BANDWIDTH: sum(transfer.bytes for transfer in ledger) / 1e9}
    if budgets:
        return spent | {f"privacy-{name}": value for name, value in budgets.items()}
    up = {transfer.kind for transfer in ledger if transfer.direction == "up"}
    return spent | {"privacy-cost": 0.0 if up <= ANSWERS else math.inf}


def properties(ledger: Sequence[Transfer], public: bool) -> dict[str, bool]:
    """Each property by name, from a whole run's ledger and whether its fit looks at the public
    images; `fedtables.reports.measures.exchange` says what each means.
    """
    down = {transfer.kind for transfer in ledger if transfer.direction == "down"}
    # The ledger has an entry per round.
    rounds = Counter((sent.client, sent.kind) for sent in ledger if sent.direction == "up")
    up = {kind for _, kind in rounds}
    return {
        "distillation": public,
        "param-transfer": not WEIGHTS.isdisjoint(up | down),
        "privacy": up <= ANSWERS,
        "asynchronous": not down and max(rounds.values(), default=0) <= 1,
    }


def measurements(property_values: Mapping[str, bool]) -> tuple[Measurement, ...]:
    """Properties as texts of a table."""
    return tuple(
        Measurement(PROPERTY, "yes" if holds else "no", f"property={name}")
        for name, holds in property_values.items()
    )


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
        from fedtables.metrics.settling import epochs_to_end

        numbers = final.Final().take(replace(run, metrics=(ACCURACY,)))
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
        counts = {WEAKEST: counted(WEAKEST, values[WEAKEST], [clients])}
        asked = (
            counts.get(name) or Measurement(name, values[name])
            for name in run.metrics
            if name in values
        )
        held = {**properties(ledger, public), "networks-differ": networks_may_differ(run)}
        return Taken(
            (*numbers.measurements, *asked, *measurements(held)),
            numbers.statistic,
            pack({ACCURACY: history, "bytes": np.array(final.crossed(ledger, len(history)))}),
        )


def networks_may_differ(run: FittedCell) -> bool:
    """Whether the method's fit goes through, followed with clients of two kinds of network: not if
    it refuses them (HeterogeneousClientsError), or if states or tensors of two shapes meet in it
    (ValueError, RuntimeError). Raises whatever else the fit raises then.
    """
    from fedtables.federation.inside.networks import HeterogeneousClientsError

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
    from fedtables.metrics.classification import accuracy_by_class, weighted_by_labels

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
    from fedtables.datasets.corruptions import CORRUPTIONS

    test = federation.evaluation.test_set
    shares = []
    for corrupt in CORRUPTIONS.values():
        images = corrupt(test.images)
        for model in models:
            right = _classes(federation, model, images) == test.targets
            shares.append(float(right.double().mean()))
    return float(np.mean(shares))


def _classes(federation: Federation, model: Checkpoint, images: torch.Tensor) -> torch.Tensor:
    """The class (n,) that a model sees in each image, on their device; -1 where a score is not a
    number.
    """
    from fedtables.federation.training.loops import predict
    from fedtables.metrics.running import unknown

    module = federation.networks.module(model)
    scores = predict(module, images, normalise=federation.normalise)
    return scores.argmax(dim=1).masked_fill(unknown(scores), -1).to(images.device)


MEASURES = {"exchange": Exchange(), "scorecard": Scorecard()}
