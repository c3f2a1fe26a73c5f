"""No cheat that is an honest mistake in disguise keeps the contract."""

from dataclasses import dataclass

import pytest
import torch

from fedtables.benchmarks.contract import promises
from fedtables.benchmarks.contract.fits import BrokenContractError
from fedtables.datasets.access import AccessError
from fedtables.federation.method import Method
from tests.benchmarks.contract import cheats

DISGUISED = [cheats.Sender, cheats.Beside, cheats.Interleaved, cheats.Opened]


@pytest.mark.parametrize("cheat", DISGUISED, ids=lambda cheat: cheat.__name__)
def test_samples_are_known_in_whatever_form_they_are_sent(cheat):
    with pytest.raises(BrokenContractError, match="sends samples as"):
        promises.keeps_private_samples_private(cheat())


@pytest.mark.parametrize("cheat", [cheats.ByNumber, cheats.ByFewer])
def test_the_number_of_messages_does_not_depend_on_samples(cheat):
    message = "order, number or names of messages|send less than before"
    with pytest.raises(BrokenContractError, match=message):
        promises.keeps_private_samples_private(cheat())


@pytest.mark.parametrize(
    ("cheat", "message"),
    [
        (cheats.Pool, "did not cross the channel"),
        (cheats.PersonalPool, "client 1 learns or sends depends on samples of other clients"),
        (cheats.Neighbours, "learns or sends depends on samples of other clients"),
        (cheats.LabelsByAttribute, "did not cross the channel"),
    ],
)
def test_nothing_reaches_a_server_or_another_client_around_the_channel(cheat, message):
    with pytest.raises(BrokenContractError, match=message):
        promises.learns_from_clients_only_by_the_channel(cheat())


@pytest.mark.parametrize(
    ("cheat", "message"),
    [
        (cheats.Returned, "samples leave client 0 as what its function returns"),
        (cheats.ShardKept, "functions given to client.run, while they run"),
        (cheats.TestSplit, "the data set digits is closed while a method fits"),
        (cheats.TestSet, "no method learns from the test set"),
    ],
)
def test_samples_are_sealed_and_data_sets_closed_while_a_method_fits(cheat, message):
    with pytest.raises(AccessError, match=message):
        promises.declares_what_it_sends(cheat())


@pytest.mark.parametrize("cheat", [cheats.TestImages, cheats.TestMetrics, cheats.PublicLabels])
def test_the_test_set_and_hidden_labels_tell_nothing(cheat):
    with pytest.raises(BrokenContractError, match="depend on the test set, or on labels"):
        promises.learns_nothing_hidden(cheat())


@dataclass(frozen=True)
class Statistics(Method):
    """Honest: sends what it learnt, counts, and answers to public images, one of them as votes."""

    sends = frozenset({"features", "labels", "votes", "losses"})

    def fit(self, federation):
        local = federation.local_models()
        federation.label_counts()
        for client, checkpoint in zip(federation.clients, local, strict=True):
            outputs = federation.public_outputs(checkpoint)
            votes = torch.nn.functional.one_hot(outputs.argmax(dim=1), 10)
            model = federation.networks.module(checkpoint)

            def loss(shard, model=model):
                inputs = federation.normalise(shard.images.float() / 255)
                with torch.no_grad():
                    outputs = federation.forward(model, inputs)
                return federation.task.loss(outputs, shard.targets).mean()

            def prototypes(shard, model=model):
                inputs = federation.normalise(shard.images.float() / 255)
                with torch.no_grad():
                    return federation.forward(model, inputs).tanh().mean(dim=0)

            channel = federation.channel
            channel.up(client.index, "votes", {"votes": votes})
            channel.up(client.index, "losses", {"loss": client.run(loss)})
            channel.up(client.index, "features", {"mean": client.run(prototypes)})
        return federation.networks.initial()


def test_statistics_of_what_was_learnt_are_no_samples():
    promises.keeps_private_samples_private(Statistics())
    promises.learns_from_clients_only_by_the_channel(Statistics())
