"""The federation: every byte counted, no labels on the server, plans that follow the same path."""

import dataclasses

import pytest
import safetensors.torch
import torch

from fedtables.federation.channel import Transfer, encoded_size
from fedtables.federation.costs import Meter, Work, metering
from fedtables.federation.training.loops import predict
from fedtables.federation.training.plan import TrainingPlan
from tests.federation.tiny import CLASSES, make_federation
from tests.methods.shards import same_bits


@pytest.fixture(scope="module")
def trained():
    """A federation and its clients' models; nothing below changes them."""
    federation = make_federation()
    return federation, federation.local_models()


def test_an_upload_costs_exactly_the_bytes_of_its_encoding(trained):
    _, [model, _] = trained
    federation = make_federation()
    received = federation.upload(federation.clients[1], model)
    raw = safetensors.torch.save(
        {name: tensor.contiguous() for name, tensor in model.state.items()}
    )
    assert [(t.direction, t.kind, t.client, t.bytes) for t in federation.channel.ledger] == [
        ("up", "parameters", 1, len(raw))
    ]
    assert same_bits(received.state, model.state)
    assert dataclasses.replace(received, state=model.state) == model


def test_distillation_imitates_its_targets():
    federation = make_federation(server=TrainingPlan(epochs=40, batch_size=6, lr=0.01))
    targets = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]] * 2)
    model = federation.distill(targets)
    outputs = predict(
        federation.networks.module(model), federation.public.images, normalise=federation.normalise
    )
    assert outputs.argmax(dim=1).tolist() == targets.argmax(dim=1).tolist()
    assert (model.network, model.owner, len(model.history["accuracy"])) == (
        "cnn-small",
        "server",
        40,
    )


def test_label_counts_are_sent_by_every_client():
    federation = make_federation(clients=3)
    counts = federation.label_counts()
    assert counts.tolist() == [[6, 6, 0], [0, 6, 6], [6, 0, 6]]
    size = encoded_size({"counts": torch.zeros(CLASSES, dtype=torch.int64)})
    assert federation.channel.ledger == [
        Transfer(0, "up", "labels", client, size) for client in range(3)
    ]


def test_planning_follows_the_same_path_without_weights_or_content():
    real, planned = make_federation(), make_federation(device="meta")
    with metering(Meter()) as meter:
        models = planned.local_models()
        for client, model in zip(planned.clients, models, strict=True):
            planned.upload(client, model)
        outputs = planned.public_outputs(models[0])
        planned.distill(outputs.softmax(dim=1))
    for client, model in zip(real.clients, real.local_models(), strict=True):
        real.upload(client, model)
    assert planned.channel.ledger == real.channel.ledger
    assert (outputs.shape, outputs.is_meta) == ((6, CLASSES), True)
    assert meter.work.training_samples == 2 * 12 * 3 + 6 * 2
    assert (
        meter.work.predicted_samples == 2 * 6 * 3 + 6 + 6 * 2
    )  # test set per epoch, public outputs, test set per epoch


def test_rounds_are_counted_from_one_and_booked_by_the_channel():
    lines = []
    federation = make_federation(progress=lambda text, share: lines.append((text, share)))
    numbers = []
    for number in federation.rounds(4):
        federation.channel.up(0, "labels", {"x": torch.tensor(1)})
        numbers.append(number)
    assert numbers == [1, 2, 3, 4]
    assert [transfer.round for transfer in federation.channel.ledger] == [1, 2, 3, 4]
    assert lines == [("round 1/4", 0), ("round 2/4", 0.25), ("round 3/4", 0.5), ("round 4/4", 0.75)]


def test_a_plan_follows_like_rounds_once_and_others_one_by_one():
    federation = make_federation(device="meta")
    with metering(Meter()) as meter:
        followed = [(number, meter.times) for number in federation.rounds(5, alike=True)]
        others = [(number, meter.times) for number in federation.rounds(5)]
    assert followed == [(1, 5)]
    assert others == [(number, 1) for number in range(1, 6)]
    assert meter.times == 1


def test_steps_are_counted_from_zero_and_followed_once_by_a_plan():
    assert list(make_federation().steps(3)) == [0, 1, 2]
    federation = make_federation(device="meta")
    with metering(Meter()) as meter:
        assert list(federation.steps(7)) == [0]
        assert list(federation.steps(0)) == []
        for _ in federation.rounds(3, alike=True):
            for _ in federation.steps(4):
                meter.book(Work(flops=1), 0, 1)
    assert (meter.work.flops, meter.times) == (12, 1)


def test_steps_of_one_name_are_followed_once_and_booked_in_every_round():
    federation = make_federation(device="meta")
    weights, inputs = (torch.empty(shape, device="meta") for shape in ((3, 5), (2, 3)))
    followed = 0
    with metering(Meter()) as meter:
        for _ in federation.rounds(4):
            for _ in federation.steps(7, name="same"):
                followed += 1
                federation.channel.up(0, "logits", {"x": inputs @ weights})
        once = federation.channel.ledger[0]
        assert (followed, meter.work.flops) == (1, 4 * 7 * 2 * 2 * 3 * 5)
        assert [(t.round, t.messages, t.bytes) for t in federation.channel.ledger] == [
            (number, 7, once.bytes) for number in range(1, 5)
        ]
        meter.kind = "another method"
        assert list(federation.steps(7, name="same")) == [0]
