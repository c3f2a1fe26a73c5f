"""FedSA's Algorithm 1, what crosses in it, what networks see and what adaptation leaves alone."""

import itertools
import math

import numpy as np
import pytest
import torch

from fedtables.baselines.fedavg_plus import FedAvgPlus
from fedtables.baselines.fedmd_plus import FedMDPlus
from fedtables.federation.channel import encoded_size
from fedtables.federation.data import state_of
from fedtables.federation.inside.trainer import Trainer
from fedtables.federation.samples import counted
from fedtables.federation.seeds import Seeds
from fedtables.federation.shared.amalgamation import hinted_for
from fedtables.federation.shared.averaging import average_states
from fedtables.federation.tasks.images import Classification
from fedtables.federation.training.inputs import Normalisation
from fedtables.federation.training.plan import DivergedError
from fedtables.methods import fedsa
from fedtables.methods.fedsa import FedSA
from fedtables.models.saliency import input_gradient
from tests.federation.tiny import CLASSES, bright_images
from tests.methods.fedsa.cases import RELEASED, told
from tests.methods.private_servers import (
    labelled,
    private_server,
    private_servers,
    quick,
)
from tests.methods.shards import network_inputs, recorded, same_bits

# -- Algorithm 1 --


def spied(monkeypatch, **changes):
    """A federation, and what is trained in it: (round, what or whom, epochs)."""
    federation, events = private_servers(**changes), []
    federation.stages.teachers()
    train, train_on_clients = federation.train, federation.train_on_clients

    def keep(model, images, targets, loss, plan, *names, **options):
        events.append((federation.channel.round, names[0], plan.epochs))
        return train(model, images, targets, loss, plan, *names, **options)

    def keep_local(group, plan, *names, **options):
        for client, _ in group:
            events.append((federation.channel.round, client.index, plan.epochs))
        train_on_clients(group, plan, *names, **options)

    monkeypatch.setattr(federation, "train", keep)
    monkeypatch.setattr(federation, "train_on_clients", keep_local)
    return federation, events


