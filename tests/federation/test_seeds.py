"""Seeds: five axes and named streams, none of which disturbs another."""

import hashlib

import pytest

from fedtables.federation.seeds import AXES, Seeds


@pytest.mark.parametrize("axis", AXES)
def test_moving_one_axis_leaves_the_others(axis):
    moved = Seeds.moving((axis,), 7)
    assert moved.number(axis, "x") != Seeds().number(axis, "x")
    assert all(
        moved.number(other, "x") == Seeds().number(other, "x") for other in AXES if other != axis
    )


def test_the_streams_of_one_axis_differ():
    streams = [
        (),
        ("client", 0),
        ("client", 1),
        ("client", 10),
        ("client1", 0),
        ("clien", "t0"),
        ("public",),
    ]
    assert len({Seeds().number("shuffling", *names) for names in streams}) == len(streams)


def test_neighbouring_seeds_are_unrelated_and_fit_63_bits():
    numbers = [Seeds(weights=seed).number("weights") for seed in range(200)]
    assert len(set(numbers)) == 200
    assert 0 <= min(numbers) < 2**59 < 2**62 < max(numbers) < 2**63


def test_a_stream_is_the_hash_of_its_axis_seed_and_names():
    text = b'["weights",5,["head","3"]]'
    assert (
        Seeds(weights=5).number("weights", "head", 3)
        == int(hashlib.sha256(text).hexdigest()[:16], 16) // 2
    )
