"""Li et al. 2019: which entries of an update cross, what the server makes of them, and every
byte.
"""

import math
from dataclasses import replace

import pytest
import torch

from fedtables.baselines.li_2019 import Li2019, flat, local_steps
from fedtables.federation.channel import encoded_size
from fedtables.federation.client import Client, Shard
from fedtables.federation.costs import Meter, metering
from fedtables.federation.inside.privacy import Protection
from fedtables.federation.seeds import Seeds
from fedtables.federation.training.plan import TrainingPlan
from fedtables.methods.fedavg import FedAvg
from fedtables.privacy.plan import PrivacyPlan
from fedtables.privacy.sparse_vector import GENERATIONS, unpacked
from tests.federation.tiny import make_client, make_federation
from tests.methods.shards import (
    WHOLE_BATCHES,
    client_with,
    descend,
    recorded,
    same_bits,
    samples_of,
    uneven_clients,
)

NAIVE = Li2019(rounds=3, eps1=math.inf, eps3=math.inf)
PAPER = Li2019(rounds=1, participation=1.0, generation="paper")
SILENT = replace(PAPER, share=1.0, eps1=math.inf, eps3=1e15, gamma=10.0, tau=0.0)
"""All crosses, with noise beyond float32."""


def sent_up(method, clients, **changes):
    """The model, and what clients sent."""
    model, sent = recorded(method, make_federation(clients, **changes))
    return model, [tensors for t, tensors in sent if t.direction == "up"]


def test_the_naive_version_is_fedavg_to_the_last_bit_and_the_last_byte():
    naive, plain = make_federation(clients=5), make_federation(clients=5)
    assert same_bits(NAIVE.fit(naive).state, FedAvg(rounds=3).fit(plain).state)
    assert naive.channel.ledger == plain.channel.ledger


@pytest.mark.parametrize("generation", GENERATIONS)
def test_whole_updates_without_noise_make_fedavgs_average(generation):
    method = replace(SILENT, rounds=2, share=1.0, generation=generation)
    federation = make_federation(uneven_clients(), local=WHOLE_BATCHES)
    model = method.fit(federation)
    plain = FedAvg(rounds=2, participation=1.0).fit(
        make_federation(uneven_clients(), local=WHOLE_BATCHES)
    )
    if generation == "paper":
        torch.testing.assert_close(model.state, plain.state)
    else:  # what was drawn twice left others out
        assert not same_bits(model.state, plain.state)


def test_one_client_by_hand():
    """Two steps of descent; of the update per step, what reaches tau crosses, clipped to gamma."""
    client = client_with(0, [0, 1, 1, 2])
    federation = make_federation([client], local=WHOLE_BATCHES)
    start = federation.networks.initial("cnn-small").state_dict()
    trained = descend(federation.networks.initial("cnn-small"), *samples_of(client)).state_dict()
    update = (flat(trained) - flat(start)) / 2
    tau, gamma = update.abs().quantile(0.3).item(), update.abs().quantile(0.8).item()
    expected = torch.where(update.abs() >= tau, update.clamp(-gamma, gamma), 0) * 2
    model, [sent] = sent_up(replace(SILENT, tau=tau, gamma=gamma), [client], local=WHOLE_BATCHES)
    crossed = unpacked(sent["chosen"], sent["values"], len(update))
    torch.testing.assert_close(crossed, expected)
    torch.testing.assert_close(flat(model.state), flat(start) + expected)
    assert (crossed == 0).float().mean().item() == pytest.approx(0.3, abs=0.01)


def test_the_server_adds_the_mean_of_updates_weighted_by_the_clients_sizes():
    clients = uneven_clients()
    federation = make_federation(clients)
    start = flat(federation.networks.initial("cnn-small").state_dict())
    model, sent = sent_up(replace(PAPER, gamma=1e-3), clients)
    total = sum(client.size for client in clients)
    mean = sum(
        client.size / total * unpacked(payload["chosen"], payload["values"], len(start))
        for client, payload in zip(clients, sent, strict=True)
    )
    torch.testing.assert_close(flat(model.state), start + mean)
    assert mean.abs().max() > 0


