"""Steps of one-shot FedAD's student: with 3 and with 12 clients, whose answers are put together
once; and what bounds cost.

So too what it costs to leave models out of a step. Local models hardly learn anything here; that
has no effect on the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.scenarios.assembly import Run, build_federation
from benchmarks.scenarios.configuration import Configuration
from benchmarks.scenarios.scenario import DataSets
from benchmarks.speed.pairs import Timed, compare
from benchmarks.speed.test_distillation import CONFIG, EPOCH
from datasets import catalogue
from federation.cache import StageCache
from federation.federation import Federation
from federation.seeds import Seeds
from methods.fedad import FedAD

CLIENTS = (3, 12)
WAYS = {
    "logits alone": FedAD(one_shot=True, bounds=False),
    "bounds, weights held fixed": FedAD(one_shot=True, second_order=False),
    "bounds": FedAD(one_shot=True),
    "bounds, one model left out": FedAD(one_shot=True, dropped=1),
}


def _federation(clients: int) -> Federation:
    partition = {
        "partition.kind": "dirichlet-fedkd",
        "partition.alpha": 10.0,
        "partition.clients": clients,
        "partition.pool_limit": 480,
    }
    return build_federation(
        Configuration.parse({**CONFIG, **partition}),
        DataSets(catalogue.resolve("shapes")),
        FedAD,
        Run(Seeds(), StageCache(None)),
    )


def student_epoch(federation: Federation, method: FedAD) -> Callable[[], Timed]:
    """A fit of one epoch, of which the student's training counts: local models are trained, and
    answer, beforehand.
    """
    federation.local_models()
    train, spent = federation.train, 0.0

    def timed(*arguments: Any, **options: Any) -> Any:
        nonlocal spent
        started = time.perf_counter()
        history = train(*arguments, **options)
        spent = time.perf_counter() - started
        return history

    def fit() -> Timed:
        federation.train = timed  # type: ignore[method-assign]
        method.fit(federation)
        federation.train = train  # type: ignore[method-assign]
        return Timed(spent)

    return fit


def test_student_steps_by_number_of_clients(benchmark):
    ways = {
        f"{clients} clients": student_epoch(_federation(clients), FedAD(one_shot=True))
        for clients in CLIENTS
    }
    compare(benchmark, ways, work=EPOCH, unit="steps")


def test_student_steps_with_and_without_attention(benchmark):
    federation = _federation(3)
    compare(
        benchmark,
        {name: student_epoch(federation, method) for name, method in WAYS.items()},
        work=EPOCH,
        unit="steps",
    )
