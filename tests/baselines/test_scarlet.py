"""SCARLET: sharpening by a power, what caches hold and ask for, and every byte that crosses."""

from dataclasses import dataclass

import pytest
import torch

from fedtables.baselines.ds_fl import DSFL
from fedtables.baselines.scarlet import (
    CACHED,
    EXPIRED,
    NEWLY_CACHED,
    SCARLET,
    Cache,
    enhanced_entropy_reduction,
)
from fedtables.federation.data import PublicData
from tests.federation.tiny import CLASSES, bright_images, make_client, make_federation
from tests.methods.shards import booked, recorded, size

PUBLIC = PublicData(bright_images(torch.arange(20) % CLASSES, 100), "twenty images")
BRIEF = {"rounds": 6, "public_samples": 8, "local_epochs": 1, "distillation_epochs": 1}


def test_labels_are_powers_of_mean_probabilities_by_hand():
    mean = torch.tensor([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    found = enhanced_entropy_reduction(mean, 2.0)
    expected = [[0.25 / 0.38, 0.09 / 0.38, 0.04 / 0.38], [1.0, 0.0, 0.0]]
    torch.testing.assert_close(found, torch.tensor(expected))
    torch.testing.assert_close(enhanced_entropy_reduction(mean, 1.0), mean)


def test_a_large_power_gives_the_argmax_and_not_nothing():
    mean = torch.full((1, 100), 0.99 / 99)
    mean[0, 7] = 0.0101
    assert (mean**60 == 0).all()  # in float32
    found = enhanced_entropy_reduction(mean, 1e6)
    assert found[0, 7].item() == pytest.approx(1.0)
    assert found.isfinite().all()


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0, 50.0])
def test_no_power_moves_the_argmax(beta):
    mean = torch.rand(100, 10, generator=torch.Generator().manual_seed(0)).softmax(dim=1)
    found = enhanced_entropy_reduction(mean, beta)
    assert torch.equal(found.argmax(dim=1), mean.argmax(dim=1))
    torch.testing.assert_close(found.sum(dim=1), torch.ones(100))


def test_a_label_is_stored_kept_dropped_and_stored_again():
    cache, image = Cache(torch.zeros(5, 2)), torch.tensor([3])
    first, later = torch.tensor([[0.9, 0.1]]), torch.tensor([[0.2, 0.8]])
    none = first[:0]
    # With D = 2: stored in round 1, valid in rounds 2 and 3, dropped in 4, stored anew in 5.
    story = [
        (1, NEWLY_CACHED, first, first, 1),
        (2, CACHED, none, first, 1),
        (3, CACHED, none, first, 1),
        (4, EXPIRED, later, later, 0),
        (5, NEWLY_CACHED, later, later, 5),
        (6, CACHED, none, later, 5),
    ]
    for number, signal, fresh, learnt, stored in story:
        signals = cache.signals(image, number, 2)
        assert signals.tolist() == [signal]
        assert torch.equal(cache.update(image, signals, fresh, number), learnt)
        assert cache.rounds.tolist() == [0, 0, 0, stored, 0]


def test_requested_images_come_first_and_then_cached_ones():
    cache = Cache(torch.arange(5.0)[:, None])
    cache.rounds[:] = torch.tensor([0, 1, 1, 0, 0])
    chosen = torch.tensor([4, 2, 0, 1])
    signals = cache.signals(chosen, 2, 1)
    assert signals.tolist() == [NEWLY_CACHED, CACHED, NEWLY_CACHED, CACHED]
    learnt = cache.update(chosen, signals, torch.tensor([[40.0], [0.5]]), 2)
    assert learnt.flatten().tolist() == [40.0, 0.5, 2.0, 1.0]
    assert cache.labels.flatten().tolist() == [0.5, 1.0, 2.0, 3.0, 40.0]


@dataclass(frozen=True)
class PlainMean(DSFL):
    """DS-FL whose labels are the mean probabilities."""

    def sharpened(self, mean):
        return mean


def test_without_cache_and_sharpening_it_is_ds_fl_with_the_plain_mean():
    # Round 2 and later choose images again, so that D = 0 expires them.
    plain = PlainMean(**BRIEF).fit(make_federation(public=PUBLIC))
    found = SCARLET(**BRIEF, beta=1.0, duration=0).fit(make_federation(public=PUBLIC))
    assert found.state.keys() == plain.state.keys()
    for name, weights in plain.state.items():
        torch.testing.assert_close(found.state[name], weights, rtol=1e-4, atol=1e-5)


