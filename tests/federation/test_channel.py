"""The channel: every byte is counted as it is encoded, and nothing is shared across it."""

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedtables.federation.channel import Channel, Packed, Transfer, encode, encoded_size
from fedtables.federation.costs import Meter, metering

DTYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
]


def test_the_size_of_one_small_tensor_by_hand():
    # 8 bytes of length, the header {"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}} of 54
    # padded to 56, 12 of data.
    assert encoded_size({"a": torch.zeros(3)}) == 8 + 56 + 12


LAYOUTS = {
    "contiguous": lambda tensor: tensor,
    "channels last": lambda tensor: (
        tensor.contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor
    ),
    "transposed": lambda tensor: tensor.transpose(0, -1) if tensor.dim() else tensor,
    "every other": lambda tensor: tensor[::2] if tensor.dim() else tensor,
    "expanded": lambda tensor: tensor.expand(3, *tensor.shape),
}
PAYLOAD = st.dictionaries(
    st.one_of(
        st.text(min_size=1, max_size=12),
        st.sampled_from(['a "quoted" name', "größe", "back\\slash", "tab\t", "重み"]),
    ),
    st.tuples(
        st.sampled_from(DTYPES),
        st.sampled_from([(), (0,), (3,), (2, 0, 3), (5, 4), (2, 3, 4, 5)]),
        st.sampled_from(list(LAYOUTS)),
    ),
    max_size=8,
).filter(lambda layout: "__metadata__" not in layout)


def content(shape, dtype, seed):
    numbers = torch.randint(0, 200, shape, generator=torch.Generator().manual_seed(seed))
    return numbers % 2 == 0 if dtype == torch.bool else numbers.to(dtype)


@settings(deadline=None, max_examples=60)
@given(PAYLOAD)
def test_the_encoding_of_any_payload_is_that_of_the_library_byte_for_byte(layout):
    tensors = {
        name: LAYOUTS[how](content(shape, dtype, k))
        for k, (name, (dtype, shape, how)) in enumerate(layout.items())
    }
    encoded = encode(tensors)
    assert encoded == safetensors.torch.save(
        {name: tensor.contiguous() for name, tensor in tensors.items()}
    )
    assert encoded_size(tensors) == len(encoded)
    decoded = safetensors.torch.load(encoded)
    assert decoded.keys() == tensors.keys()
    assert all(
        decoded[name].equal(tensor) and decoded[name].dtype == tensor.dtype
        for name, tensor in tensors.items()
    )


def test_what_is_received_shares_no_memory_with_what_was_sent():
    sent = {"w": torch.zeros(3)}
    channel = Channel()
    channel.up(0, "logits", sent)["w"].fill_(1)
    channel.down(0, "logits", sent)["w"].fill_(1)
    assert sent["w"].tolist() == [0, 0, 0]


def test_a_packed_message_reaches_every_client_as_it_was_when_the_first_got_it():
    channel, weights = Channel(), torch.ones(3)
    sent = Packed(x=weights)
    first = channel.down(0, "parameters", sent)["x"]
    first += 1
    weights += 5
    assert channel.down(1, "parameters", sent)["x"].tolist() == [1, 1, 1]
    assert [line.bytes for line in channel.ledger] == 2 * [encoded_size({"x": weights})]


def test_messages_of_one_round_direction_kind_and_client_are_one_line_of_the_ledger():
    channel = Channel()
    small, large = {"x": torch.zeros(1)}, {"x": torch.zeros(1000)}
    a, b = encoded_size(small), encoded_size(large)
    channel.up(0, "logits", small)
    channel.up(1, "logits", small)
    channel.up(0, "logits", large)
    channel.up(0, "labels", small)
    channel.down(0, "logits", small)
    channel.round = 1
    channel.up(0, "logits", small)
    assert channel.ledger == [
        Transfer(0, "up", "logits", 0, a + b, 2),
        Transfer(0, "up", "logits", 1, a),
        Transfer(0, "up", "labels", 0, a),
        Transfer(0, "down", "logits", 0, a),
        Transfer(1, "up", "logits", 0, a),
    ]
    assert channel.ledger[1].messages == 1


def test_a_restored_ledger_counts_as_it_is_also_in_a_plan_of_repeated_steps():
    channel, ledger = Channel(), [(1, "up", "logits", 0, 70, 7)]
    meter = Meter()
    with metering(meter), meter.repeated(5):
        channel.load_state_dict(ledger)
    assert channel.state_dict() == ledger


@pytest.mark.parametrize("send", [Channel.up, Channel.down])
def test_an_unknown_kind_is_refused_and_not_booked(send):
    channel = Channel()
    with pytest.raises(
        ValueError, match=r"unknown payload kind 'secrets'; known: attention, .*parameters"
    ):
        send(channel, 0, "secrets", {"x": torch.zeros(1)})
    assert channel.ledger == []


def test_what_delivers_sees_every_message_with_its_content_and_may_put_another_in_its_place():
    seen = []

    def deliver(transfer, tensors):
        seen.append((transfer.direction, transfer.client, tensors["x"].item()))
        return {"x": tensors["x"] + 1}

    channel = Channel(deliver)
    assert channel.up(4, "labels", {"x": torch.tensor(7)}) == {"x": 8}
    channel.down(5, "labels", {"x": torch.tensor(8)})
    assert seen == [("up", 4, 7), ("down", 5, 8)]