def test_values_are_bounded_by_gamma_times_the_steps_but_for_the_revised_generation():
    plan = TrainingPlan(epochs=3, batch_size=5, lr=0.01)
    assert local_steps(make_client(0, 12), plan) == 9
    for generation in GENERATIONS:
        method = replace(PAPER, gamma=1e-3, generation=generation)
        _, [sent] = sent_up(method, [make_client(0, 12)], local=plan)
        bounded = sent["values"].abs().max().item() <= 9e-3 * (1 + 1e-6)
        assert bounded == (generation != "revised")


def test_every_byte_that_crosses():
    """A bit for each of n entries, and four bytes for each of ceil(0.9 n)."""
    federation = make_federation(clients=2)
    entries = len(flat(federation.networks.initial("cnn-small").state_dict()))
    size = encoded_size(
        {
            "chosen": torch.empty(math.ceil(entries / 8), dtype=torch.uint8),
            "values": torch.empty(math.ceil(0.9 * entries)),
        }
    )
    replace(PAPER, rounds=2).fit(federation)
    assert federation.channel.by_kind() == {
        "down/parameters": 2 * 2 * encoded_size(federation.networks.initial().state_dict()),
        "up/parameters": 2 * 2 * size,
    }
    assert size / (4 * entries) == pytest.approx(0.9 + 1 / 32, abs=0.02)  # with its header


def bytes_up(generation, device):
    federation = make_federation(clients=3, device=device)
    method = replace(PAPER, rounds=2, generation=generation)
    if device == "cpu":
        method.fit(federation)
    else:
        with metering(Meter()):
            method.fit(federation)
    return federation.channel.total("up")


def test_a_plan_books_the_bytes_of_the_run_or_the_most_that_they_can_be():
    assert bytes_up("paper", "meta") == bytes_up("paper", "cpu")
    for generation in ("released", "revised"):  # of 0.9 n draws from 0.9 n to n, these differ
        shares = bytes_up(generation, "cpu") / bytes_up(generation, "meta")
        assert 1 - 1 / math.e - 0.03 < shares < 0.75


def test_counts_of_batches_cross_as_they_are_and_variances_stay_above_zero():
    clients = [client_with(k, [0, 1, 2], "resnet8-narrow") for k in range(2)]
    method = replace(PAPER, generation="revised", eps3=0.1, gamma=0.5)
    model, sent = sent_up(method, clients, network="resnet8-narrow", local=WHOLE_BATCHES)
    counts = {name for name in model.state if name.endswith("num_batches_tracked")}
    assert all(payload.keys() == {"chosen", "values", *counts} for payload in sent)
    assert all(model.state[name] == 2 for name in counts)
    assert all(entry.isfinite().all() for entry in model.state.values())
    lowest = min(v.min().item() for n, v in model.state.items() if n.endswith("running_var"))
    assert lowest == 0


def test_clients_rounds_and_settings_have_noise_of_their_own_and_seeds_repeat_it():
    first = make_client(0)
    facts = (first.role, first.network, Shard(*samples_of(first)), first.label_counts)
    twins = [Client(index, *facts, f"twin {index}") for index in range(2)]
    noisy = replace(PAPER, rounds=2, eps3=1e-6)
    _, first = sent_up(noisy, twins)
    _, again = sent_up(noisy, twins)
    _, other = sent_up(noisy, twins, seeds=Seeds(shuffling=1))
    _, another = sent_up(replace(noisy, tau=2e-6), twins)
    assert all(same_bits(a, b) for a, b in zip(first, again, strict=True))
    sent = [*first, *other, *another]
    assert len({tuple(payload["chosen"].tolist()) for payload in sent}) == len(sent) == 12


def test_under_dp_sgd_the_record_says_that_its_own_epsilons_are_not_counted():
    protection = Protection(PrivacyPlan("dp-sgd", epsilon=8.0), frozenset({"parameters"}))
    federation = make_federation(clients=2, protection=protection)
    replace(PAPER, rounds=2).fit(federation)
    [note] = protection.notes
    assert note.startswith("sparse vectors add noise that no accountant counts")
    assert "(paper) an upload costs eps1 1, eps2" in note
    assert 7.9 < protection.accountant.epsilon() <= 8
    quiet = Protection(protection.plan, protection.kinds)
    NAIVE.fit(make_federation(clients=2, protection=quiet))
    assert quiet.notes == []


@pytest.mark.parametrize("changes", [{"share": 0.0}, {"eps1": -1.0}, {"generation": "2.6"}])
def test_settings_that_make_no_sense_are_refused(changes):
    with pytest.raises(ValueError, match=r"share lies|unknown generation"):
        Li2019(**changes)
