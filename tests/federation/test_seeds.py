"""Seeds: five axes and named streams, none of which disturbs another."""

import hashlib

import pytest
import torch

from federation.seeds import AXES, Seeds, Stream


def test_the_axes_are_the_fields():
    assert set(Seeds().to_json()) == set(AXES)


@pytest.mark.parametrize("axis", AXES)
def test_moving_one_axis_leaves_the_others(axis):
    moved = Seeds.moving((axis,), 7)
    assert moved.number(axis, "x") != Seeds().number(axis, "x")
    assert all(
        moved.number(other, "x") == Seeds().number(other, "x") for other in AXES if other != axis
    )


def test_several_axes_move_together():
    assert Seeds.moving(("partition", "weights"), 3) == Seeds(partition=3, weights=3)


def test_an_unknown_axis_is_refused():
    with pytest.raises(TypeError):
        Seeds.moving(("weight",), 1)
    with pytest.raises(AttributeError):
        Seeds().number("weight")


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


def test_the_same_name_on_two_axes_gives_two_streams():
    assert len({Seeds().number(axis, "client", 0) for axis in AXES}) == len(AXES)


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


def test_generators_of_one_stream_repeat_and_of_two_streams_differ():
    seeds = Seeds(sampling=2)
    assert (
        seeds.numpy("sampling", 1).random()
        == seeds.numpy("sampling", 1).random()
        != seeds.numpy("sampling", 2).random()
    )

    def draw(name):
        return torch.rand(1, generator=seeds.torch("sampling", name)).item()

    assert draw(1) == draw(1) != draw(2)


def test_a_generator_does_not_touch_the_global_one():
    before = torch.random.get_rng_state()
    torch.rand(3, generator=Seeds().torch("weights"))
    assert torch.equal(torch.random.get_rng_state(), before)


# -- streams --


def stream(name="a"):
    return Stream(Seeds().torch("shuffling", name), torch.device("cpu"))


def test_a_stream_goes_on_where_it_was_and_repeats_under_its_name():
    first, again = stream(), stream()
    drawn = [first.normal(3).tolist() for _ in range(2)]
    assert drawn[0] != drawn[1]
    assert drawn == [again.normal(3).tolist() for _ in range(2)]
    assert stream("b").normal(3).tolist() != drawn[0]


def test_choices_are_below_the_population_and_with_replacement():
    chosen = stream().choose(3, 200)
    assert set(chosen.tolist()) == {0, 1, 2}
    assert chosen.shape == (200,)


def test_a_shuffle_holds_every_index_once():
    order = stream().shuffled(50).tolist()
    assert sorted(order) == list(range(50)) != order


def test_numbers_are_standard_normal():
    normal = stream().normal(100, 100)
    assert (normal.mean().abs() < 0.05, (normal.std() - 1).abs() < 0.05, normal.shape) == (
        True,
        True,
        (100, 100),
    )


def test_a_planned_stream_has_shapes_only():
    planned = Stream(None, torch.device("meta"))
    drawn = [planned.choose(5, 3), planned.shuffled(4), planned.normal(2, 3)]
    assert [tuple(tensor.shape) for tensor in drawn] == [(3,), (4,), (2, 3)]
    assert all(tensor.is_meta for tensor in drawn)


def test_streams_leave_the_global_generator_alone():
    before = torch.random.get_rng_state()
    own = stream()
    for _ in (own.choose(5, 3), own.shuffled(4), own.normal(2, 3)):
        assert torch.equal(torch.random.get_rng_state(), before)
