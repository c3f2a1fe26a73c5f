"""Snapshots between rounds: an interrupted fit goes on and ends as if nothing had happened, to the
last bit.
"""

import functools
import json
import os
import time
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from baselines.fedavgm import FedAvgM
from baselines.fedgen import FedGEN
from baselines.fedkd import FedKD
from federation import fitting
from federation.caching.cache import StageCache, content_digest, read_stage
from federation.caching.snapshots import Snapshots, pack, unpack
from federation.channel import Transfer
from federation.fitting import fit
from federation.method import Method
from federation.samples import counted
from federation.training.loops import TrainingPlan
from methods.fedavg import FedAvg
from methods.feddf import FedDF
from methods.fediod import FedIOD
from methods.fedmd import FedMD
from tests.federation.tiny import make_federation

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


def test_numbers_come_back_to_the_last_digit():
    numbers = [0.1 + 0.2, 1 / 3, 5e-324, 2**63, float("inf")]
    assert there_and_back(numbers) == numbers


def test_a_tuple_comes_back_as_a_list():
    assert there_and_back({"betas": (0.9, 0.999)}) == {"betas": [0.9, 0.999]}


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


def test_several_parts_may_share_one_store_of_tensors():
    tensors = {}
    first, second = pack({"w": torch.tensor(1)}, tensors), pack({"w": torch.tensor(2)}, tensors)
    assert (unpack(first, tensors)["w"].item(), unpack(second, tensors)["w"].item()) == (1, 2)


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


def test_the_latest_snapshot_replaces_the_one_before(tmp_path):
    parts = learner(OPTIMIZERS["adam"], SCHEDULES["cosine"])
    snapshots = Snapshots(tmp_path / "running", every=0)
    snapshots.offer(1, parts, {"accuracy": [0.1]}, [])
    snapshots.offer(2, parts, {"accuracy": [0.1, 0.4]}, [])
    assert snapshots.resume(parts)[:2] == (2, {"accuracy": [0.1, 0.4]})


def rounds_on_disk(folder):
    """The round of every whole snapshot."""
    stages = [read_stage(path.with_suffix(""))[0] for path in folder.rglob("*running-?.json")]
    return sorted(stage.info["round"] for stage in stages if stage is not None)


def newest(folder, suffix):
    """The file of the snapshot with the highest round."""
    headers = folder.rglob("*running-?.json")
    return max(
        headers, key=lambda path: read_stage(path.with_suffix(""))[0].info["round"]
    ).with_suffix(f".{suffix}")


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


def test_a_resumed_fit_writes_over_the_older_snapshot(tmp_path):
    first = Snapshots(tmp_path / "running", every=0)
    for number in (1, 2):
        first.offer(number, {}, {}, [])
    second = Snapshots(tmp_path / "running", every=0)
    assert second.resume({})[0] == 2
    second.offer(3, {}, {}, [])
    assert rounds_on_disk(tmp_path) == [2, 3]


def test_a_snapshot_is_only_taken_when_it_is_time(tmp_path):
    parts = learner(OPTIMIZERS["adam"], SCHEDULES["cosine"])
    Snapshots(tmp_path / "running", every=3600).offer(1, parts, {}, [])
    assert list(tmp_path.iterdir()) == []


def test_the_time_between_snapshots_is_counted_from_the_last_one(tmp_path, monkeypatch):
    clock = iter(
        [0, 59, 60, 60, 100, 119, 120, 120]
    )  # made; offered at 59, 60 (and taken), 100, 119, 120 (and taken)
    monkeypatch.setattr("federation.caching.snapshots.time.monotonic", lambda: next(clock))
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


# -- whole fits --

