"""An interrupted fit goes on and ends as if nothing had happened, to the last bit."""

import functools

import pytest

from fedtables.baselines.fedavgm import FedAvgM
from fedtables.baselines.fedgen import FedGEN
from fedtables.federation import fitting
from fedtables.federation.cache import StageCache, content_digest
from fedtables.federation.fitting import fit
from fedtables.federation.samples import counted
from fedtables.federation.snapshots import Snapshots
from fedtables.federation.training.plan import TrainingPlan
from fedtables.methods.fedavg import FedAvg
from tests.device_fits import PowerCutError
from tests.federation.tiny import make_federation

METHODS = {
    "averaging": FedAvg(rounds=4, participation=0.5),
    "server momentum": FedAvgM(rounds=4, participation=1.0),
    "fedgen": FedGEN(rounds=4, participation=1.0, noise=4, hidden=8, generator_steps=3),
}
"""That every method goes on is in `tests/methods/test_every_method.py`."""


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
    """The snapshots on disk."""
    return list(folder.rglob("*-running*"))


def interrupted(folder, method, wanted="round 3/4", **changes):
    """The file of the snapshot that a cut fit leaves."""
    with pytest.raises(PowerCutError):
        fit(federation_of(folder, cut_at(wanted), **changes), method)
    [path] = running(folder)
    return path


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


@pytest.mark.parametrize("before", ["round 2/4", "round 4/4"])
def test_an_interrupted_fit_has_the_looks_of_an_uninterrupted_one(tmp_path, before):
    method, looks = METHODS["averaging"], {"looks": 2}
    expected = outcome(federation_of(tmp_path / "whole", **looks), method)
    assert [len(history["accuracy"]) for history in expected[1]] == [2]
    interrupted(tmp_path / "cut", method, before, **looks)
    assert outcome(federation_of(tmp_path / "cut", **looks), method) == expected


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
        interrupted(tmp_path / "cut", method, f"round {number}/4")
    assert outcome(federation_of(tmp_path / "cut"), method) == expected


@pytest.mark.parametrize("name", ["averaging", "fedgen"])
def test_when_the_snapshot_is_damaged_the_fit_starts_anew_with_the_same_result(tmp_path, name):
    method, lines = METHODS[name], []
    expected = outcome(federation_of(tmp_path / "whole"), method)
    path = interrupted(tmp_path / "cut", method)
    path.write_bytes(path.read_bytes()[:-3] + b"xyz")
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


def test_without_a_folder_a_fit_starts_anew_and_ends_alike():
    first = outcome(federation_of(None), METHODS["averaging"])
    with pytest.raises(PowerCutError):
        fit(federation_of(None, cut_at("round 3/4")), METHODS["averaging"])
    assert outcome(federation_of(None), METHODS["averaging"]) == first
