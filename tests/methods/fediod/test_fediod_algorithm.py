"""FedIOD's Algorithm 1, and every byte that crosses in it."""

import pytest
import torch

from fedtables.federation.augmentation import Augmentation
from fedtables.federation.channel import encoded_size
from fedtables.federation.data import PublicData
from fedtables.federation.training.inputs import augmented
from fedtables.methods.fediod import FedIOD
from fedtables.methods.fediod.losses import entropy
from tests.federation.tiny import CLASSES, make_federation
from tests.methods.fediod.cases import LN3, PI, patch_logits
from tests.methods.shards import booked, client_with, recorded, same_bits, size, uneven_clients


def test_the_generator_is_confident_unique_realistic_and_hard_to_mimic():
    # Algorithm 1: L_conf + L_unique - L_mimic - sum of L_gan. The first sample parts the clients,
    # on the second they agree.
    certain = 50.0
    logits = torch.tensor(
        [[[certain, 0.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, certain, 0.0], [0.0, 0.0, 0.0]]]
    )
    conf, unique, gan = LN3 / 2, -entropy(PI).item() / 2, 0.75 * 0.5 + 0.25 * 0.75
    loss = FedIOD(logarithmic=False).generator_loss(logits, patch_logits(), torch.tensor(0.125), PI)
    assert loss.item() == pytest.approx(conf + unique - 0.125 + gan, abs=1e-6)
    ablated = FedIOD(
        gan=2.0, mimic=0.0, confidence=3.0, uniqueness=0.0, gan_weights="average", logarithmic=False
    )
    loss = ablated.generator_loss(logits, patch_logits(), torch.tensor(0.125), PI)
    assert loss.item() == pytest.approx(3 * conf + 2 * (0.5 + 0.75) / 2, abs=1e-6)


# -- what crosses --


def quick(**changes):
    sizes = {"epochs": 2, "steps": 3, "batch_size": 4, "latent": 5, "samples": 7}
    return FedIOD(**{**sizes, "width": 4, "discriminator_width": 4, **changes})


def ledger(federation, **changes):
    quick(**changes).fit(federation)
    return booked(federation)


IMAGES, LOGITS = size("images", 4, 1, 8, 8), size("outputs", 4, CLASSES)
SCORES, OWN = size("outputs", 4, 2, 2), size("own")
GRADIENTS = encoded_size({"0": torch.empty(4, CLASSES), "1": torch.empty(4, 2, 2)})


def expected_ledger(rounds=2, steps=3, clients=2, gradients=GRADIENTS, asked_again=0):
    """Every step asks each client once for everything and `asked_again` times for logits."""
    found = {}
    for k in range(clients):
        found[0, "up", "labels", k] = (size("counts", CLASSES, dtype=torch.long), 1)
        for number in range(1, rounds + 1):
            asked, scored = steps * (1 + asked_again), steps * (SCORES + OWN)
            found[number, "down", "images", k] = (asked * IMAGES, asked)
            found[number, "up", "logits", k] = (asked * LOGITS, asked)
            found[number, "up", "discriminator-outputs", k] = (scored, 2 * steps)
            found[number, "down", "gradients", k] = (steps * gradients, steps)
            found[number, "up", "gradients", k] = (steps * IMAGES, steps)
    return found


def test_a_step_sends_images_down_outputs_up_and_gradients_both_ways_to_the_byte():
    assert ledger(make_federation()) == expected_ledger()


def test_where_no_loss_asks_for_logits_their_gradients_do_not_cross():
    found = ledger(make_federation(), mimic=0.0, confidence=0.0, uniqueness=0.0)
    assert found == expected_ledger(gradients=size("1", 4, 2, 2))


@pytest.mark.parametrize("term", ["mimic", "confidence", "uniqueness", "diversity", "balance"])
def test_each_loss_of_logits_sends_their_gradients(term):
    weights = {"mimic": 0.0, "confidence": 0.0, "uniqueness": 0.0, term: 1.0}
    assert ledger(make_federation(), epochs=1, **weights) == expected_ledger(rounds=1)


def test_five_student_steps_ask_for_the_logits_of_five_more_batches():
    found = ledger(make_federation(), student_steps=5, weights="class-count")
    assert found == expected_ledger(asked_again=5)


