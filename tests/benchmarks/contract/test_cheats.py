"""No cheat keeps the contract, but those that docs/adding.md names as out of reach."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from benchmarks import contract
from federation.method import Method
from tests.benchmarks.contract import cheats, closed

DISGUISED = [
    cheats.Renamed,
    cheats.OneImage,
    cheats.Halved,
    cheats.Transposed,
    cheats.Padded,
    cheats.Permuted,
    cheats.Negative,
    cheats.Rounded,
    cheats.BlackAndWhite,
    cheats.Halfs,
    cheats.Smaller,
    cheats.Larger,
    cheats.Projected,
    cheats.Transformed,
    cheats.Keyed,
    cheats.Packed,
    cheats.Means,
    cheats.InTwoHalves,
    cheats.DropByDrop,
    cheats.Targets,
    cheats.Interleaved,
    cheats.Opened,
]


@pytest.mark.parametrize("cheat", DISGUISED, ids=lambda cheat: cheat.__name__)
def test_samples_are_known_in_whatever_form_they_are_sent(cheat):
    with pytest.raises(contract.BrokenContractError, match="sends samples as"):
        contract.keeps_private_samples_private(cheat())


@pytest.mark.parametrize(
    ("cheat", "message"),
    [
        (cheats.Counted, "'labels' depends on its images, not on labels alone"),
        (cheats.ByOrder, "by the order of what it sends"),
        (cheats.ByRank, "by the order of what it sends"),
        (cheats.ByNumber, "order, number or names of messages"),
        (cheats.ByShape, r"by the shapes of [0-9]+ messages"),
    ],
)
def test_samples_are_not_told_beside_the_payload(cheat, message):
    with pytest.raises(contract.BrokenContractError, match=message):
        contract.keeps_private_samples_private(cheat())


@pytest.mark.parametrize(
    ("cheat", "message"),
    [
        (cheats.Pool, "did not cross the channel"),
        (cheats.PersonalPool, "client 0 learns or sends depends on samples of other clients"),
        (cheats.Neighbours, "learns or sends depends on samples of other clients"),
        (cheats.Nested, "what runs on client 0 cannot run on client 1"),
        (cheats.Returned, "samples leave client 0 as what its function returns"),
        (cheats.ShardKept, "functions given to client.run, while they run"),
        (cheats.LabelsByAttribute, "did not cross the channel"),
        (cheats.LabelsByClosure, "did not cross the channel"),
        (cheats.Memory, "did not cross the channel"),
        (cheats.FileKept, "it writes .*fedtables-cheat.txt while it fits"),
        (closed.TestSplit, "the data set digits is closed while a method fits"),
        (closed.FromDisk, "it reads .*digits"),
        (closed.FromMemory, "searches the memory of its process"),
        (closed.Elsewhere, "it starts a process"),
        (closed.TestSet, "no method learns from the test set"),
        (closed.Exits, r"it ends its process \(sys.exit\(0\)\)"),
        (closed.Dies, r"it ends its process \(exit code 0\)"),
    ],
)
def test_nothing_reaches_a_server_or_another_client_around_the_channel(cheat, message):
    with pytest.raises(contract.BrokenContractError, match=message):
        contract.learns_from_clients_only_by_the_channel(cheat())


@pytest.mark.parametrize("cheat", [closed.TestImages, closed.TestMetrics])
def test_the_test_set_tells_nothing(cheat):
    with pytest.raises(contract.BrokenContractError, match="depend on the test set"):
        contract.never_reads_the_test_set(cheat())


def test_labels_of_the_public_set_are_not_read_past_the_oracle():
    with pytest.raises(contract.BrokenContractError, match="labels of the public set"):
        contract.never_reads_public_labels(closed.PublicLabels())


def test_what_was_refused_is_known_even_if_the_method_hides_it():
    with pytest.raises(contract.BrokenContractError, match=r"it reads .*digits"):
        contract.finds_nothing_elsewhere(closed.Quietly())


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
    contract.keeps_private_samples_private(Statistics())
    contract.learns_from_clients_only_by_the_channel(Statistics())


@dataclass(frozen=True)
class Scrambled(cheats.Sender):
    """Out of reach, as docs/adding.md says: numbers in which many pixels interact."""

    def form(self, x):
        drawn = torch.randn(x.numel(), x.numel(), generator=torch.Generator().manual_seed(8))
        return (drawn @ x.flatten()).tanh()


def test_a_code_in_which_many_pixels_interact_is_out_of_reach():
    contract.keeps_private_samples_private(Scrambled())
