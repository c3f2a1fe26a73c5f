"""Transfer learning: whose encoder it begins with, what learns, and that a teacher's weights
cross.
"""

import pytest

from fedtables.baselines.transfer import Transfer
from fedtables.federation.seeds import Seeds
from fedtables.models.cut import decoder_parameters
from tests.methods.private_servers import private_servers
from tests.methods.shards import recorded, same_bits


def encoder(federation, state):
    decoder = decoder_parameters(federation.networks.initial())
    return {name: tensor for name, tensor in state.items() if name not in decoder}


def decoder(federation, state):
    return {name: state[name] for name in decoder_parameters(federation.networks.initial())}


@pytest.mark.parametrize("network", ["cnn-small", "resnet8-narrow"])
def test_a_frozen_encoder_stays_to_the_bit_and_another_does_not(network):
    federation = private_servers(3, network=network)
    received = encoder(federation, federation.stages.teachers()[0].state)
    frozen = Transfer(teacher=1, frozen=True).fit(federation)
    assert same_bits(encoder(federation, frozen.state), received)
    assert not same_bits(
        decoder(federation, frozen.state),
        decoder(federation, federation.networks.initial(network).state_dict()),
    )
    whole = encoder(federation, Transfer(teacher=1).fit(federation).state)
    assert not any(
        (whole[name] == tensor).all() for name, tensor in received.items() if tensor.numel() > 1
    )


def test_one_teacher_sends_its_weights_and_nobody_else_anything():
    federation = private_servers(3)
    _, [(sent, tensors)] = recorded(Transfer(teacher=3), federation)
    assert (sent.direction, sent.client, sent.kind) == ("up", 2, "parameters")
    assert same_bits(tensors, federation.stages.teachers()[2].state)


def test_without_a_number_the_sampling_axis_draws_the_teacher():
    def drawn(seeds):
        federation = private_servers(3, seeds=seeds)
        Transfer().fit(federation)
        return federation.channel.ledger[0].client

    found = [drawn(Seeds(sampling=seed)) for seed in range(8)]
    assert set(found) == {0, 1, 2}
    assert found[:3] == [drawn(Seeds(sampling=seed)) for seed in range(3)]


def test_a_teacher_that_there_is_none_of_is_refused():
    with pytest.raises(ValueError, match=r"there are 3 teachers; transfer\.teacher is 4"):
        Transfer(teacher=4).fit(private_servers(3))


def test_a_teacher_of_another_network_is_refused():
    with pytest.raises(ValueError, match="encoders differ"):
        Transfer(teacher=1).fit(private_servers(2, teachers="resnet8-narrow"))
