"""Clients trained as one computation end where each would end alone."""

import copy
from dataclasses import astuple

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from federation.channel import Channel
from federation.parts.stacked import Stack, TrainingSet, train_stacked
from federation.training.augmentation import Augmentation
from federation.training.execution import Execution
from federation.training.loops import (
    DivergedError,
    Normalisation,
    SteadyPenalty,
    TrainingPlan,
    train,
)
from methods.fedavg import FedAvg
from methods.fedprox import FedProx
from tests.federation.tiny import CLASSES, bright_images, make_federation
from tests.methods.shards import distance, same_bits, uneven_clients

NORMALISE = Normalisation((0.5,), (0.25,))
UNEVEN = (10, 16, 4, 12, 3)
"""In batches of four: a smaller last batch, the most batches, a single one, three full ones, and
none that is full."""


def sgd(epochs=2, lr=0.05, **changes):
    return TrainingPlan(epochs, 4, lr, optimizer="sgd", **changes)


def network(seed):
    """Smooth, since a rounding error about the kink of a ReLU would be a different step; in the
    layout of all networks here.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3, bias=False),
            nn.BatchNorm2d(4),
            nn.Tanh(),
            nn.Conv2d(4, 6, 3, bias=False),
            nn.BatchNorm2d(6),
            nn.Tanh(),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(24, CLASSES),
        )
    return model.to(memory_format=torch.channels_last)


def shards(sizes):
    labels = [torch.arange(size) % CLASSES for size in sizes]
    return [TrainingSet(bright_images(own, seed), own) for seed, own in enumerate(labels)]


def cross_entropy(outputs, targets):
    return F.cross_entropy(outputs, targets, reduction="none")


def generators(count):
    return [torch.Generator().manual_seed(100 + k) for k in range(count)]


def one_after_another(sizes, plan, **changes):
    models = [network(k) for k in range(len(sizes))]
    for model, shard, generator in zip(models, shards(sizes), generators(len(sizes)), strict=True):
        train(
            model,
            shard.images,
            shard.targets,
            cross_entropy,
            plan,
            normalise=NORMALISE,
            generator=generator,
            **changes,
        )
    return [model.state_dict() for model in models]


def together(sizes, plan, **changes):
    models = [network(k) for k in range(len(sizes))]
    train_stacked(
        models,
        shards(sizes),
        cross_entropy,
        plan,
        normalise=NORMALISE,
        generators=generators(len(sizes)),
        **changes,
    )
    return [model.state_dict() for model in models]


def close(first, second):
    torch.testing.assert_close(first, second, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "plan",
    [
        sgd(),
        sgd(momentum=0.9, weight_decay=0.01),
        sgd(clip_norm=0.3),
        sgd(epochs=4, schedule="cosine", final_lr=0.001),
        TrainingPlan(2, 4, lr=1e-3, weight_decay=0.01),
        TrainingPlan(1, 4, lr=1e-4, optimizer="rmsprop"),
    ],
    ids=["sgd", "momentum and decay", "limited norm", "cosine", "adam", "rmsprop"],
)
def test_weights_and_statistics_of_uneven_clients_are_those_of_one_after_another(plan):
    start = [network(k).state_dict() for k in range(len(UNEVEN))]
    found = together(UNEVEN, plan)
    close(found, one_after_another(UNEVEN, plan))
    assert all(distance(a, b) > 0.01 for a, b in zip(found, start, strict=True))


def test_in_bf16_they_end_where_bf16_ends_one_after_another():
    bf16 = Execution(precision="bf16")
    alone, stacked = (
        run(UNEVEN, sgd(epochs=3), execution=bf16) for run in (one_after_another, together)
    )
    exact = together(UNEVEN, sgd(epochs=3))
    for position, (own, other, fp32) in enumerate(zip(alone, stacked, exact, strict=True)):
        moved = distance(own, network(position).state_dict())
        assert distance(own, other) < 0.02 * moved  # 2^-8 is the last digit of bf16
        assert distance(other, fp32) > 0  # and it is bf16
        assert all(tensor.dtype != torch.bfloat16 for tensor in other.values())


def test_every_clients_batches_are_counted_by_its_own_batchnorm():
    # Ten samples make three batches of at most four, sixteen four, four one, twelve three and three
    # one; two epochs.
    assert [state["1.num_batches_tracked"].item() for state in together(UNEVEN, sgd())] == [
        6,
        8,
        2,
        6,
        2,
    ]


def test_a_lonely_last_sample_is_left_out():
    found = together((5, 9, 8), sgd())
    close(found, one_after_another((5, 9, 8), sgd()))
    assert [state["1.num_batches_tracked"].item() for state in found] == [2, 4, 4]


def test_clients_of_one_size_are_the_same_too():
    close(together((8, 8, 8), sgd(momentum=0.9)), one_after_another((8, 8, 8), sgd(momentum=0.9)))


def test_every_client_draws_its_own_augmentation():
    how = Augmentation(rotation=20, shift=0.1, channel_shift=0.2)
    found = together(UNEVEN, sgd(), augmentation=how)
    close(found, one_after_another(UNEVEN, sgd(), augmentation=how))
    assert all(distance(a, b) > 1e-3 for a, b in zip(found, together(UNEVEN, sgd()), strict=True))


def test_a_client_alone_is_trained_as_ever():
    close(together((10,), sgd(momentum=0.9)), one_after_another((10,), sgd(momentum=0.9)))


def test_a_client_without_samples_keeps_its_weights():
    empty, other = together((0, 8), sgd())
    assert same_bits(empty, network(0).state_dict())
    close([other], one_after_another((0, 8), sgd())[1:])


def test_what_is_not_trained_stays_as_it_is():
    models = [network(0), network(1)]
    for model in models:
        model[0].weight.requires_grad_(False)
    before = [copy.deepcopy(model.state_dict()) for model in models]
    train_stacked(
        models, shards((8, 8)), cross_entropy, sgd(), normalise=NORMALISE, generators=generators(2)
    )
    for model, start in zip(models, before, strict=True):
        assert torch.equal(model[0].weight, start["0.weight"])
        assert not torch.equal(model[3].weight, start["3.weight"])


def test_steps_leave_no_history_behind():
    """Or every step would be kept until the last."""
    held = Stack([network(0), network(1)])
    images, targets = torch.rand(2, 4, 1, 8, 8), torch.zeros(2, 4, dtype=torch.int64)
    gradients, losses = held.gradients(cross_entropy, None, images, targets)
    assert not any(t.requires_grad for t in (gradients, losses, *held.buffers()))
    assert held.weights.is_leaf


def test_clients_may_be_trained_again_from_where_they_are():
    def twice(models, run):
        for _ in range(2):
            run(models)
        return [model.state_dict() for model in models]

    held, plan = shards((8, 6)), sgd()

    def alone(models):
        for model, shard, generator in zip(models, held, generators(2), strict=True):
            train(
                model,
                shard.images,
                shard.targets,
                cross_entropy,
                plan,
                normalise=NORMALISE,
                generator=generator,
            )

    def stacked(models):
        train_stacked(
            models, held, cross_entropy, plan, normalise=NORMALISE, generators=generators(2)
        )

    close(twice([network(0), network(1)], stacked), twice([network(0), network(1)], alone))


def test_trained_networks_do_not_hang_together():
    first, second = together((8, 8), sgd())
    before = copy.deepcopy(second)
    for tensor in first.values():
        tensor.zero_()
    assert same_bits(second, before)


def test_what_is_trained_together_can_be_trained_further_alone():
    models = [network(0), network(1)]
    train_stacked(
        models, shards((8, 8)), cross_entropy, sgd(), normalise=NORMALISE, generators=generators(2)
    )
    before = copy.deepcopy(models[1].state_dict())
    shard = shards((8,))[0]
    train(
        models[0],
        shard.images,
        shard.targets,
        cross_entropy,
        sgd(),
        normalise=NORMALISE,
        generator=generators(1)[0],
    )
    assert same_bits(models[1].state_dict(), before)


@pytest.mark.parametrize(
    "sizes", [(8, 8), (8, 3)], ids=["in a batch with others", "in a batch of its own"]
)
def test_a_client_that_diverges_stops_all_naming_the_epoch(sizes):
    models = [network(0), network(1)]
    nn.init.constant_(models[1][-1].weight, torch.inf)
    with pytest.raises(
        DivergedError, match=r"the training loss is nan in epoch 1 of 2; lower lr \(now 0.05\)"
    ):
        train_stacked(
            models,
            shards(sizes),
            cross_entropy,
            sgd(),
            normalise=NORMALISE,
            generators=generators(2),
        )


# -- as one network --


def lines(*slopes, frozen=False):
    """Networks that multiply a number by their slope."""
    networks = [nn.Linear(1, 1, bias=False) for _ in slopes]
    for network, slope in zip(networks, slopes, strict=True):
        nn.init.constant_(network.weight, slope)
        network.requires_grad_(not frozen)
    return networks


def test_each_network_takes_its_own_samples_and_learns_by_them():
    stack = Stack(lines(2.0, 3.0))
    samples = torch.tensor([[1.0], [2.0], [3.0], [4.0]], requires_grad=True)
    outputs = stack(samples)
    assert outputs.flatten().tolist() == [2, 4, 9, 12]
    outputs.sum().backward()
    assert samples.grad.flatten().tolist() == [2, 2, 3, 3]
    assert stack.weights.grad.tolist() == [[1 + 2], [3 + 4]]


def test_frozen_networks_answer_and_are_not_learnt():
    stack = Stack(lines(2.0, 3.0, frozen=True))
    samples = torch.ones(2, 1, requires_grad=True)
    stack(samples).sum().backward()
    assert samples.grad.tolist() == [[2], [3]]
    assert not any(parameter.requires_grad for parameter in stack.parameters())


@pytest.mark.parametrize("training", [True, False])
def test_outputs_and_statistics_are_those_of_each_network_in_the_mode_of_the_first(training):
    alone = [network(k).train(training) for k in range(3)]
    stack = Stack([network(k).train(training) for k in range(3)])
    images = torch.rand(3, 4, 1, 8, 8)
    expected = torch.cat([model(own) for model, own in zip(alone, images, strict=True)])
    close(stack(images.flatten(0, 1)), expected)
    written = [network(9) for _ in range(3)]
    stack.write_to(written)
    close([m.state_dict() for m in written], [m.state_dict() for m in alone])


def test_a_stack_is_kept_as_a_network_is():
    stack, other = Stack([network(0), network(1)]), Stack([network(2), network(3)])
    images = torch.rand(8, 1, 8, 8)
    assert not torch.equal(stack(images), other(images))
    assert set(stack.state_dict()) > {"weights", "1/running_mean", "4/num_batches_tracked"}
    other.load_state_dict(copy.deepcopy(stack.state_dict()))
    assert torch.equal(stack(images), other(images))
    assert same_bits(stack.state_dict(), other.state_dict())


def test_adam_of_the_matrix_is_adam_of_each_network():
    stack, alone = Stack([network(0), network(1)]), [network(0), network(1)]
    optimizers = [torch.optim.Adam(m.parameters(), 1e-3, (0.5, 0.999)) for m in (stack, *alone)]
    for _ in range(3):
        images = torch.rand(2, 4, 1, 8, 8)
        stack(images.flatten(0, 1)).square().sum().backward()
        for model, own in zip(alone, images, strict=True):
            model(own).square().sum().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    written = [network(9), network(9)]
    stack.write_to(written)
    close([m.state_dict() for m in written], [m.state_dict() for m in alone])


# -- in a federation --


class Groups:
    """Which clients a federation trains at once, by what it says of its progress."""

    def __init__(self):
        self.seen = []

    def __call__(self, text, share):
        if "together" in text:
            self.seen.append(int(text.split()[0]))


def fitted(method, stacked, network="cnn-small", lr=0.05, steps="off", **changes):
    channel = Channel()
    federation = make_federation(
        uneven_clients(network),
        network=network,
        local=TrainingPlan(2, 4, lr, "sgd", momentum=0.9),
        channel=channel,
        execution=Execution(stacked=stacked, compile=steps),
        **changes,
    )
    return method.fit(federation), sorted(map(astuple, channel.ledger))


def test_fedavg_of_stacked_clients_is_fedavg_with_the_same_bytes():
    groups = Groups()
    alone, sent_alone = fitted(FedAvg(rounds=2, participation=1.0), 1)
    stacked, sent = fitted(FedAvg(rounds=2, participation=1.0), 3, progress=groups)
    close(dict(stacked.state), dict(alone.state))
    assert sent == sent_alone
    assert groups.seen == [3, 2] * 2  # five clients a round


@pytest.mark.parametrize("stacked", [2, 3, 5, 9])
def test_any_number_of_clients_may_be_stacked(stacked):
    method = FedAvg(rounds=2, participation=0.6)
    close(dict(fitted(method, stacked)[0].state), dict(fitted(method, 1)[0].state))


def test_stacked_clients_augment_as_the_federation_says():
    method, how = FedAvg(rounds=1, participation=1.0), Augmentation(rotation=20, channel_shift=0.2)
    stacked = dict(fitted(method, 3, augmentation=how)[0].state)
    close(stacked, dict(fitted(method, 1, augmentation=how)[0].state))
    assert distance(stacked, dict(fitted(method, 3)[0].state)) > 1e-3


def test_a_last_client_that_is_left_over_is_trained_alone():
    groups = Groups()
    fitted(FedAvg(rounds=1, participation=1.0), 2, progress=groups)
    assert groups.seen == [2, 2]


def test_batchnorms_statistics_are_averaged_of_stacked_clients_too():
    method = FedAvg(
        rounds=1, participation=1.0
    )  # at a low rate, for a rounding error about a ReLU's kink is another step
    alone, stacked = (fitted(method, n, "resnet8-narrow", lr=1e-4)[0].state for n in (1, 3))
    means = [name for name in alone if "running" in name]
    assert means
    for name in means:
        torch.testing.assert_close(stacked[name], alone[name], rtol=1e-3, atol=1e-4)


def test_clients_with_a_penalty_that_is_not_steady_take_no_turns(monkeypatch):
    taken = []

    def penalty(self, federation, client, worker, number, server):
        def term(model, batch):
            taken.append(client.index)
            return batch.outputs.new_zeros(())

        return term if self.mu else SteadyPenalty(term)

    monkeypatch.setattr(FedProx, "penalty", penalty)
    for mu in (0.5, 0.0):
        fitted(FedProx(rounds=1, participation=1.0, mu=mu), 3, steps="graphs")
    one_by_one, in_turns = taken[: len(taken) // 2], taken[len(taken) // 2 :]
    assert one_by_one == sorted(one_by_one) == sorted(in_turns) != in_turns


def test_clients_with_a_penalty_are_trained_one_by_one_to_the_last_bit():
    groups = Groups()
    alone, sent_alone = fitted(FedProx(rounds=2, participation=1.0, mu=0.5), 1)
    stacked, sent = fitted(FedProx(rounds=2, participation=1.0, mu=0.5), 3, progress=groups)
    assert same_bits(dict(stacked.state), dict(alone.state))
    assert sent == sent_alone
    assert groups.seen == []
