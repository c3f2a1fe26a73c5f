"""FedIOD's Algorithm 1, and every byte that crosses in it."""

import pytest
import torch

from federation.channel import Channel, encoded_size
from federation.costs import Meter, metering
from federation.parties.data import PublicData
from federation.seeds import Seeds
from federation.training.augmentation import Augmentation, augment
from federation.training.loops import DivergedError
from methods.fediod import FedIOD
from methods.fediod.losses import entropy
from tests.federation.tiny import CLASSES, make_client, make_federation
from tests.methods.fediod.cases import LN3, PI, patch_logits
from tests.methods.shards import client_with, mixed_clients, same_bits, uneven_clients


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


def test_unknown_weights_are_refused_with_the_known_ones():
    with pytest.raises(
        ValueError, match=r"unknown weights 'eq9'; known: eq8, eq8-own, size, class-count"
    ):
        FedIOD(weights="eq9")


# -- what crosses --


def quick(**changes):
    sizes = {
        "epochs": 2,
        "steps": 3,
        "batch_size": 4,
        "latent": 5,
        "width": 4,
        "discriminator_width": 4,
        "samples": 7,
    }
    return FedIOD(**{**sizes, **changes})


IMAGES = encoded_size({"images": torch.empty(4, 1, 8, 8)})
LOGITS = encoded_size({"outputs": torch.empty(4, CLASSES)})
SCORES_SIZE = encoded_size({"outputs": torch.empty(4, 2, 2)})
OWN_SIZE = encoded_size({"own": torch.empty(())})
GRADIENTS = encoded_size({"0": torch.empty(4, CLASSES), "1": torch.empty(4, 2, 2)})
SCORE_GRADIENTS = encoded_size({"1": torch.empty(4, 2, 2)})
LABELS = encoded_size({"counts": torch.empty(CLASSES, dtype=torch.long)})


def ledger(federation, **changes):
    """Bytes and messages by round, direction, kind and client."""
    quick(**changes).fit(federation)
    return {
        (t.round, t.direction, t.kind, t.client): (t.bytes, t.messages)
        for t in federation.channel.ledger
    }


def expected_ledger(rounds=2, steps=3, clients=2, gradients=GRADIENTS, asked_again=0):
    """Every step asks each client once for everything and `asked_again` times for logits."""
    found = {}
    for k in range(clients):
        found[0, "up", "labels", k] = (LABELS, 1)
        for number in range(1, rounds + 1):
            asked = steps * (1 + asked_again)
            found[number, "down", "images", k] = (asked * IMAGES, asked)
            found[number, "up", "logits", k] = (asked * LOGITS, asked)
            found[number, "up", "discriminator-outputs", k] = (
                steps * (SCORES_SIZE + OWN_SIZE),
                2 * steps,
            )
            found[number, "down", "gradients", k] = (steps * gradients, steps)
            found[number, "up", "gradients", k] = (steps * IMAGES, steps)
    return found


def test_a_step_sends_images_down_outputs_up_and_gradients_both_ways_to_the_byte():
    federation = make_federation()
    assert ledger(federation) == expected_ledger()
    assert {t.kind for t in federation.channel.ledger if t.direction == "up"} == FedIOD.sends


def test_where_no_loss_asks_for_logits_their_gradients_do_not_cross():
    found = ledger(make_federation(), mimic=0.0, confidence=0.0, uniqueness=0.0)
    assert found == expected_ledger(gradients=SCORE_GRADIENTS)


@pytest.mark.parametrize("term", ["mimic", "confidence", "uniqueness", "diversity", "balance"])
def test_each_loss_of_logits_sends_their_gradients(term):
    weights = {"mimic": 0.0, "confidence": 0.0, "uniqueness": 0.0, term: 1.0}
    assert ledger(make_federation(), epochs=1, **weights) == expected_ledger(rounds=1)


def test_five_student_steps_ask_for_the_logits_of_five_more_batches():
    assert ledger(make_federation(), student_steps=5, weights="class-count") == expected_ledger(
        asked_again=5
    )


def test_an_epoch_has_as_many_steps_as_the_largest_client_has_batches():
    federation = make_federation(
        uneven_clients()
    )  # the largest has ten samples: three batches of four
    assert ledger(federation, steps=0) == expected_ledger(steps=3, clients=5)


def test_a_client_without_samples_sends_its_counts_and_is_never_asked():
    federation = make_federation([client_with(0, [0, 1, 2] * 2), client_with(1, [])])
    expected = {
        key: value for key, value in expected_ledger().items() if key[2] == "labels" or key[3] == 0
    }
    assert ledger(federation) == expected


@pytest.mark.parametrize("student_steps", [1, 5])
def test_a_plan_books_the_bytes_of_the_run(student_steps):
    real, planned = (
        make_federation(
            [make_client(k, device=device, network="densenet-tiny") for k in range(2)],
            device,
            "densenet-tiny",
        )
        for device in ("cpu", "meta")
    )
    method = quick(student_steps=student_steps, weights="class-count")
    method.fit(real)
    with metering(Meter()):
        method.fit(planned)
    assert planned.channel.by_kind() == real.channel.by_kind()