def test_an_epoch_has_as_many_steps_as_the_largest_client_has_batches():
    # The largest has ten samples: three batches of four.
    found = ledger(make_federation(uneven_clients()), steps=0)
    assert found == expected_ledger(steps=3, clients=5)


def test_every_client_gets_the_same_images_and_fresh_ones_in_every_step():
    _, sent = recorded(quick(), make_federation())
    received = [
        [x["images"] for t, x in sent if (t.client, t.direction, t.kind) == (k, "down", "images")]
        for k in (0, 1)
    ]
    assert len(received[0]) == 2 * 3
    assert all(torch.equal(a, b) for a, b in zip(received[0], received[1], strict=True))
    assert not any(torch.equal(a, b) for i, a in enumerate(received[0]) for b in received[0][:i])
    values = torch.stack(received[0]) * 0.25 + 0.5  # generated in [0, 1], then normalised
    assert 0 <= values.min() < 0.5 < values.max() <= 1


@pytest.mark.parametrize("weights", ["eq8", "eq8-own"])
def test_the_ensembles_weights_are_constants_to_the_generator(weights):
    """Without L_gan nothing else that the generator learns from depends on the discriminators'
    scores.
    """
    _, sent = recorded(quick(gan=0.0, weights=weights), make_federation())
    seen = [tensors for t, tensors in sent if (t.direction, t.kind) == ("down", "gradients")]
    assert len(seen) == 2 * 2 * 3
    assert all(tensors["0"].any() for tensors in seen)
    assert not any(tensors["1"].any() for tensors in seen if "1" in tensors)


def test_clients_answer_with_the_logits_of_the_models_they_trained():
    # With BatchNorm, which would give away training.
    clients = [client_with(k, [0, 1, 2] * 4, "resnet8-narrow") for k in range(2)]
    federation = make_federation(clients)
    _, messages = recorded(quick(), federation)
    for client, model in zip(federation.clients, federation.local_models(), strict=True):
        own = [(t, tensors) for t, tensors in messages if t.client == client.index]
        images = [
            tensors["images"] for t, tensors in own if (t.direction, t.kind) == ("down", "images")
        ]
        logits = [tensors["outputs"] for t, tensors in own if t.kind == "logits"]
        teacher = federation.networks.module(model)
        assert len(images) == len(logits) == 6
        for batch, answer in zip(images, logits, strict=True):
            torch.testing.assert_close(answer, teacher(batch).detach(), atol=1e-4, rtol=1e-4)


# -- what it leaves, and what it refuses --


def test_public_images_are_not_needed_and_samples_change_nothing():
    nothing = PublicData(torch.empty(0, 1, 8, 8, dtype=torch.uint8), "nothing")
    none = quick(samples=0).fit(make_federation(public=nothing))
    some = quick(samples=501).fit(make_federation())
    assert same_bits(none.state, some.state)
    assert none.samples is None
    assert (some.samples.shape, some.samples.dtype) == ((501, 1, 8, 8), torch.uint8)


def test_a_clients_own_images_are_cropped_and_flipped_for_its_discriminator_and_never_holed(
    monkeypatch,
):
    seen = []

    def look(images, how, *others):
        seen.append(how)
        return augmented(images, how, *others)

    monkeypatch.setattr("fedtables.methods.fediod.parties.augmented", look)
    changes = {"augmentation": Augmentation(crop=1, horizontal_flip=True, cutout=4)}
    first = quick(augment_own=True).fit(make_federation(**changes))
    assert seen == [Augmentation(crop=1, horizontal_flip=True)] * (2 * 2 * 3)
    seen.clear()
    assert not same_bits(quick().fit(make_federation(**changes)).state, first.state)
    quick(augment_own=True).fit(make_federation())
    assert set(seen) == {None}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"student_steps": 5, "weights": "eq8"}, "weights 'eq8'.*extra student steps"),
        ({"student_steps": 5, "weights": "eq8-own"}, "weights 'eq8-own'.*extra student steps"),
        ({"optimizer": "sizes"}, "unknown"),
        ({"gan_weights": "sizes"}, "unknown"),
    ],
)
def test_settings_that_cannot_be_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        quick(**fields)
