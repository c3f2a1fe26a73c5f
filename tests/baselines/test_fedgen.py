"""FedGEN: the generator's losses by hand, what crosses, and that its terms reach the clients."""

import math

import pytest
import torch

from fedtables.baselines.fedgen import FeatureGenerator, FedGEN, diversity_loss, label_weighted_loss
from fedtables.federation.channel import encoded_size
from fedtables.federation.training.plan import Batch
from fedtables.methods.fedavg import FedAvg, Round
from tests.federation.tiny import CLASSES, make_federation
from tests.methods.shards import booked, same_bits

LN2 = math.log(2)
FEATURES = 32
"""Inputs of the head of cnn-small."""


def quick(**changes):
    sizes = {"noise": 4, "hidden": 8, "generator_steps": 5}
    return FedGEN(**{"rounds": 3, "participation": 1.0, **sizes, **changes})


def test_a_clients_error_counts_by_its_share_of_the_samples_of_the_label():
    # Client 0 gives label 0 three to one and is undecided on the second sample; client 1 is
    # undecided on both.
    logits = torch.tensor([[[math.log(3), 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
    weights = torch.tensor([[0.75, 0.0], [0.25, 1.0]])
    first = 0.75 * -math.log(3 / 4) + 0.25 * math.log(2)
    second = 0.0 + 1.0 * math.log(2)
    loss = label_weighted_loss(logits, torch.tensor([0, 1]), weights)
    assert loss.item() == pytest.approx((first + second) / 2)


def test_a_label_that_nobody_holds_costs_nothing():
    loss = label_weighted_loss(
        torch.randn(2, 1, 2), torch.tensor([1]), torch.tensor([[0.5, 0.0], [0.5, 0.0]])
    )
    assert loss.item() == 0


@pytest.mark.parametrize(
    ("noise", "features", "exponent"),
    [
        ([[0.0, 0.0], [1.0, 3.0]], [[1.0, 1.0], [1.0, 1.0]], 0.0),
        # Noise (1 + 9) / 2 = 5, features (2 + 4) / 2 = 3; two of four pairs are a sample with
        # itself.
        ([[0.0, 0.0], [1.0, 3.0]], [[0.0, 0.0], [2.0, 4.0]], (2 * 5 * 3) / 4),
        ([[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [2.0, 4.0]], (2 * 1 * 3) / 4),
    ],
)
def test_noise_is_compared_by_squares_and_features_by_absolute_differences(
    noise, features, exponent
):
    loss = diversity_loss(torch.tensor(noise), torch.tensor(features))
    assert loss.item() == pytest.approx(math.exp(-exponent))


def test_the_generator_gives_non_negative_features_that_depend_on_label_and_noise():
    torch.manual_seed(0)
    generator = FeatureGenerator(noise=4, classes=3, hidden=16, features=5).eval()
    noise = torch.randn(2, 4)
    first, second = generator(noise, torch.tensor([0, 1])), generator(noise, torch.tensor([0, 2]))
    assert first.shape == (2, 5)
    assert (first >= 0).all()
    assert torch.equal(first[0], second[0])
    assert not torch.equal(first[1], second[1])
    assert not torch.equal(first[0], generator(-noise, torch.tensor([0, 1]))[0])


def test_clients_send_label_counts_once_and_get_the_generator_from_the_second_round_on():
    federation = make_federation()
    quick().fit(federation)
    counts = encoded_size({"counts": torch.empty(CLASSES, dtype=torch.long)})
    model = encoded_size(federation.networks.initial("cnn-small").state_dict())
    generator = encoded_size(FeatureGenerator(4, CLASSES, 8, FEATURES).state_dict())
    expected = {(0, "up", "labels", k): (counts, 1) for k in (0, 1)}
    for number in (1, 2, 3):
        down = (model, 1) if number == 1 else (model + generator, 2)
        expected |= {(number, "down", "parameters", k): down for k in (0, 1)}
        expected |= {(number, "up", "parameters", k): (model, 1) for k in (0, 1)}
    assert booked(federation) == expected


@pytest.mark.parametrize(
    ("rounds", "changes", "same"),
    [
        (3, {"generative_alpha": 0.0, "generative_beta": 0.0}, True),
        (3, {"decay": 0.0}, True),
        (1, {}, True),
        (2, {"generative_alpha": 0.0}, False),
        (2, {"generative_beta": 0.0}, False),
    ],
)
def test_each_term_reaches_the_clients_from_the_second_round_on(rounds, changes, same):
    plain = FedAvg(rounds=rounds, participation=1.0).fit(make_federation())
    assert (
        same_bits(quick(rounds=rounds, **changes).fit(make_federation()).state, plain.state) == same
    )


def test_the_generator_learns_features_that_the_clients_heads_take_for_the_label():
    federation = make_federation(clients=3)
    method = quick(generator_steps=150, generator_lr=1e-2, generator_weight_decay=0.0)
    model = federation.networks.initial("cnn-small")
    server = method.server_state(federation, model)
    states = [checkpoint.state for checkpoint in federation.local_models()]
    noise, labels = (
        torch.randn(60, 4, generator=torch.Generator().manual_seed(0)),
        torch.arange(60) % CLASSES,
    )
    # Clients 2 and 0 hold class 0, 0 and 1 class 1, 1 and 2 class 2.
    holders = [(2, 0), (0, 1), (1, 2)]

    def share_right():
        features = server["generator"](noise, labels)
        votes = torch.stack(
            [features @ state["head.weight"].T + state["head.bias"] for state in states]
        )
        right = [
            votes[list(holders[y]), i].mean(dim=0).argmax() == y
            for i, y in enumerate(labels.tolist())
        ]
        return sum(map(int, right)) / len(right)

    before = share_right()
    heads = [(state["head.weight"], state["head.bias"]) for state in states]
    method.train_generator(Round(federation, 1, federation.clients, model, server), heads)
    assert before < 0.7
    assert share_right() > 0.9


def batch_of(outputs, targets):
    """A batch of whose inputs the penalty takes no notice."""
    return Batch(torch.zeros(len(targets), 0), outputs, targets)


def penalty_of(method, federation, model, server, number):
    """That of the first client in a round."""
    this = Round(federation, number, federation.clients, model, server)
    return method.penalty(this, federation.clients[0], model)


def test_the_first_penalty_is_none_and_later_ones_decay():
    federation = make_federation()
    method = quick(decay=0.5, generative_beta=0.0)
    model = federation.networks.initial("cnn-small")
    server = method.server_state(federation, model)
    batch = batch_of(torch.zeros(4, CLASSES), torch.tensor([0, 1, 2, 0]))
    assert penalty_of(method, federation, model, server, 1) is None
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.zero_()
    # A head that knows nothing: cross-entropy ln 3, times alpha, times 0.5 for every round since
    # the first.
    for number, factor in ((2, 0.5), (3, 0.25)):
        term = penalty_of(method, federation, model, server, number)
        assert term(model, batch).item() == pytest.approx(factor * 10 * math.log(3))


def test_the_divergence_teaches_the_network_and_leaves_the_features_target_alone():
    federation = make_federation()
    method = quick(decay=1.0, generative_alpha=0.0, generative_beta=2.0)
    model = federation.networks.initial("cnn-small")
    server = method.server_state(federation, model)
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.copy_(torch.tensor([2.0, 1.0, 1.0]).log())
    outputs = torch.zeros(1, CLASSES, requires_grad=True)
    term = penalty_of(method, federation, model, server, 2)
    loss = term(model, batch_of(outputs, torch.tensor([1])))
    loss.backward()
    # The head says (1/2, 1/4, 1/4) whatever the features, the network thirds.
    expected = 0.5 * math.log(0.5 * 3) + 2 * 0.25 * math.log(0.25 * 3)
    assert loss.item() == pytest.approx(2 * expected)
    torch.testing.assert_close(
        outputs.grad, 2 * (torch.full((1, 3), 1 / 3) - torch.tensor([[0.5, 0.25, 0.25]]))
    )
    assert model.head.bias.grad is None or not model.head.bias.grad.any()


class OneHotFeatures(torch.nn.Module):
    """A generator whose features say the label."""

    classes = CLASSES

    def forward(self, noise, labels):
        return torch.nn.functional.one_hot(labels, FEATURES).float()


def test_the_divergence_compares_outputs_with_features_of_the_batchs_own_labels():
    federation = make_federation()
    model = federation.networks.initial("cnn-small")
    with torch.no_grad():
        model.head.bias.zero_()
        model.head.weight.copy_(LN2 * torch.eye(CLASSES, FEATURES))
    method, targets = (
        quick(decay=1.0, generative_alpha=0.0, generative_beta=1.0),
        torch.tensor([0, 1, 2, 2, 1, 1]),
    )
    term = penalty_of(method, federation, model, {"generator": OneHotFeatures()}, 2)
    # For label y the head says y twice as often as each other class; so do the outputs, or those of
    # the next label.
    outputs = LN2 * torch.eye(CLASSES)[targets]
    assert term(model, batch_of(outputs, targets)).item() == pytest.approx(0, abs=1e-6)
    shifted = batch_of(outputs, (targets + 1) % CLASSES)
    assert term(model, shifted).item() == pytest.approx(LN2 / 4)
