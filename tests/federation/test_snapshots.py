"""Snapshots: what is packed comes back, and parts of a round go on from the newest whole one."""

import json
import os
import time

import pytest
import torch
from torch import nn

from federation.channel import Transfer
from federation.snapshots import Snapshots, pack, unpack
from federation.training.plan import TrainingPlan
from tests.federation.snapshot_files import newest, rounds_on_disk

# -- packing --


def there_and_back(value):
    tensors = {}
    packed = json.loads(json.dumps(pack(value, tensors)))
    return unpack(packed, tensors)


def test_nested_values_come_back_through_json_with_whole_number_keys():
    value = {"a": 1, 3: [True, None, "x"], "deep": {0: {"lr": 0.1, "none": {}}, 1: []}}
    back = there_and_back(value)
    assert back == value
    assert list(back) == ["a", 3, "deep"]
    assert list(back["deep"]) == [0, 1]


def test_tensors_are_kept_apart_and_come_back_in_place():
    tensors = {}
    packed = pack(
        {"w": torch.tensor([1.5]), "state": {0: {"m": torch.tensor([2, 3]), "step": 4}}}, tensors
    )
    assert [tensor.tolist() for tensor in tensors.values()] == [[1.5], [2, 3]]
    back = unpack(json.loads(json.dumps(packed)), tensors)
    assert (back["w"].tolist(), back["state"][0]["m"].tolist(), back["state"][0]["step"]) == (
        [1.5],
        [2, 3],
        4,
    )


def test_a_dictionary_that_looks_like_a_packed_value_is_still_a_dictionary():
    value = {"tensor": "0", "value": {"items": []}, "list": [{"value": 1}]}
    assert there_and_back(value) == value


# -- parts of a round --

OPTIMIZERS = {
    "adam": lambda model: torch.optim.Adam(model.parameters(), lr=0.1, betas=(0.5, 0.9)),
    "sgd with momentum": lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
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
    "cosine": lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 9, 0.01),
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
    Snapshots(tmp_path / "running", every=0).offer(
        3, first, {"accuracy": [0.1, 0.2]}, [Transfer(1, "up", "logits", 0, 7, 2)]
    )
    done, history, ledger = Snapshots(tmp_path / "running").resume(second)
    assert (done, history, ledger) == (
        3,
        {"accuracy": [0.1, 0.2]},
        [Transfer(1, "up", "logits", 0, 7, 2)],
    )
    learn(second, range(3, 6))
    assert second["schedule"].get_last_lr() == whole["schedule"].get_last_lr()
    expected = whole["model"].state_dict()
    assert all(
        torch.equal(tensor, expected[name]) for name, tensor in second["model"].state_dict().items()
    )


def test_without_a_snapshot_nothing_is_done_and_nothing_changed(tmp_path):
    parts = learner(OPTIMIZERS["adam"], SCHEDULES["cosine"])
    before = {name: tensor.clone() for name, tensor in parts["model"].state_dict().items()}
    assert Snapshots(tmp_path / "running").resume(parts) == (0, {}, [])
    assert all(
        torch.equal(tensor, before[name]) for name, tensor in parts["model"].state_dict().items()
    )


def test_the_last_two_snapshots_are_kept_and_no_more(tmp_path):
    snapshots = Snapshots(tmp_path / "running", every=0)
    kept = []
    for number in range(1, 5):
        snapshots.offer(number, {}, {}, [])
        kept.append(rounds_on_disk(tmp_path))
    assert kept == [[1], [1, 2], [2, 3], [3, 4]]
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("suffix", ["json", "safetensors"])
def test_when_the_newest_snapshot_is_not_whole_the_one_before_is_taken_and_outlives_the_next(
    tmp_path, suffix
):
    parts = learner(OPTIMIZERS["adam"], SCHEDULES["cosine"])
    first = Snapshots(tmp_path / "running", every=0)
    for number in (1, 2, 3):
        first.offer(number, parts, {"accuracy": [0.1] * number}, [])
    newest(tmp_path, suffix).write_bytes(b"cut")
    again = Snapshots(tmp_path / "running", every=0)
    assert again.resume(parts)[:2] == (2, {"accuracy": [0.1, 0.1]})
    again.offer(3, parts, {}, [])
    assert rounds_on_disk(tmp_path) == [2, 3]  # the damaged one was written over
    newest(tmp_path, suffix).unlink()
    assert Snapshots(tmp_path / "running").resume(parts)[0] == 2


def test_the_time_between_snapshots_is_counted_from_the_last_one(tmp_path, monkeypatch):
    clock = iter(
        [0, 59, 60, 60, 100, 119, 120, 120]
    )  # made; offered at 59, 60 (and taken), 100, 119, 120 (and taken)
    monkeypatch.setattr("federation.snapshots.time.monotonic", lambda: next(clock))
    snapshots, latest = Snapshots(tmp_path / "running", every=60), []
    for number in range(1, 6):
        snapshots.offer(number, {}, {}, [])
        latest.append(snapshots.resume({})[0])
    assert latest == [0, 2, 2, 2, 5]


def test_a_discarded_snapshot_is_gone_and_may_be_discarded_again(tmp_path):
    parts = learner(OPTIMIZERS["adam"], SCHEDULES["cosine"])
    snapshots = Snapshots(tmp_path / "running", every=0)
    for number in (1, 2):
        snapshots.offer(number, parts, {}, [])
    assert len(list(tmp_path.iterdir())) == 4
    for _ in range(2):
        snapshots.discard()
        assert list(tmp_path.iterdir()) == []


def test_a_fresh_run_takes_no_older_snapshot(tmp_path):
    parts = learner(OPTIMIZERS["adam"], SCHEDULES["cosine"])
    snapshots = Snapshots(tmp_path / "running", every=0)
    snapshots.offer(1, parts, {}, [])
    snapshots.offer(2, parts, {}, [])
    hour_ago, minute_ago = time.time() - 3600, time.time() - 60
    os.utime(newest(tmp_path, "json"), (hour_ago, hour_ago))
    assert Snapshots(tmp_path / "running").resume(parts)[0] == 2
    assert Snapshots(tmp_path / "running", newer_than=minute_ago).resume(parts)[0] == 1
    for path in tmp_path.glob("running-?.json"):
        os.utime(path, (hour_ago, hour_ago))
    assert Snapshots(tmp_path / "running").resume(parts)[0] == 2
    assert Snapshots(tmp_path / "running", newer_than=minute_ago).resume(parts)[0] == 0
