"""FedSA's Eq. 2 to 5 by hand, and which teachers it chooses."""

import math

import numpy as np
import pytest
import torch

from fedtables.federation.seeds import Seeds
from fedtables.methods import fedsa
from fedtables.methods.fedsa import (
    FedSA,
    aggregation_weights,
    image_distance,
    saliency_distance,
    sampling_probabilities,
)
from tests.methods.fedsa.cases import RELEASED, told
from tests.methods.private_servers import private_servers, quick

# -- Eq. 2 to 5 --


def test_the_distance_is_the_number_of_samples_by_the_cosine_of_the_averaged_maps():
    own, target = torch.tensor([[[3.0, 4.0]]]), torch.tensor([[[4.0, 3.0]]])
    assert saliency_distance(own, target, 1).item() == pytest.approx(25 / 24)
    assert saliency_distance(own, target, 48).item() == pytest.approx(50)
    assert saliency_distance(7 * own, target, 48).item() == pytest.approx(50)
    assert saliency_distance(own, own, 10).item() == pytest.approx(10)
    assert (
        saliency_distance(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), 5).item() == math.inf
    )


ONE, TWO, EMPTY = [[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("teacher", "target", "expected"),
    [
        ([ONE, ONE], [ONE, ONE], 1),
        ([ONE, TWO], [ONE, ONE], 4 / 3),  # 2 / (1 + 1/2)
        ([[[3.0, 4.0]], [[4.0, 3.0]]], [ONE, ONE], 2 / (0.8 + 0.9)),
        ([ONE, TWO], [TWO, ONE], 2),  # not the cosine of sums, which is 1
        ([EMPTY, ONE], [ONE, ONE], 4 / 3),  # an empty map has the cosine 0
        ([ONE, ONE], [EMPTY, ONE], 4 / 3),
        ([EMPTY, EMPTY], [EMPTY, EMPTY], 2),
    ],
)
def test_the_released_distance_is_of_image_by_image_cosines(teacher, target, expected):
    found = image_distance(torch.tensor(teacher), torch.tensor(target))
    assert found.item() == pytest.approx(expected)


def test_probabilities_are_the_softmax_of_the_scores():
    found = sampling_probabilities(torch.tensor([math.log(2), 0.0, math.log(5)]))
    torch.testing.assert_close(found, torch.tensor([2 / 8, 1 / 8, 5 / 8]))
    assert sampling_probabilities(torch.tensor([300.0, -300.0, 2.0])).sum().item() == pytest.approx(
        1
    )


@pytest.mark.parametrize("name", fedsa.TRANSFERABILITIES)
def test_what_looks_more_like_the_target_is_likelier_to_be_drawn(name):
    target = torch.tensor([[[1.0, 0.0]]])
    own = [torch.tensor([[[x, y]]]) for x, y in ((0.6, 0.8), (0.8, 0.6), (0.0, 1.0))]
    scores = FedSA(transferability=name).scores(own, target, 2)
    by_hand = {"eq2": [0.3, 0.4, 0.0], "cosine": [0.6, 0.8, 0.0]}
    if name in by_hand:
        assert scores.tolist() == pytest.approx(by_hand[name])  # 1 / d: the cosine by M, or alone
    else:  # 2 - d, d = 2 / (1 + cos), from its least value to its greatest
        distances = [2 / 1.6, 2 / 1.8, 2.0]
        assert scores.tolist() == pytest.approx([(2 - distances[0]) / (2 - distances[1]), 1.0, 0.0])
    assert sampling_probabilities(scores).argsort(descending=True).tolist() == [1, 0, 2]


def test_the_released_odds_of_the_best_to_the_worst_are_always_e():
    target = torch.tensor([[[1.0, 0.0]]])
    for nearly in (0.01, 3.0):
        own = [target, torch.tensor([[[1.0, nearly / 2]]]), torch.tensor([[[1.0, nearly]]])]
        found = sampling_probabilities(FedSA(**RELEASED).scores(own, target, 1))
        assert (found.max() / found.min()).item() == pytest.approx(math.e, rel=1e-4)


@pytest.mark.parametrize(
    ("weighting", "expected"),
    [
        ("equal", [1 / 3, 1 / 3, 1 / 3]),
        ("positive", [1, math.exp(0.5), math.e]),
        ("negative", [1, math.exp(-0.5), math.exp(-1)]),
    ],
)
def test_weights_of_the_drawn_by_their_scores(weighting, expected):
    found = aggregation_weights(torch.tensor([0.2, 0.3, 0.4]), weighting)
    torch.testing.assert_close(found, torch.tensor(expected) / sum(expected))


# -- which teachers --


@pytest.mark.parametrize(("selection", "expected"), [("top-k", [1, 3, 0]), ("least-k", [4, 2, 0])])
def test_the_best_and_the_worst_by_score(selection, expected):
    scores = torch.tensor([0.5, 0.9, 0.2, 0.8, 0.1])
    assert FedSA(selection=selection, selected=3).draw(private_servers(5), scores, 1) == expected


def draws(method, scores, rounds):
    federation = private_servers(len(scores))
    return [
        method.draw(federation, torch.tensor(scores), number) for number in range(1, rounds + 1)
    ]


def test_random_teachers_differ_from_each_other_and_from_selection_to_selection():
    found = draws(FedSA(selection="random", selected=3), [9.0, 0.0, 0.0, 0.0, 0.0], 20)
    assert {len(set(drawn)) for drawn in found} == {3}
    assert {index for drawn in found for index in drawn} == {0, 1, 2, 3, 4}
    assert len({frozenset(drawn) for drawn in found}) > 3


def test_fixed_teachers_are_drawn_once():
    found = draws(FedSA(selection="fixed", selected=3), [0.0] * 5, 5)
    assert found == [found[0]] * 5
    assert len(set(found[0])) == 3
    servers = [private_servers(5, seeds=Seeds(sampling=seed)) for seed in range(5)]
    fixed, scores = FedSA(selection="fixed"), torch.zeros(5)
    assert len({tuple(fixed.draw(server, scores, 1)) for server in servers}) > 1


def test_sampled_teachers_come_back_as_often_as_their_probability_says():
    # p = 0.8, 0.1, 0.1
    found = np.concatenate(draws(FedSA(selected=30), [math.log(8), 0.0, 0.0], 20))
    counts = np.bincount(found, minlength=3) / 600
    assert counts == pytest.approx([0.8, 0.1, 0.1], abs=0.05)  # three standard deviations


@pytest.mark.parametrize("selection", ["top-k", "least-k", "random", "fixed"])
def test_more_different_teachers_than_there_are_cannot_be_chosen(selection):
    with pytest.raises(
        ValueError, match=r"4 different teachers cannot be chosen among 3; lower fedsa\.selected"
    ):
        quick(selection=selection, selected=4).fit(private_servers(3))


def test_sampling_with_replacement_may_draw_more_teachers_than_there_are():
    federation = private_servers(2)
    quick(selected=5, rounds=1).fit(federation)
    drawn = [federation.evaluation.history[f"selected/{n}"][0] for n in (1, 2)]
    assert sum(drawn) == 5


def chosen_by(method, federation=None):
    federation = federation or private_servers(3)
    maps = method.ask_for_maps(federation, federation.stages.teachers())
    return (
        method.select(federation, federation.networks.initial(), maps, 1),
        federation.evaluation.history,
    )


def test_a_teacher_drawn_twice_counts_twice_and_teaches_once():
    weights, history = chosen_by(told(drawn=(2, 0, 2)))
    assert weights == pytest.approx({2: 2 / 3, 0: 1 / 3})
    assert [history[f"selected/{n}"] for n in (1, 2, 3)] == [[1], [0], [2]]
    federation = private_servers(3)
    told(drawn=(2, 0, 2), selected=3).fit(federation)
    sent = [
        (t.round, t.client, t.messages)
        for t in federation.channel.ledger
        if (t.direction, t.kind) == ("up", "parameters")
    ]
    assert sent == [(1, 2, 1), (1, 0, 1), (2, 2, 1), (2, 0, 1)]


def test_weights_of_the_drawn_are_by_their_scores_among_themselves():
    first = math.e / (math.e + 1)
    weights, history = chosen_by(told(selection="top-k", weighting="positive"))
    assert weights == pytest.approx({0: first, 2: 1 - first})
    assert [history[f"transferability/{n}"] for n in (1, 2, 3)] == [
        pytest.approx([s]) for s in (0.4, 0.2, 0.3)
    ]
    assert chosen_by(told(selection="top-k", weighting="negative"))[0] == pytest.approx(
        {0: 1 - first, 2: first}
    )
    assert chosen_by(told(selection="least-k", weighting="positive"))[0] == pytest.approx(
        {1: 1 - first, 2: first}
    )


@pytest.mark.parametrize(
    ("selection", "weighting", "looks"),
    [
        ("fixed", "equal", False),
        ("random", "equal", False),
        ("random", "positive", True),
        ("sampled", "equal", True),
    ],
)
def test_saliency_is_asked_for_only_where_it_decides(selection, weighting, looks):
    federation = private_servers(3)
    quick(selection=selection, weighting=weighting, rounds=1).fit(federation)
    assert (
        {t.kind for t in federation.channel.ledger} == {"parameters", "images", "attention"}
    ) == looks
    assert {t.kind for t in federation.channel.ledger} >= {"parameters"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"selection": "best"}, "unknown selection 'best'; known: sampled, "),
        ({"weighting": "none"}, "unknown weighting 'none'; known: equal, "),
        ({"transferability": "eq3"}, "unknown transferability 'eq3'; known: eq2, "),
        ({"saliency": "lime"}, "unknown saliency 'lime'; known: input-gradient, grad-cam"),
        ({"adaptation": "head"}, "unknown adaptation 'head'; known: decoder, fine-tune, all"),
    ],
)
def test_what_it_does_not_know_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        FedSA(**changes)
