"""Snapshots: parts of a round go on from the last whole one."""

import os
import time

import pytest
import torch
from torch import nn

from fedtables.federation.channel import Channel
from fedtables.federation.snapshots import Snapshots
from fedtables.federation.training.plan import TrainingPlan

OPTIMIZERS = {
    "adam of a plan": (
        lambda model: TrainingPlan(9, 1, lr=0.1, weight_decay=0.01).make_optimizer(
            model.parameters(), fused=False
        )
    ),
    "sgd of a plan": (
        lambda model: TrainingPlan(9, 1, 0.1, "sgd", momentum=0.9).make_optimizer(
            model.parameters(), fused=False
        )
    ),
}
SCHEDULES = {
    "cosine of a plan": TrainingPlan(9, 1, lr=0.1, schedule="cosine", final_lr=0.01).make_schedule,
    "constant of a plan": TrainingPlan(9, 1, lr=0.1).make_schedule,
}


def learner(make_optimizer, make_schedule):
    """Parts as a method makes them; convolutions in the layout that training uses."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 3, 2)).to(
        memory_format=torch.channels_last
    )
    optimizer = make_optimizer(model)
    return {"model": model, "optimizer": optimizer, "schedule": make_schedule(optimizer)}


def learn(parts, steps):
    for step in steps:
        images = torch.rand(4, 2, 6, 6, generator=torch.Generator().manual_seed(step)).to(
            memory_format=torch.channels_last
        )
        parts["optimizer"].zero_grad()
        parts["model"](images).square().mean().backward()
        parts["optimizer"].step()
        parts["schedule"].step()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_models_optimisers_and_schedules_go_on_from_a_snapshot_bit_by_bit(
    tmp_path, optimizer, schedule
):
    whole, first, second = (learner(OPTIMIZERS[optimizer], SCHEDULES[schedule]) for _ in range(3))
    learn(whole, range(6))
    learn(first, range(3))
    Snapshots(tmp_path / "running", every=0).offer(3, first)
    assert Snapshots(tmp_path / "running").resume(second) == 3
    learn(second, range(3, 6))
    assert second["schedule"].get_last_lr() == whole["schedule"].get_last_lr()
    expected = whole["model"].state_dict()
    assert all(
        torch.equal(tensor, expected[name]) for name, tensor in second["model"].state_dict().items()
    )


def rounds_of(path, **options):
    return Snapshots(path, **options).resume({"ledger": Channel()})


@pytest.mark.parametrize(
    "content", [None, b"", b"cut", lambda raw: raw[:-1], lambda raw: raw[:-3] + b"xyz"]
)
def test_without_a_whole_snapshot_nothing_is_done_and_nothing_changed(tmp_path, content):
    path, channel = tmp_path / "running", Channel()
    channel.up(0, "labels", {"x": torch.zeros(1)})
    if content is not None:
        Snapshots(path, every=0).offer(1, {"ledger": Channel()})
        path.write_bytes(content(path.read_bytes()) if callable(content) else content)
    assert Snapshots(path).resume({"ledger": channel}) == 0
    assert len(channel.ledger) == 1


def test_the_last_snapshot_is_kept_until_it_is_discarded(tmp_path):
    snapshots = Snapshots(tmp_path / "running", every=0)
    for number in range(1, 4):
        snapshots.offer(number, {"ledger": Channel()})
        assert rounds_of(tmp_path / "running") == number
    for _ in range(2):
        snapshots.discard()
        assert list(tmp_path.iterdir()) == []


def test_the_time_between_snapshots_is_counted_from_the_last_one(tmp_path, monkeypatch):
    clock = iter(
        [0, 59, 60, 60, 100, 119, 120, 120]
    )  # made; offered at 59, 60 (and taken), 100, 119, 120 (and taken)
    monkeypatch.setattr("fedtables.federation.snapshots.time.monotonic", lambda: next(clock))
    snapshots, latest = Snapshots(tmp_path / "running", every=60), []
    for number in range(1, 6):
        snapshots.offer(number, {})
        latest.append(snapshots.resume({}))
    assert latest == [0, 2, 2, 2, 5]


def test_a_fresh_run_takes_no_older_snapshot(tmp_path):
    path, hour_ago = tmp_path / "running", time.time() - 3600
    Snapshots(path, every=0).offer(1, {"ledger": Channel()})
    assert rounds_of(path, newer_than=time.time() - 60) == 1
    os.utime(path, (hour_ago, hour_ago))
    assert rounds_of(path) == 1
    assert rounds_of(path, newer_than=time.time() - 60) == 0