def rows(federation_sent, direction, name):
    """Rows of a message's tensor by round and client."""
    found = {}
    for transfer, tensors in federation_sent:
        if transfer.direction == direction and name in tensors and "positions" not in tensors:
            found[transfer.round, transfer.client] = len(tensors[name])
    return found


def chosen_in(federation, rounds, samples):
    streams = [federation.streams.seeds.numpy("shuffling", "public", n + 1) for n in range(rounds)]
    return [stream.permutation(20)[:samples].tolist() for stream in streams]


def test_with_a_duration_beyond_the_run_each_image_is_sent_once():
    federation = make_federation(public=PUBLIC)
    _, sent = recorded(SCARLET(**BRIEF, duration=6), federation)
    seen, expected = set(), {}
    for number, chosen in enumerate(chosen_in(federation, 6, 8), 1):
        if new := set(chosen) - seen:
            expected |= {(number, client): len(new) for client in (0, 1)}
        seen |= set(chosen)
    assert rows(sent, "up", "logits") == rows(sent, "down", "labels") == expected
    assert sum(n for (_, client), n in expected.items() if client == 0) == len(seen) <= 20


def test_without_a_duration_every_chosen_image_is_sent_in_every_round():
    _, sent = recorded(SCARLET(**BRIEF, duration=0), make_federation(public=PUBLIC))
    assert set(rows(sent, "up", "logits").values()) == {8}
    assert len(rows(sent, "up", "logits")) == 2 * 6


def test_every_byte_is_signals_requested_probabilities_and_their_labels():
    federation = make_federation(clients=3, public=PUBLIC)
    SCARLET(**BRIEF | {"rounds": 2}).fit(federation)
    first, second = map(set, chosen_in(federation, 2, 8))
    expected = {}
    for number, requested in ((1, 8), (2, len(second - first))):
        for k in range(3):
            expected[number, "up", "logits", k] = (size("logits", requested, CLASSES), 1)
            expected[number, "down", "logits", k] = (size("labels", requested, CLASSES), 1)
            expected[number, "down", "labels", k] = (size("signals", 8, dtype=torch.uint8), 1)
    assert booked(federation) == expected


def test_a_round_whose_labels_are_all_cached_asks_nobody():
    federation = make_federation()
    _, sent = recorded(SCARLET(**BRIEF | {"rounds": 2}), federation)  # six public images
    assert {t.kind for t, _ in sent if t.round == 2} == {"labels"}
    assert all((m["signals"] == CACHED).all() for t, m in sent if t.round == 2)


def test_a_client_that_returns_first_gets_what_was_stored_in_its_absence_and_all_learn_alike():
    clients = [make_client(k) for k in range(5)]
    federation = make_federation(clients, public=PUBLIC)
    caches = {}

    class Watched(SCARLET):
        def kept(self, federation, clients):
            caches.update(super().kept(federation, clients))
            return dict(caches)

        def exchange(self, federation, number, pairs, chosen, kept):
            order, labels, received = super().exchange(federation, number, pairs, chosen, kept)
            for own in received:
                assert torch.equal(own, labels)
            valid = caches["cache server"].rounds > 0
            for client, _ in pairs:
                own = caches[f"cache client-{client.index}"]
                same = own.rounds == caches["cache server"].rounds
                assert same[valid].all()
                assert torch.equal(own.labels[valid], caches["cache server"].labels[valid])
            return order, labels, received

    method = Watched(**BRIEF | {"rounds": 12}, participation=0.4, duration=2)
    _, sent = recorded(method, federation)
    caught_up = [tensors for _, tensors in sent if "positions" in tensors]
    assert caught_up
    assert all((tensors["rounds"] > 0).all() for tensors in caught_up)
    before = {}
    for transfer, tensors in sent:
        if "positions" in tensors:
            last = before.get(transfer.client, 0)
            assert (tensors["rounds"] > last).all()
        before[transfer.client] = transfer.round


def test_with_all_clients_nobody_has_to_catch_up():
    _, sent = recorded(SCARLET(**BRIEF, duration=1), make_federation(public=PUBLIC))
    assert not [tensors for _, tensors in sent if "positions" in tensors]


def test_ds_fls_temperature_is_no_setting():
    with pytest.raises(TypeError):
        SCARLET(temperature=0.5)
