"""What of a payload in four runs is a sum over single pixels."""

import pytest
import torch

from benchmarks.contract.changes import half_of, inverted
from benchmarks.contract.fits import Message
from benchmarks.contract.leaks import Counts, counts, find, unprotected
from federation.channel import encode

X = torch.rand(4, 1, 6, 6, generator=torch.Generator().manual_seed(0))


def four(function, x=X):
    """What `function` makes of samples, of those with one half inverted, the other, and both."""
    half = half_of(x)
    everywhere = torch.ones_like(half)
    changed = (x, inverted(x, half), inverted(x, ~half), inverted(x, everywhere))
    return [function(samples) for samples in changed]


def test_half_of_the_pixels_are_inverted_and_then_the_others():
    neither, one, other, both = four(lambda x: x)
    assert int((one != neither)[0].sum()) == 18
    assert torch.equal(one + other, neither + both)
    assert torch.allclose(both, 1 - X)
    assert inverted(torch.tensor([[3]], dtype=torch.uint8), torch.tensor([True])).item() == 252


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x: x, 144),
        (lambda x: 5 - 2 * x.transpose(2, 3), 144),
        (lambda x: x.mean(dim=0), 36),
        (lambda x: x.square(), 144),
        (lambda x: torch.cat([x.flatten(), torch.zeros(1000)]), 144),
        (lambda x: (x > 0.5).long(), 144),
        (lambda x: x.flatten(1).prod(dim=1), 0),
        (lambda x: (x.flatten(1) @ x.flatten(1).T).tanh(), 0),
        (lambda x: torch.full((50,), 3.0), 0),
    ],
)
def test_sums_over_pixels_are_counted_and_products_are_not(function, told):
    assert counts(*four(function)).tell() == pytest.approx(told, rel=0.15)


def test_as_many_as_chance_explains_tell_nothing():
    assert Counts(additive=12).tell() == 0
    assert Counts(additive=13).tell() == 13
    assert Counts(additive=28, missed=4.0).tell() == 0  # 12 + 4 + 6 * 2
    assert Counts(additive=29, missed=4.0).tell() == 29
    assert Counts(of_one=100, of_other=0).tell() == 0  # which labels may explain
    assert Counts(of_one=7, of_other=8).tell() == 14
    assert Counts(of_one=7, of_other=8, alike=1).tell() == 0
    assert Counts(of_one=5, of_other=4) + Counts(of_one=1) == Counts(of_one=6, of_other=4)


def messages(kind, tensors):
    return [[Message(kind, 0, encode({"x": tensor.contiguous()}))] for tensor in tensors]


def test_a_kind_that_is_declared_is_not_looked_at():
    sent = messages("images", four(lambda x: x))
    assert "client 0 sends samples as 'images': 1" in find(*sent, frozenset())
    assert find(*sent, frozenset({"images"})) == ""


def test_labels_may_change_with_labels_and_not_with_images():
    before, after = torch.arange(20), torch.arange(20).flip(0) + 1
    assert find(*messages("labels", [before, before, after, after]), frozenset()) == ""
    depends = find(*messages("labels", [before, after, before, after]), frozenset())
    assert "'labels' depends on its images" in depends
    told = find(*messages("losses", [before, before, after, after]), frozenset())
    assert "sends samples as 'losses': 19 numbers" in told


def test_fewer_numbers_than_a_part_of_a_sample_tell_nothing():
    sent = messages("losses", four(lambda x: x.mean(dim=0)))  # 36 numbers
    assert find(*sent, frozenset(), values=8 * 36) == ""
    assert "numbers are sums" in find(*sent, frozenset(), values=8 * 20)


VALUES = torch.rand(20, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("noisy", "other_noise", "other_samples", "bare"),
    [
        (VALUES, VALUES + 1, VALUES + 2, False),  # noise reaches all
        (VALUES, VALUES, VALUES, False),  # nothing of samples
        (VALUES, VALUES, VALUES + 1, True),
        # A tensor of both, of which thirteen have no noise; fewer are left to chance.
        (VALUES, VALUES + (torch.arange(20) > 14), VALUES + 2, True),
        (VALUES, VALUES + (torch.arange(20) > 9), VALUES + 2, False),
        # What is cut off at the same end by any noise: counts not below 0.
        (VALUES.clamp_min(0.9), VALUES.clamp_min(0.9) + (VALUES > 0.9), VALUES + 2, False),
    ],
)
def test_what_changes_with_samples_and_not_with_noise_is_bare(
    noisy, other_noise, other_samples, bare
):
    runs = [
        [Message("votes", 1, encode({"well": VALUES * factor, "x": tensor}))]
        for factor, tensor in enumerate((noisy, other_noise, other_samples))
    ]
    found = unprotected(*runs)
    assert found == ("no noise reaches 'x' of what client 1 sends as 'votes'" if bare else "")