IOD = {
    "epochs": 4,
    "batch_size": 4,
    "latent": 5,
    "width": 4,
    "discriminator_width": 4,
    "samples": 3,
}
METHODS = {
    "averaging": FedAvg(rounds=4, participation=0.5),
    "server momentum": FedAvgM(rounds=4, participation=1.0),
    "fedgen": FedGEN(rounds=4, participation=1.0, noise=4, hidden=8, generator_steps=3),
    "feddf": FedDF(rounds=4, participation=1.0, distillation_steps=4, evaluation_interval=2),
    "fedmd": FedMD(rounds=4, public_samples=4, digest_batch_size=2, revisit_epochs=1),
    "fedkd": FedKD(multi_round=True),
    "fediod": FedIOD(**IOD),
    "fediod as released": FedIOD(
        **IOD,
        optimizer="sgd",
        student_steps=2,
        logarithmic=True,
        weights="class-count",
        generator_beta=0.5,
    ),
}


class PowerCutError(Exception):
    """What ends a run in the middle."""


@pytest.fixture(autouse=True)
def a_snapshot_after_every_round(monkeypatch):
    monkeypatch.setattr(fitting, "Snapshots", functools.partial(Snapshots, every=0))


def federation_of(folder, progress=lambda text, share: None, **changes):
    plan = TrainingPlan(epochs=1, batch_size=4, lr=0.02, optimizer="sgd", momentum=0.9)
    server = TrainingPlan(epochs=4, batch_size=3, lr=0.01)
    return make_federation(
        **{
            "local": plan,
            "server": server,
            "stages": StageCache(folder),
            "progress": progress,
            **changes,
        }
    )


def cut_at(wanted):
    """Progress that ends the run when its line starts with `wanted`."""

    def progress(text, share):
        if text.startswith(wanted):
            raise PowerCutError

    return progress


def running(folder):
    """The files of each snapshot on disk, by their suffixes."""
    found = {}
    for path in sorted(folder.rglob("*-running*")):
        found.setdefault(path.stem, []).append(path.suffix)
    return list(found.values())


def interrupted(folder, method, wanted="round 3/4", snapshots=2, **changes):
    with pytest.raises(PowerCutError):
        fit(federation_of(folder, cut_at(wanted), **changes), method)
    assert running(folder) == [[".json", ".safetensors"]] * snapshots


def outcome(federation, method):
    """Everything a fit leaves, comparable with ==."""
    with counted() as seen:
        found = fit(federation, method)
    states = [content_digest(checkpoint.state) for checkpoint in found]
    samples = [
        checkpoint.samples.tolist() for checkpoint in found if checkpoint.samples is not None
    ]
    histories = [checkpoint.history for checkpoint in found]
    return states, histories, samples, federation.channel.ledger, seen.total()


@pytest.mark.parametrize("name", METHODS)
def test_an_interrupted_fit_goes_on_and_ends_bit_by_bit_as_an_uninterrupted_one(tmp_path, name):
    method, lines = METHODS[name], []
    expected = outcome(federation_of(tmp_path / "whole"), method)
    interrupted(tmp_path / "cut", method)
    again = federation_of(tmp_path / "cut", lambda text, share: lines.append(text))
    assert outcome(again, method) == expected
    assert [line for line in lines if line.startswith("round")] == ["round 3/4", "round 4/4"]


def test_a_student_with_batchnorm_goes_on_bit_by_bit_too(tmp_path):
    method, student = METHODS["fediod"], {"network": "resnet8-narrow"}
    expected = outcome(federation_of(tmp_path / "whole", **student), method)
    interrupted(tmp_path / "cut", method, **student)
    assert outcome(federation_of(tmp_path / "cut", **student), method) == expected


def test_a_fit_that_is_cut_in_the_middle_of_a_round_repeats_that_round(tmp_path):
    method, lines = METHODS["server momentum"], []
    expected = outcome(federation_of(tmp_path / "whole"), method)
    interrupted(tmp_path / "cut", method, "client 2/2 round 3")
    again = federation_of(tmp_path / "cut", lambda text, share: lines.append(text))
    assert outcome(again, method) == expected
    assert [line for line in lines if line.startswith("round")] == ["round 3/4", "round 4/4"]


