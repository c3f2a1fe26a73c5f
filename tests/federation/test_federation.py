"""The federation: rounds and steps, and plans that follow them."""

import torch

from fedtables.federation.costs import Meter, Work, metering
from tests.federation.tiny import make_federation


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
