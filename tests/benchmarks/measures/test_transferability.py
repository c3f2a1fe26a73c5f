"""FedSA's Table 3 and Figure 4a: numbers of hand-made scores and histories, and what teachers
share.
"""

import pytest
import torch

from baselines.transfer import Transfer
from benchmarks.measures import transferability
from benchmarks.measures.transferability import measure, selections, transferabilities
from federation.amalgamation import train_weak
from federation.checkpoint import Checkpoint
from federation.stages import StageCache
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
    torch.testing.assert_close(transferabilities(federation, method), scores)
    fitted = private_servers(3)
    method.fit(fitted)
    first = [fitted.history[f"transferability/{n}"][0] for n in (1, 2, 3)]
    assert first == pytest.approx(scores.tolist(), rel=1e-5)


def test_all_teachers_share_one_stage_and_another_method_has_another(tmp_path):
    asked = []
    for teacher in (1, 2, 3):
        federation = private_servers(3, stages=StageCache(tmp_path))
        fitted = [Transfer(teacher=teacher, frozen=True).fit(federation)]
        asked.append(measure(federation, quick(), teacher, fitted, 1.0)[0][1].value)
        events = [
            event.computed
            for event in federation.stages.cache.events
            if event.kind == "similarities"
        ]
        assert events == [teacher == 1]
    scores = transferabilities(federation, quick())
    assert asked == pytest.approx(
        ((scores - scores.min()) / (scores.max() - scores.min())).tolist()
    )
    assert (min(asked), max(asked)) == (0, 1)
    transferabilities(federation, quick(saliency="grad-cam"))
    transferabilities(
        private_servers(
            3, network="resnet8-narrow", teachers="cnn-small", stages=federation.stages
        ),
        quick(),
    )
    assert [
        event.computed for event in federation.stages.cache.events if event.kind == "similarities"
    ][-2:] == [True, True]


def fitted(**history):
    return [
        Checkpoint(
            "cnn-small",
            3,
            {},
            "server",
            "",
            {name.replace("_", "/"): values for name, values in history.items()},
        )
    ]


def test_a_teacher_has_two_numbers_the_second_never_in_percent(monkeypatch):
    monkeypatch.setattr(
        transferability,
        "transferabilities",
        lambda federation, method: torch.tensor([0.05, 0.0575, 0.08]),
    )
    found, how = measure(private_servers(3), quick(), 2, fitted(accuracy=[0.1, 0.5]), 100)
    assert [(m.metric, m.value) for m in found] == [
        ("transfer-accuracy", 50.0),
        ("saliency-similarity", pytest.approx(0.25)),
    ]
    assert "frozen encoder" in how
    assert "0.6000 to 0.9600" in how  # cosines, by the twelve probe samples of Eq. 2


def test_every_selection_has_a_score_scaled_over_its_teachers_and_a_count_for_each():
    history = {
        "transferability_1": [1.0, 5.0],
        "transferability_2": [3.0, 5.0],
        "transferability_3": [2.0, 5.0],
        "selected_1": [0.0, 1.0],
        "selected_2": [2.0, 1.0],
        "selected_3": [1.0, 1.0],
    }
    found, _ = selections(fitted(**history), {"partition.clients": 3})
    scores = {m.column: m.value for m in found if m.metric == "transferability"}
    counts = {m.column: m.value for m in found if m.metric == "selected"}
    columns = [
        f"selection={number} teacher={teacher}" for number in (1, 2) for teacher in (1, 2, 3)
    ]
    assert list(scores) == list(counts) == columns
    assert list(scores.values()) == [0.0, 1.0, 0.5, 0.0, 0.0, 0.0]
    assert list(counts.values()) == [0.0, 2.0, 1.0, 1.0, 1.0, 1.0]


def test_the_selections_of_a_real_fit_add_up():
    federation = private_servers(3)
    found, _ = selections([quick(rounds=3, selected=2).fit(federation)], {"partition.clients": 3})
    for number in (1, 2, 3):
        own = [m for m in found if m.column.startswith(f"selection={number} ")]
        assert sum(m.value for m in own if m.metric == "selected") == 2
        scores = [m.value for m in own if m.metric == "transferability"]
        assert (min(scores), max(scores)) == (0, 1)
