"""What a run shows while it goes on, and that nobody's watching changes a number."""

import pytest
import torch

from fedtables.federation.costs import Meter, metering
from fedtables.federation.fitting import fit
from fedtables.federation.samples import on_client
from fedtables.federation.watching import (
    Point,
    begin_round,
    is_watched,
    show,
    show_epoch,
    trained,
    watched,
)
from fedtables.methods.fedavg import FedAvg
from fedtables.methods.fedmd import FedMD
from tests.federation.tiny import make_federation

METHOD = FedAvg(rounds=2, participation=1.0)


def shown_by(method, **changes):
    """Points of a fit by series: (step, value), and its checkpoint."""
    points: list[Point] = []
    with watched(points.append):
        [checkpoint] = fit(make_federation(**changes), method)
    series = dict.fromkeys(point.series for point in points)
    return {s: [(p.step, p.value) for p in points if p.series == s] for s in series}, checkpoint


def test_epochs_are_counted_through_rounds_and_named_by_place():
    points: list[Point] = []
    with watched(points.append):
        show("bytes/up", 1, torch.tensor(12))
        begin_round(3)
        show_epoch("loss", 2, 5, 0.25)  # twice five epochs, and two
        with on_client(3), trained("client", 3, "round", 3, "revisit"):
            show_epoch("loss", 1, 2, 0.5)
        with trained("server"):
            show_epoch("accuracy", 1, 1, 1)
    assert points == [
        Point("bytes/up", 1, 12.0),
        Point("loss/server", 12, 0.25),
        Point("loss/client 4 revisit", 5, 0.5),
        Point("accuracy/server", 3, 1.0),
    ]


def test_nothing_is_read_that_nobody_watches():
    class Unread:
        def __float__(self) -> float:
            raise AssertionError

    show("loss/server", 1, Unread())
    with watched(None):
        show_epoch("loss", 1, 1, Unread())


def test_what_a_plan_only_follows_is_not_shown():
    points: list[Point] = []
    with watched(points.append), metering(Meter()):
        show("loss/server", 1, torch.empty((), device="meta"))
        show_epoch("loss", 1, 1, torch.empty((), device="meta"))
        assert not is_watched()
    assert points == []


def test_a_fit_shows_losses_metrics_and_bytes_of_every_round():
    shown, checkpoint = shown_by(METHOD)
    # Two rounds of three epochs on two clients.
    for client in (1, 2):
        steps, losses = zip(*shown[f"loss/client {client}"], strict=True)
        assert steps == (1, 2, 3, 4, 5, 6)
        assert all(loss > 0 for loss in losses)
    history = checkpoint.history["accuracy"]
    assert shown["accuracy/global model"] == list(enumerate(history, start=1))
    (_, first), (_, second) = shown["bytes/up"]
    assert second == 2 * first > 0
    assert shown["bytes/down"] == shown["bytes/up"]
    assert "epsilon" not in shown


@pytest.mark.parametrize("method", [METHOD, FedMD(rounds=1, public_samples=6)])
def test_watching_changes_no_weight(method):
    _, seen = shown_by(method)
    [unseen] = fit(make_federation(), method)
    assert all(torch.equal(seen.state[name], unseen.state[name]) for name in unseen.state)
