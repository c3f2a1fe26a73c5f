"""FedSA's Table 3: numbers of hand-made scores, and what teachers share."""

import pytest
import torch

from baselines.transfer import Transfer
from benchmarks.measures.teachers import first_scores, transfer_of
from federation.cache import StageCache
from federation.data import Checkpoint
from federation.shared.amalgamation import train_weak
from methods.fedsa import FedSA
from tests.methods.private_servers import private_servers, quick


def test_they_are_of_the_target_network_before_its_first_selection():
    federation, method = private_servers(3), quick()
    target = federation.networks.initial()
    train_weak(federation, target, method.weak_epochs, 1)
    images = federation.probe().images
    sees = federation.clients[0].normalise
    own = [
        method.maps_of(sees, federation.networks.module(teacher), images)
        for teacher in federation.stages.teachers()
    ]
    scores = method.scores(own, method.maps_of(federation.normalise, target, images), 12)
    torch.testing.assert_close(method.first_scores(federation), scores)
    fitted = private_servers(3)
    method.fit(fitted)
    first = [fitted.evaluation.history[f"transferability/{n}"][0] for n in (1, 2, 3)]
    assert first == pytest.approx(scores.tolist(), rel=1e-5)


def test_all_teachers_share_one_stage_and_another_method_has_another(tmp_path):
    asked = []
    for teacher in (1, 2, 3):
        federation = private_servers(3, stages=StageCache(tmp_path))
        fitted = [Transfer(teacher=teacher, frozen=True).fit(federation)]
        asked.append(transfer_of(federation, quick(), teacher, fitted, 1.0)[0][1].value)
        events = [
            event.computed
            for event in federation.stages.cache.events
            if event.kind == "similarities"
        ]
        assert events == [teacher == 1]
    scores = first_scores(federation, quick())
    assert asked == pytest.approx(
        ((scores - scores.min()) / (scores.max() - scores.min())).tolist()
    )
    assert (min(asked), max(asked)) == (0, 1)
    first_scores(federation, quick(saliency="grad-cam"))
    other = private_servers(
        3, network="resnet8-narrow", teachers="cnn-small", stages=federation.stages.cache
    )
    first_scores(other, quick())
    assert [
        event.computed for event in federation.stages.cache.events if event.kind == "similarities"
    ][-2:] == [True, True]


def test_a_teacher_has_two_numbers_the_second_never_in_percent(monkeypatch):
    scores = torch.tensor([0.05, 0.0575, 0.08])
    monkeypatch.setattr(FedSA, "first_scores", lambda method, federation: scores)
    trained = Checkpoint("cnn-small", 3, {}, "server", "", {"accuracy": [0.1, 0.5]})
    found, how = transfer_of(private_servers(3), quick(), 2, [trained], 100)
    assert [(m.metric, m.value) for m in found] == [
        ("transfer-accuracy", 50.0),
        ("saliency-similarity", pytest.approx(0.25)),
    ]
    assert "frozen encoder" in how
    assert "0.6000 to 0.9600" in how  # cosines, by the twelve probe samples of Eq. 2
