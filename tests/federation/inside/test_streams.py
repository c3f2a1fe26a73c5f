"""Random streams by name, and who takes part in a round."""

import pytest

from fedtables.federation.seeds import Seeds
from tests.federation.tiny import make_client, make_federation


def test_a_stream_is_named_and_belongs_to_an_axis():
    def drawn(*names, **axes):
        return make_federation(seeds=Seeds(**axes)).streams.shuffling(*names).normal(3).tolist()

    assert drawn("a", 1) == drawn("a", 1) == drawn("a", 1, weights=5)
    assert len({tuple(d) for d in (drawn("a", 1), drawn("a", 2), drawn("a", 1, shuffling=1))}) == 3


def indices(federation, number=1, share=1.0):
    return [client.index for client in federation.streams.participants(number, share)]


@pytest.mark.parametrize(
    ("clients", "share", "count"),
    [(10, 0.4, 4), (10, 0.01, 1), (10, 1.0, 10), (3, 0.5, 2), (20, 0.33, 7)],
)
def test_the_rounded_share_of_the_clients_takes_part_and_at_least_one(clients, share, count):
    chosen = indices(make_federation(clients=clients), share=share)
    assert len(chosen) == len(set(chosen)) == count
    assert chosen == sorted(chosen)
    assert set(chosen) <= set(range(clients))


def test_participants_follow_the_sampling_axis_and_the_round_only():
    def drawn(**axes):
        federation = make_federation(clients=10, seeds=Seeds(**axes))
        return [indices(federation, number, 0.3) for number in range(1, 9)]

    first = drawn()
    assert first == drawn(partition=1, weights=1, shuffling=1, attack=1)
    assert first != drawn(sampling=1)
    assert len({tuple(chosen) for chosen in first}) > 4
    assert {index for chosen in first for index in chosen} == set(range(10))


def test_a_client_without_samples_never_takes_part():
    federation = make_federation(
        clients=[
            make_client(0),
            make_client(1, samples=0),
            make_client(2),
            make_client(3, samples=0),
        ]
    )
    assert all(set(indices(federation, number, 0.5)) <= {0, 2} for number in range(1, 20))
    assert indices(federation, 1, 1.0) == [0, 2]
    assert indices(federation, 1, 0.75) == [0, 2]  # three of four are asked for, two can


@pytest.mark.parametrize("share", [0, -0.5, 1.01, float("nan")])
def test_a_share_outside_of_0_to_1_is_refused(share):
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        make_federation().streams.participants(1, share)