def test_a_fit_may_be_cut_again_and_again(tmp_path):
    method = METHODS["fedgen"]
    expected = outcome(federation_of(tmp_path / "whole"), method)
    for number in (2, 3, 4):
        interrupted(tmp_path / "cut", method, f"round {number}/4", snapshots=min(number - 1, 2))
    assert outcome(federation_of(tmp_path / "cut"), method) == expected


DAMAGES = pytest.mark.parametrize(
    "damage",
    [lambda raw: raw[: len(raw) // 2], lambda raw: raw[:-3] + b"xyz"],
    ids=["half", "altered"],
)


@pytest.mark.parametrize("suffix", ["json", "safetensors"])
@DAMAGES
@pytest.mark.parametrize("name", ["server momentum", "fediod"])
def test_when_the_newest_snapshot_is_damaged_the_fit_goes_on_from_the_one_before(
    tmp_path, suffix, damage, name
):
    method, lines = METHODS[name], []
    expected = outcome(federation_of(tmp_path / "whole"), method)
    interrupted(tmp_path / "cut", method)
    path = newest(tmp_path / "cut", suffix)
    path.write_bytes(damage(path.read_bytes()))
    again = federation_of(tmp_path / "cut", lambda text, share: lines.append(text))
    assert outcome(again, method) == expected
    assert [line for line in lines if line.startswith("round")] == [
        "round 2/4",
        "round 3/4",
        "round 4/4",
    ]


@pytest.mark.parametrize("suffix", ["json", "safetensors"])
@DAMAGES
def test_when_both_snapshots_are_damaged_the_fit_starts_anew_with_the_same_result(
    tmp_path, suffix, damage
):
    method, lines = METHODS["server momentum"], []
    expected = outcome(federation_of(tmp_path / "whole"), method)
    interrupted(tmp_path / "cut", method)
    paths = list((tmp_path / "cut").rglob(f"*-running-?.{suffix}"))
    assert len(paths) == 2
    for path in paths:
        path.write_bytes(damage(path.read_bytes()))
    again = federation_of(tmp_path / "cut", lambda text, share: lines.append(text))
    assert outcome(again, method) == expected
    assert [line for line in lines if line.startswith("round")] == [
        f"round {number}/4" for number in (1, 2, 3, 4)
    ]


def test_another_configuration_never_goes_on_from_the_snapshot(tmp_path):
    interrupted(tmp_path, METHODS["averaging"])
    lines = []
    fit(
        federation_of(tmp_path, lambda text, share: lines.append(text)),
        FedAvg(rounds=4, participation=1.0),
    )
    assert "round 1/4" in lines


def test_a_finished_fit_leaves_no_snapshot(tmp_path):
    interrupted(tmp_path, METHODS["averaging"])
    fit(federation_of(tmp_path), METHODS["averaging"])
    assert running(tmp_path) == []
    fit(federation_of(tmp_path), METHODS["server momentum"])
    assert running(tmp_path) == []


@dataclass(frozen=True)
class Counting(Method):
    """Adds its round's number to one weight; all it takes over is that weight."""

    rounds: int = 3

    def fit(self, federation):
        model = federation.networks.initial()
        with torch.no_grad():
            model.head.bias.zero_()
            for number in federation.rounds(self.rounds, model=model):
                model.head.bias += number
                federation.evaluation.track(model)
        return federation.networks.checkpoint(model)


def test_rounds_that_are_done_are_not_done_again(tmp_path):
    def bias(federation):
        return fit(federation, Counting())[0].state["head.bias"].tolist()

    assert bias(federation_of(tmp_path / "whole")) == [6, 6, 6]
    interrupted(tmp_path / "cut", Counting(), "round 3/3")
    assert bias(federation_of(tmp_path / "cut")) == [6, 6, 6]


def test_without_a_folder_a_fit_starts_anew_and_ends_alike():
    first = outcome(federation_of(None), METHODS["averaging"])
    with pytest.raises(PowerCutError):
        fit(federation_of(None, cut_at("round 3/4")), METHODS["averaging"])
    assert outcome(federation_of(None), METHODS["averaging"]) == first
