"""FedProto: its loss and its prediction by hand, the prototypes that cross, and what they teach."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fedtables.baselines.fedproto import FedProto, distance_to_prototypes, nearest_prototype
from fedtables.federation.channel import encoded_size
from fedtables.federation.training.loops import predict
from fedtables.models.catalogue import Headless, OwnNetwork, features
from fedtables.models.entry import ModelError
from tests.federation.tiny import CLASSES, make_federation
from tests.methods.shards import (
    ONE_STEP,
    booked,
    client_with,
    mixed_clients,
    network_inputs,
    recorded,
    same_bits,
    samples_of,
    size,
    trained_alone,
)

WIDTH = 32
"""Features of cnn-small."""


def test_the_distance_is_the_mean_square_to_the_prototype_of_the_label():
    found = torch.tensor([[1.0, 2.0], [0.0, 0.0], [5.0, 5.0]])
    prototypes = torch.tensor([[0.0, 0.0], [9.0, 9.0], [3.0, 1.0]])
    held = torch.tensor([1.0, 0.0, 1.0])
    # Differences (1, 2) and (-3, -1); nobody holds class 1, but its sample is in the batch.
    loss = distance_to_prototypes(found, torch.tensor([0, 2, 1]), prototypes, held)
    assert loss.item() == pytest.approx((1 + 4 + 9 + 1) / 6)


def test_the_distance_moves_features_towards_their_prototypes_and_leaves_others():
    found = torch.tensor([[1.0, 2.0], [5.0, 5.0]], requires_grad=True)
    prototypes, held = torch.tensor([[0.0, 4.0], [0.0, 0.0]]), torch.tensor([1.0, 0.0])
    distance_to_prototypes(found, torch.tensor([0, 1]), prototypes, held).backward()
    assert found.grad.tolist() == [[0.5, -1.0], [0.0, 0.0]]  # 2 x difference / 4


def test_the_layers_scores_are_distances_to_prototypes_up_to_a_constant():
    draws = torch.Generator().manual_seed(0)
    found, prototypes = torch.randn(50, 4, generator=draws), torch.randn(3, 4, generator=draws)
    scores = F.linear(found, *nearest_prototype(prototypes, torch.ones(3)))
    distances = torch.cdist(found, prototypes)
    torch.testing.assert_close(
        scores - found.square().sum(dim=1, keepdim=True), -distances.square()
    )
    assert torch.equal(scores.argmax(dim=1), distances.argmin(dim=1))


def test_a_class_without_a_prototype_is_never_the_nearest():
    prototypes = torch.tensor([[100.0, 100.0], [0.0, 0.0]])
    scores = F.linear(torch.zeros(1, 2), *nearest_prototype(prototypes, torch.tensor([1.0, 0.0])))
    assert scores.argmax().item() == 0
    assert scores.isfinite().all()


@pytest.mark.parametrize(
    ("method", "same"),
    [
        (FedProto(rounds=3, prototype_weight=0.0, prediction="head"), True),
        (FedProto(rounds=1, prediction="head"), True),  # there are no prototypes yet
        (FedProto(rounds=2, prediction="head"), False),
    ],
)
def test_without_its_distance_it_is_local_training(method, same):
    fitted = method.fit(make_federation(clients=3))
    expected = trained_alone(method.rounds, make_federation(clients=3))
    for checkpoint, state in zip(fitted, expected, strict=True):
        assert same_bits(checkpoint.state, state) == same


def sent_in(sent, direction, number, name):
    """What crosses in a round, by client."""
    return [
        content[name]
        for t, content in sent
        if (t.direction, t.kind, t.round) == (direction, "features", number)
    ]


def test_prototypes_are_means_of_features_after_training_in_evaluation_mode():
    federation = make_federation()
    fitted, sent = recorded(FedProto(rounds=1, prediction="head"), federation)
    for client, found in zip(fitted, sent_in(sent, "up", 1, "prototypes"), strict=True):
        index = int(client.owner[-1])
        images, labels = samples_of(federation.clients[index])
        model = federation.networks.module(client).eval()
        own = features(model, network_inputs(images))
        expected = torch.zeros(CLASSES, WIDTH)
        for label in labels.unique():
            expected[label] = own[labels == label].mean(dim=0)
        torch.testing.assert_close(found, expected)


UNEVEN = [[0] * 6 + [1] * 2, [0] * 2 + [1] * 2]
"""Labels of two clients, which hold 3 to 1 of class 0, as many of class 1, and none of class 2."""


@pytest.mark.parametrize(("weights", "share"), [("size", 0.75), ("uniform", 0.5)])
def test_the_server_weighs_prototypes_by_samples_of_the_class_or_alike(weights, share):
    federation = make_federation([client_with(k, labels) for k, labels in enumerate(UNEVEN)])
    _, sent = recorded(FedProto(rounds=1, weights=weights), federation)
    one, other = sent_in(sent, "up", 1, "prototypes")
    for mean in sent_in(sent, "down", 1, "prototypes"):
        torch.testing.assert_close(mean[0], share * one[0] + (1 - share) * other[0])
        torch.testing.assert_close(mean[1], (one[1] + other[1]) / 2)
        assert not mean[2].any()
    assert sent_in(sent, "down", 1, "held")[0].tolist() == [True, True, False]


def test_the_second_round_is_a_step_on_labels_and_received_prototypes():
    federation = make_federation(local=ONE_STEP)
    method = FedProto(rounds=2, prototype_weight=0.5, prediction="head")
    fitted, sent = recorded(method, federation)
    images, labels = samples_of(federation.clients[0])
    prototypes = sent_in(sent, "down", 1, "prototypes")[0]
    model = federation.networks.initial("cnn-small").train()
    for weight in (0.0, 0.5):
        inputs = network_inputs(images)
        apart = features(model, inputs) - prototypes[labels]
        loss = F.cross_entropy(model(inputs), labels) + weight * apart.square().mean()
        weights = list(model.parameters())
        for tensor, slope in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            tensor.data -= 0.1 * slope
    for name, tensor in model.named_parameters():
        torch.testing.assert_close(fitted[0].state[name], tensor.detach())


def test_every_client_predicts_by_the_nearest_of_the_prototypes_that_it_has_got():
    federation = make_federation([client_with(k, labels) for k, labels in enumerate(UNEVEN)])
    fitted, sent = recorded(FedProto(rounds=2), federation)
    prototypes = sent_in(sent, "down", 2, "prototypes")[0][:2]  # nobody holds class 2
    images = federation.public.images
    for checkpoint in fitted:
        model = federation.networks.module(checkpoint)
        normalise = federation.normalise
        found = predict(Headless(model), images, normalise=normalise)
        expected = torch.cdist(found, prototypes).argmin(dim=1)
        outputs = predict(model, images, normalise=normalise)
        assert torch.equal(outputs.argmax(dim=1), expected)


def test_prediction_alone_differs_between_head_and_prototype():
    one, other = (
        FedProto(rounds=2, prediction=how).fit(make_federation()) for how in ("prototype", "head")
    )
    for by_prototype, by_head in zip(one, other, strict=True):
        differing = {
            name
            for name, tensor in by_head.state.items()
            if not torch.equal(tensor, by_prototype.state[name])
        }
        assert differing == {"head.weight", "head.bias"}


def test_every_byte_is_counts_once_and_a_row_for_each_class_in_a_round():
    federation = make_federation([client_with(0, [0, 1, 2] * 4), client_with(1, [1, 1])])
    FedProto(rounds=2).fit(federation)
    counts = size("counts", CLASSES, dtype=torch.int64)
    expected = {(0, "up", "labels", client): (counts, 1) for client in (0, 1)}
    rows = size("prototypes", CLASSES, WIDTH)
    held = torch.zeros(CLASSES, dtype=torch.bool)
    down = encoded_size({"prototypes": torch.zeros(CLASSES, WIDTH), "held": held})
    for number in (1, 2):
        for client in (0, 1):
            expected[number, "up", "features", client] = (rows, 1)
            expected[number, "down", "features", client] = (down, 1)
    assert booked(federation) == expected


class Wider(nn.Sequential):
    """Another encoder to as many features as cnn-small has."""

    def __init__(self, channels, outputs, sides, bias=True):
        encoder = nn.Sequential(nn.Flatten(), nn.Linear(channels * sides[0] * sides[1], WIDTH))
        super().__init__(encoder, nn.ReLU(), nn.Linear(WIDTH, outputs, bias=bias))


def test_encoders_may_differ_where_features_have_one_dimension():
    clients = [client_with(0, [0, 1] * 6), client_with(1, [1, 2] * 3, OwnNetwork(Wider))]
    federation = make_federation(clients)
    fitted = FedProto(rounds=2).fit(federation)
    assert [one.network for one in fitted] == [client.network for client in clients]
    for checkpoint in fitted:
        assert federation.networks.module(checkpoint)(torch.zeros(2, 1, 8, 8)).shape == (2, 3)


def without_bias(channels, outputs, sides):
    return Wider(channels, outputs, sides, bias=False)


@pytest.mark.parametrize(
    "clients", [mixed_clients(), [client_with(0, [0, 1], OwnNetwork(without_bias))]]
)
def test_features_of_several_dimensions_and_last_layers_without_bias_are_refused(clients):
    with pytest.raises(ModelError, match="must take as many values, and have a bias") as error:
        FedProto(rounds=1).fit(make_federation(clients))
    assert "\n" not in str(error.value)


def test_a_client_without_samples_sends_its_counts_alone():
    federation = make_federation([client_with(0, [0, 1] * 3), client_with(1, [])])
    fitted = FedProto(rounds=1).fit(federation)
    assert {t.client for t in federation.channel.ledger if t.kind != "labels"} == {0}
    assert same_bits(fitted[1].state, federation.networks.initial("cnn-small").state_dict())


def test_unknown_words_are_refused():
    with pytest.raises(ValueError, match="weights"):
        FedProto(weights="samples")