def test_every_client_gets_the_same_images_and_fresh_ones_in_every_step():
    received = {0: [], 1: []}

    def look(transfer, tensors):
        if (transfer.direction, transfer.kind) == ("down", "images"):
            received[transfer.client].append(tensors["images"])

    quick().fit(make_federation(channel=Channel(inspect=look)))
    assert len(received[0]) == 2 * 3
    assert all(torch.equal(a, b) for a, b in zip(received[0], received[1], strict=True))
    assert not any(torch.equal(a, b) for i, a in enumerate(received[0]) for b in received[0][:i])
    values = torch.stack(received[0]) * 0.25 + 0.5  # generated in [0, 1], then normalised
    assert 0 <= values.min() < 0.5 < values.max() <= 1


@pytest.mark.parametrize("weights", ["eq8", "eq8-own"])
def test_students_on_fresh_images_cannot_have_weights_that_need_the_discriminators(weights):
    with pytest.raises(ValueError, match=rf"weights '{weights}'.*extra student steps"):
        quick(student_steps=5, weights=weights).fit(make_federation())


@pytest.mark.parametrize("weights", ["eq8", "eq8-own"])
def test_the_ensembles_weights_are_constants_to_the_generator(weights):
    """Without L_gan nothing else that the generator learns from depends on the discriminators'
    scores.
    """
    seen = []

    def look(transfer, tensors):
        if (transfer.direction, transfer.kind) == ("down", "gradients"):
            seen.append(tensors)

    quick(gan=0.0, weights=weights).fit(make_federation(channel=Channel(inspect=look)))
    assert len(seen) == 2 * 2 * 3
    assert all(tensors["0"].any() for tensors in seen)
    assert not any(tensors["1"].any() for tensors in seen if "1" in tensors)


def test_clients_answer_with_the_logits_of_the_models_they_trained():
    clients = [
        client_with(k, [0, 1, 2] * 4, "resnet8-narrow") for k in range(2)
    ]  # with BatchNorm, which would give away training
    federation, messages = make_federation(clients), []
    federation.channel.inspect = lambda t, tensors: messages.append((t, tensors))
    quick().fit(federation)
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


def test_public_images_are_not_needed():
    nothing = PublicData(torch.empty(0, 1, 8, 8, dtype=torch.uint8), "nothing")
    assert same_bits(
        quick().fit(make_federation(public=nothing)).state, quick().fit(make_federation()).state
    )


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"student_steps": 2, "weights": "class-count"},
        {"weights": "size"},
        {"temperature": 4.0, "logarithmic": False},
    ],
)
def test_the_same_seeds_give_the_same_model_and_images_to_the_last_bit(fields):
    first, again = (quick(**fields).fit(make_federation()) for _ in range(2))
    assert same_bits(first.state, again.state)
    assert torch.equal(first.samples, again.samples)
    assert not same_bits(
        first.state, quick(**fields).fit(make_federation(seeds=Seeds(shuffling=1))).state
    )


def test_networks_may_differ_between_clients_and_from_the_servers():
    federation = make_federation(mixed_clients(), network="densenet-tiny")
    model = quick().fit(federation)
    assert model.network == "densenet-tiny"
    assert federation.networks.module(model)(torch.zeros(2, 1, 8, 8)).shape == (2, CLASSES)
    assert len(model.history["accuracy"]) == 2


@pytest.mark.parametrize("count", [7, 501])
def test_as_many_images_are_generated_in_the_end_as_asked_for(count):
    samples = quick(epochs=1, steps=1, samples=count).fit(make_federation()).samples
    assert samples.shape == (count, 1, 8, 8)
    assert samples.dtype == torch.uint8


def test_no_images_are_generated_in_the_end_if_none_are_asked_for():
    none, some = (
        quick(epochs=1, steps=1, samples=count).fit(make_federation()) for count in (0, 7)
    )
    assert none.samples is None
    assert same_bits(none.state, some.state)


def test_a_clients_own_images_are_cropped_and_flipped_for_its_discriminator_and_never_holed(
    monkeypatch,
):
    seen = []

    def look(images, how, generator, mean=None):
        assert mean is None
        seen.append(how)
        return augment(images, how, generator, mean)

    monkeypatch.setattr("methods.fediod.parties.augment", look)
    changes = {"augmentation": Augmentation(crop=1, horizontal_flip=True, cutout=4)}
    first, again = (quick(augment_own=True).fit(make_federation(**changes)) for _ in range(2))
    assert seen == [Augmentation(crop=1, horizontal_flip=True)] * (
        2 * 2 * 2 * 3
    )  # runs, clients, epochs, steps
    assert same_bits(first.state, again.state)
    seen.clear()
    assert not same_bits(quick().fit(make_federation(**changes)).state, first.state)
    quick(augment_own=True).fit(make_federation())
    assert seen == []


def test_generated_images_differ_and_span_the_range_of_bytes():
    samples = quick().fit(make_federation()).samples
    assert len({tuple(image.flatten().tolist()) for image in samples}) == 7
    assert 64 < samples.float().mean() < 192  # a generator that has hardly learnt is grey


@pytest.mark.parametrize("field", ["lr", "generator_lr"])
def test_a_fit_that_diverges_is_an_error(field):
    with pytest.raises(DivergedError):
        quick(**{field: 1e30}).fit(make_federation())


@pytest.mark.parametrize("field", ["optimizer", "gan_weights"])
def test_an_unknown_option_is_refused(field):
    with pytest.raises(ValueError, match="unknown"):
        quick(**{field: "sizes"}).fit(make_federation())
