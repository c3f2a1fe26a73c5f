"""FedAvg+: everybody teaches in every round, weighted by how much they hold."""

import torch

from fedtables.baselines.fedavg_plus import FedAvgPlus
from fedtables.federation.channel import encoded_size
from fedtables.federation.costs import Meter, metering
from fedtables.federation.execution import Execution
from fedtables.federation.shared.averaging import average_states
from fedtables.methods.fedsa import FedSA
from tests.methods.private_servers import private_server, private_servers, quick
from tests.methods.shards import booked, recorded, same_bits


def uneven(device="cpu"):
    return [
        private_server(index, samples=samples, device=device)
        for index, samples in enumerate((4, 12, 8))
    ]


def test_the_target_is_the_mean_of_the_students_by_their_teachers_samples():
    _, kept = recorded(quick(FedAvgPlus, rounds=2), private_servers(uneven()))
    up = [tensors for t, tensors in kept if (t.round, t.direction) == (1, "up")]
    down = [tensors for t, tensors in kept if (t.round, t.direction) == (2, "down")]
    for name, tensor in down[0].items():
        torch.testing.assert_close(
            tensor, (4 * up[0][name] + 12 * up[1][name] + 8 * up[2][name]) / 24
        )
    assert all(same_bits(sent, average_states(up, [1, 3, 2])) for sent in down)


def test_nothing_but_the_student_crosses_once_each_way_in_every_round():
    federation = private_servers(3)
    quick(FedAvgPlus, rounds=4).fit(federation)
    student = encoded_size(federation.networks.initial().state_dict())
    assert booked(federation) == {
        (number, way, "parameters", client): (student, 1)
        for number in range(1, 5)
        for client in range(3)
        for way in ("down", "up")
    }


def test_a_share_of_the_teachers_takes_part_in_a_round():
    federation = private_servers(3)
    quick(FedAvgPlus, rounds=6, participation=0.4).fit(federation)  # round(1.2) of three
    taking_part = [t.client for t in federation.channel.ledger if t.direction == "up"]
    assert len(taking_part) == 6
    assert len({*taking_part}) > 1


def test_a_teacher_looks_at_its_private_images_once_in_however_many_rounds():
    def predicted(rounds):
        with metering(Meter()) as meter:
            quick(FedAvgPlus, rounds=rounds).fit(private_servers(uneven("meta"), device="meta"))
        return meter.work.predicted_samples

    assert predicted(1) == predicted(5) == 4 + 12 + 8 + 30  # and the test set in the end


def test_the_target_learns_from_the_probe_set_once_before_and_is_fine_tuned_once_after(monkeypatch):
    federation, trained = private_servers(2), []
    federation.stages.teachers()
    train, train_on_clients = federation.train, federation.train_on_clients
    monkeypatch.setattr(
        federation,
        "train",
        lambda *arguments, **options: (
            trained.append((federation.channel.round, arguments[5])),
            train(*arguments, **options),
        ),
    )
    monkeypatch.setattr(
        federation,
        "train_on_clients",
        lambda group, *arguments, **options: (
            trained.extend((federation.channel.round, "client") for _ in group),
            train_on_clients(group, *arguments, **options),
        ),
    )
    quick(FedAvgPlus, rounds=3).fit(federation)
    clients = [(number, "client") for number in (1, 2, 3) for _ in range(2)]
    assert trained == [(1, "weak"), *clients, (3, "adaptation")]


def test_visits_side_by_side_are_visits_one_after_another():
    teachers = ("cnn-small", "resnet8-narrow", "cnn-small")
    alone, stacked = (
        quick(FedAvgPlus, rounds=2)
        .fit(
            private_servers(
                [private_server(k, kind) for k, kind in enumerate(teachers)],
                execution=Execution(stacked=count),
            )
        )
        .state
        for count in (1, 2)
    )
    assert same_bits(alone, stacked)


def test_it_is_fedsa_with_another_choice():
    """With teachers that hold as much as each other, choosing all of them is the same thing."""
    plain = quick(FedAvgPlus, rounds=2).fit(private_servers(3))
    others = {"rounds": 2, "selection": "fixed", "retrain": False, "adaptation": "fine-tune"}
    three, two = (quick(FedSA, **others, selected=k).fit(private_servers(3)).state for k in (3, 2))
    apart = [
        max(float((tensor - plain.state[name]).abs().max()) for name, tensor in found.items())
        for found in (three, two)
    ]
    assert apart[0] < 5e-3  # sums round otherwise, which BatchNorm carries on
    assert apart[1] > 2e-2
    assert plain.history["accuracy"][-1] >= 0.9