@pytest.mark.parametrize(("retrain", "weak"), [(True, [1, 3, 5]), (False, [1])])
def test_teachers_are_chosen_anew_every_few_rounds_and_the_target_is_taught_before(
    monkeypatch, retrain, weak
):
    federation, events = spied(monkeypatch)
    quick(
        rounds=5,
        selection_gap=2,
        retrain=retrain,
        weak_epochs=4,
        local_epochs=2,
        adaptation_epochs=6,
    ).fit(federation)
    assert [number for number, who, epochs in events if (who, epochs) == ("weak", 4)] == weak
    assert [
        len(values) for name, values in federation.evaluation.history.items() if name != "accuracy"
    ] == [3] * 6
    drawn = np.array([federation.evaluation.history[f"selected/{n}"] for n in (1, 2, 3)])
    assert drawn.sum(axis=0).tolist() == [2, 2, 2]
    for number in range(1, 6):
        taught = {who for when, who, epochs in events if when == number and epochs == 2}
        assert taught == set(np.flatnonzero(drawn[:, (number - 1) // 2]))
        first = next(who for when, who, _ in events if when == number)
        assert (first == "weak") == (number in weak)
    assert events[-1] == (5, "adaptation", 6)
    assert sum(who == "adaptation" for _, who, _ in events) == 1


def test_maps_of_the_target_are_taken_after_it_has_learnt_from_the_probe_set(monkeypatch):
    federation, events = spied(monkeypatch)
    own = FedSA.maps_of

    def keep(method, normalise, model, images):
        events.append((federation.channel.round, "maps", 0))
        return own(method, normalise, model, images)

    monkeypatch.setattr(FedSA, "maps_of", keep)
    quick(selection="top-k", rounds=2).fit(federation)
    whole = [(number, who) for number, who, _ in events if who in ("maps", "weak", "adaptation")]
    teachers = [(0, "maps")] * 3  # once, before the first round
    rounds = [(number, who) for number in (1, 2) for who in ("weak", "maps")]
    assert whole == [*teachers, *rounds, (2, "adaptation")]


def payloads_of(method, federation):
    """(round, direction, client, kind, a copy of the tensors) of all that crosses in a fit, and
    what it leaves.
    """
    result, sent = recorded(method, federation)
    return [(t.round, t.direction, t.client, t.kind, tensors) for t, tensors in sent], result


def test_the_target_is_the_weighted_mean_of_the_local_students():
    method = told(drawn=(2, 0, 2), selected=3, selection_gap=5)
    payloads, result = payloads_of(method, private_servers(3, network="resnet8-narrow"))
    parameters = [
        (number, way, tensors) for number, way, _, kind, tensors in payloads if kind == "parameters"
    ]
    second, first = (tensors for number, way, tensors in parameters if (number, way) == (1, "up"))
    sent = [tensors for number, way, tensors in parameters if (number, way) == (2, "down")]
    assert same_bits(sent[0], sent[1])
    for name, tensor in sent[0].items():  # BatchNorm's means and variances too
        if tensor.is_floating_point():
            torch.testing.assert_close(tensor, (2 * second[name] + first[name]) / 3)
    last = [tensors for number, way, tensors in parameters if (number, way) == (2, "up")]
    mean = average_states(last, [2, 1])
    assert all(
        torch.equal(mean[name], tensor)
        for name, tensor in result.state.items()
        if not name.startswith("head.")
    )


def test_adaptations_on_the_way_are_measured_and_change_nothing():
    plain, measured = private_servers(), private_servers()
    with counted() as samples:
        once = quick(rounds=4).fit(plain)
    with counted() as of_both:
        often = quick(rounds=4, adaptation_gap=2).fit(measured)
    assert samples.total() == of_both.total()  # a copy is no part of the budget
    assert (len(once.history["accuracy"]), len(often.history["accuracy"])) == (1, 2)
    assert same_bits(once.state, often.state)
    assert once.history["accuracy"][-1] == often.history["accuracy"][-1]


def test_maps_that_are_no_numbers_are_told():
    federation = private_servers()
    method = quick()
    target = federation.networks.initial()
    maps = method.ask_for_maps(federation, federation.stages.teachers())
    with torch.no_grad():
        next(target.parameters()).fill_(math.nan)
    with pytest.raises(DivergedError, match="saliency maps of round 3"):
        method.select(federation, target, maps, 3)


# -- what crosses --


@pytest.mark.parametrize("released", [{}, RELEASED], ids=["paper", "released"])
def test_only_the_student_crosses(released):
    federation = private_servers(3, teachers="resnet8-narrow")
    payloads, _ = payloads_of(quick(rounds=3, selection="top-k", **released), federation)
    assert [(way, client, kind) for _, way, client, kind, _ in payloads[:6]] == [
        (way, client, kind)
        for client in (0, 1, 2)
        for way, kind in (("down", "images"), ("up", "attention"))
    ]
    assert {kind for _, _, _, kind, _ in payloads[6:]} == {"parameters"}
    assert [(number, way) for number, way, *_ in payloads[6:]] == [
        (number, way) for number in (1, 2, 3) for _ in range(2) for way in ("down", "up")
    ]
    student = set(federation.networks.initial("cnn-small").state_dict())
    assert all(set(tensors) == student for *_, kind, tensors in payloads if kind == "parameters")
    probe = federation.probe().images
    assert all(
        torch.equal(tensors["probe"], probe) for *_, kind, tensors in payloads if kind == "images"
    )
    maps = torch.empty(12, 8, 8, dtype=torch.uint8) if released else torch.empty(1, 8, 8)
    sizes = {t.bytes for t in federation.channel.ledger if t.kind == "attention"}
    assert sizes == {encoded_size({"maps": maps})}  # nothing of the private data's size


@pytest.mark.parametrize(
    "method",
    [quick(), quick(**RELEASED), quick(FedAvgPlus), quick(FedMDPlus, revisit_epochs=1)],
    ids=repr,
)
def test_no_tensor_of_a_teacher_is_in_any_payload(method):
    federation = private_servers(3, teachers="resnet8-narrow")
    payloads, _ = payloads_of(method, federation)
    constant = (0.0, 1.0)  # as BatchNorm's parameters and statistics begin, in any network
    secret = [
        tensor
        for teacher in federation.stages.teachers()
        for tensor in teacher.state.values()
        if tensor.numel() > 1 and not any((tensor == value).all() for value in constant)
    ]
    assert len(secret) > 20
    sent = [tensor for *_, tensors in payloads for tensor in tensors.values()]
    assert not any(torch.equal(tensor, other) for tensor in sent for other in secret)


# -- what networks are shown --


@pytest.mark.parametrize("saliency", ["input-gradient", "grad-cam"])
def test_all_networks_see_the_same_probe_images_in_the_same_order(monkeypatch, saliency):
    name = saliency.replace("-", "_")
    seen, own = [], getattr(fedsa, name)

    def keep(model, inputs):
        seen.append((model, inputs.clone()))
        return own(model, inputs)

    monkeypatch.setattr(fedsa, name, keep)
    federation = private_servers(4, teachers="resnet8-narrow")
    quick(rounds=3, saliency=saliency, transferability="released").fit(federation)
    images = federation.probe().images  # as they are: neither shuffled nor augmented
    assert len(seen) == 4 + 3
    assert len({id(model) for model, _ in seen[:5]}) == 5
    for number, (_, inputs) in enumerate(seen):
        sees = federation.clients[number].normalise if number < 4 else federation.normalise
        torch.testing.assert_close(inputs, network_inputs(images, sees))


def test_the_average_map_is_that_of_all_images_however_they_are_batched():
    federation, images = private_servers(), bright_images(torch.arange(600) % CLASSES, 7)
    model = federation.networks.initial("resnet8-narrow")
    found = FedSA().maps_of(federation.normalise, model, images)
    assert found.shape == (1, 8, 8)
    torch.testing.assert_close(found, input_gradient(model, network_inputs(images)).mean(dim=0))


def test_the_released_maps_are_bytes_for_each_image():
    federation, images = private_servers(), bright_images(torch.arange(9) % CLASSES, 7)
    for saliency in ("grad-cam", "input-gradient"):
        maps = FedSA(transferability="released", saliency=saliency).maps_of(
            federation.normalise, federation.networks.initial("cnn-small"), images
        )
        assert (maps.shape, maps.dtype) == ((9, 8, 8), torch.uint8)
        assert set(maps.flatten(1).amax(dim=1).tolist()) <= {0, 255}


def test_teachers_of_several_networks_and_sizes_teach_one_student():
    clients = [
        private_server(0, "resnet8-narrow"),
        private_server(1, "cnn-small", samples=20),
        private_server(2, "resnet10-slim"),
    ]
    result = quick(selection="top-k", selected=3).fit(private_servers(clients))
    assert result.history["accuracy"][-1] >= 0.9


@pytest.mark.parametrize("network", ["resnet8-narrow", "vgg11-slim"])
def test_no_teacher_begins_with_the_weights_of_the_target_or_of_another(network, monkeypatch):
    """Teachers are pre-trained by others; a common start would make their saliency look alike."""
    starts, train = [], Trainer.train

    def seen(trainer, model, *arguments, **options):
        starts.append(state_of(model))
        return train(trainer, model, *arguments, **options)

    monkeypatch.setattr(Trainer, "train", seen)
    federation = private_servers(2, network=network, teachers=network, side=16)
    starts.append(federation.networks.initial(network).state_dict())
    federation.stages.teachers()
    assert len(starts) == 3
    for first, second in itertools.combinations(starts, 2):
        kernels = [name for name, tensor in first.items() if tensor.ndim == 4]
        assert not any(torch.equal(first[name], second[name]) for name in kernels)


def test_teachers_know_nothing_of_the_target():
    """The same teachers, by their key, whatever the target's task, images, statistics and network
    are.
    """
    plain = private_servers(2)
    other = private_servers(
        2,
        network="resnet8-narrow",
        teachers="cnn-small",
        task=Classification(5),
        normalise=Normalisation((0.1,), (0.9,)),
        test=labelled(9, 7),
    )
    assert [t.lineage for t in plain.stages.teachers()] == [
        t.lineage for t in other.stages.teachers()
    ]


def test_columns_and_seeds_have_draws_of_their_own():
    def draws(**changes):
        federation, scores = private_servers(8, **changes), torch.zeros(8)
        return [FedSA(selected=3).draw(federation, scores, number) for number in range(1, 5)]

    first = draws()
    assert first == draws()
    assert first != draws(network="resnet8-narrow", teachers="cnn-small")
    assert first != draws(seeds=Seeds(sampling=1))


def test_saliency_may_be_of_the_first_probe_images_alone_and_m_is_their_number(monkeypatch):
    seen = []
    monkeypatch.setattr(
        FedSA,
        "scores",
        lambda method, own, target, samples: seen.append(samples) or torch.zeros(len(own)),
    )
    payloads, _ = payloads_of(quick(saliency_samples=5), private_servers(2))
    shown = [tensors["probe"] for *_, kind, tensors in payloads if kind == "images"]
    assert seen == [5, 5]
    assert all(torch.equal(images, private_servers(2).probe().images[:5]) for images in shown)
    assert len(shown) == 2


def test_translators_stay_where_they_are_and_learn_on():
    federation = private_servers(2)
    student = federation.networks.initial("cnn-small")
    first, second = (hinted_for(federation, client, student) for client in federation.clients)
    assert not torch.equal(first.translator.layers[0].weight, second.translator.layers[0].weight)
    assert first.student is second.student is student
