"""Does a step of the student cost more with more teachers? The same work with 5, 10 and 30 of them,
in turn.

With a fixed public set teachers answer once, so that what a step sees of them is a row of a table:
DLAD and FedKD mix the answers before the first step, FedDF at the start of every round. FedIOD has
no public set: its images are new in every step and every client is asked anew, trains its
discriminator on them and sends gradients back, so that its step grows with the number of clients by
its nature.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from baselines.fedkd import FedKD
from benchmarks.speed.pairs import Timed, compare
from benchmarks.speed.teachers import BATCH, PUBLIC, federation_of, fediod_step
from federation.data import state_of
from federation.federation import Federation
from federation.method import Method
from methods import feddf
from methods.dlad import DLAD
from methods.feddf import FedDF

TEACHERS = (5, 10, 30)
EPOCH = PUBLIC // BATCH
FEDDF_STEPS = 4 * EPOCH
"""Enough that the average of the clients' weights, once a round, hardly counts."""


def _answers(federation: Federation) -> torch.Tensor:
    """Teachers' logits for the public images, (clients, n, classes); any will do."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(
        len(federation.clients), PUBLIC, federation.task.outputs, generator=generator
    )


def _distill(method: Method) -> Callable[[Federation], Callable[[], object]]:
    """A whole fit, of which the time in `distill` counts: teachers are trained and have answered
    beforehand.
    """

    def prepare(federation: Federation) -> Callable[[], object]:
        distill, spent = federation.distill, 0.0

        def timed(*arguments: Any) -> Any:
            nonlocal spent
            started = time.perf_counter()
            student = distill(*arguments)
            spent = time.perf_counter() - started
            return student

        federation.distill = timed  # type: ignore[method-assign]

        def fit() -> Timed:
            method.fit(federation)
            return Timed(spent)

        return fit

    return prepare


def _feddf(federation: Federation) -> Callable[[], object]:
    """The server's half of a round; see the test for how it gets its answers."""
    model = federation.networks.initial()
    start = state_of(model)
    states = [start] * len(federation.clients)
    method = FedDF(
        distillation_steps=FEDDF_STEPS,
        distillation_batch_size=BATCH,
        evaluation_interval=FEDDF_STEPS + 1,
    )
    return lambda: method.aggregate(federation, model, federation.clients, states, 1, {})


CASES = {
    "DLAD": (_distill(DLAD(classifier_epochs=1)), EPOCH),
    "FedKD": (_distill(FedKD()), EPOCH),
    "FedDF": (_feddf, FEDDF_STEPS),
    "FedIOD": (fediod_step, 1),
}
"""What prepares the work of a method, and how many steps it is."""


@pytest.mark.parametrize("name", CASES)
def test_student_steps_by_number_of_teachers(benchmark, monkeypatch, name):
    prepare, steps = CASES[name]
    federations = {clients: federation_of(clients) for clients in TEACHERS}
    # FedDF asks its teachers at the start of every round; it is the steps after it that are
    # measured here.
    answer = _answers(federations[TEACHERS[0]])[0]
    monkeypatch.setattr(feddf, "predict", lambda model, images, normalise: answer)
    compare(
        benchmark,
        {f"{k} teachers": prepare(federation) for k, federation in federations.items()},
        work=steps,
        unit="steps",
    )
