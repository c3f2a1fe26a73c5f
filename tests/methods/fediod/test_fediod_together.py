"""FedIOD's clients as one computation: a fit has the numbers and bytes of one after another, and
goes on from its snapshots.
"""

import copy
from dataclasses import astuple

import pytest
import torch

from federation.caching.snapshots import Snapshots
from federation.channel import Channel
from federation.costs import Meter, metering
from federation.training.augmentation import Augmentation
from federation.training.execution import Execution
from methods.fediod import FedIOD
from methods.fediod.parties import Node, make_server
from methods.fediod.together import make_parties
from tests.federation.tiny import make_client, make_federation
from tests.methods.shards import client_with, distance, same_bits, uneven_clients


def quick(**changes):
    sizes = {"epochs": 2, "steps": 3, "batch_size": 4, "latent": 5, "samples": 7}
    return FedIOD(**{**sizes, "width": 4, "discriminator_width": 4, **changes})


def several():
    """Five clients with two networks, and one without samples."""
    others = [client_with(5, []), client_with(6, [0, 1, 2], "resnet8-narrow")]
    return [*uneven_clients(), *others, client_with(7, [2, 0] * 2, "resnet8-narrow")]


def fitted(stacked, method, precision="fp32", **changes):
    channel = Channel()
    how = Execution(precision, stacked=stacked)
    federation = make_federation(several(), execution=how, channel=channel, **changes)
    return method.fit(federation), sorted(map(astuple, channel.ledger))


FIELDS = {
    "paper": {},
    "Eq. 2 as printed": {"logarithmic": False},
    "discriminators alone": {"mimic": 0.0, "confidence": 0.0, "uniqueness": 0.0},
    "authors": {"student_steps": 2, "weights": "class-count", "diversity": 1.0},
    "augmented": {"augment_own": True},
}


@pytest.mark.parametrize("stacked", [3, 20])
@pytest.mark.parametrize("fields", FIELDS.values(), ids=FIELDS)
def test_a_fit_of_clients_together_is_that_of_one_after_another_with_the_same_bytes(
    fields, stacked
):
    how = Augmentation(crop=1, horizontal_flip=True)
    (alone, sent_alone), (together, sent) = (
        fitted(n, quick(**fields), augmentation=how) for n in (1, stacked)
    )
    torch.testing.assert_close(dict(together.state), dict(alone.state), rtol=1e-3, atol=1e-4)
    assert (together.samples.int() - alone.samples.int()).abs().max() <= 1
    assert sent == sent_alone
    longer = quick(**{**fields, "epochs": 3})
    assert distance(alone.state, fitted(1, longer, augmentation=how)[0].state) > 0.01


def test_in_bf16_a_fit_is_as_near_to_that_of_one_after_another_as_its_digits_are():
    alone, together = (fitted(n, quick(), "bf16")[0].state for n in (1, 3))
    initial = make_federation(several()).networks.initial().state_dict()
    assert 0 < distance(alone, together) < 0.1 * distance(alone, initial)


def test_clients_together_repeat_themselves_to_the_last_bit():
    first, again = (fitted(3, quick())[0] for _ in range(2))
    assert same_bits(first.state, again.state)
    assert torch.equal(first.samples, again.samples)


def test_who_is_left_over_is_by_itself_and_teachers_are_together_by_network():
    groups = make_parties(quick(), make_federation(several(), execution=Execution(stacked=3)))
    *groups, last = groups
    assert [[client.index for client in group.clients] for group in groups] == [
        [0, 1, 2],
        [3, 4, 6],
    ]
    teachers = [
        {name: len(stack.weights) for name, stack in group.teachers.items()} for group in groups
    ]
    assert teachers == [{"cnn-small": 3}, {"cnn-small": 2, "resnet8-narrow": 1}]
    assert isinstance(last, Node)
    assert last.client.index == 7


def test_one_by_one_no_client_is_in_a_group():
    parties = make_parties(quick(), make_federation(3))
    assert [type(party) for party in parties] == [Node] * 3


def after_a_step(method, stacked):
    federation = make_federation(3, execution=Execution(stacked=stacked))
    parties = make_parties(method, federation)
    server = make_server(method, federation)
    for party in parties:
        party.begin_epoch(1)
    latents = federation.streams.shuffling("fediod latents", 1)
    method.distillation_step(federation, server, parties, latents)
    return [party.discriminator.module for party in parties] if stacked == 1 else parties[0]


def test_after_a_step_every_discriminator_is_what_it_would_be_alone():
    """Each by its own images and draws, with what BatchNorm notes of three passes."""
    method = quick(generator_lr=1e-4)
    alone, group = (after_a_step(method, stacked) for stacked in (1, 3))
    together = copy.deepcopy(alone)
    for module in together:
        torch.nn.init.zeros_(module.layers[0].weight)
    group.discriminators.module.write_to(together)
    expected, found = ([module.state_dict() for module in own] for own in (alone, together))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    assert found[0]["layers.3.num_batches_tracked"] == 3
    assert distance(found[0], found[1]) > 1e-3


class PowerCutError(Exception):
    """Not a bug."""


def test_a_fit_of_clients_together_goes_on_after_its_last_snapshot(tmp_path):
    def fit(folder=None, cut=False):
        begun = []

        def progress(text, share):
            if text.startswith("round "):
                begun.append(text)
            if cut and text.startswith("round 3/"):
                raise PowerCutError

        federation = make_federation(5, execution=Execution(stacked=2), progress=progress)
        if folder is not None:
            federation.stages.snapshots = Snapshots(folder / "snapshot", every=0)
        return quick(epochs=4).fit(federation), federation.channel.ledger, begun

    whole, sent, _ = fit()
    with pytest.raises(PowerCutError):
        fit(tmp_path, cut=True)
    resumed, sent_again, begun = fit(tmp_path)
    assert begun == ["round 3/4", "round 4/4"]
    assert same_bits(resumed.state, whole.state)
    assert resumed.history == whole.history
    assert sent_again == sent


def test_a_plan_books_the_same_work_and_bytes():
    booked = []
    for stacked in (1, 2):
        clients = [make_client(k, device="meta") for k in range(3)]
        federation = make_federation(clients, "meta", execution=Execution(stacked=stacked))
        with metering(Meter()) as meter:
            quick().fit(federation)
        booked.append((meter.work, meter.peak_bytes, federation.channel.ledger))
    assert booked[0] == booked[1]
