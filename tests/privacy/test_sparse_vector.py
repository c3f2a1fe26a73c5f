"""Sparse vectors: budgets and scales by hand, what is selected with and without noise, and in what
the generations differ.
"""

import math
from dataclasses import replace

import pytest
import torch
from scipy import stats

from fedtables.privacy.sparse_vector import (
    GENERATIONS,
    Parts,
    SparseVector,
    answers,
    declared,
    drawn,
    first_passes,
    laplace,
    packed,
    passing,
    sanitise,
    scales,
    unpacked,
    uploads,
)

HALF = SparseVector(share=0.5, eps1=1.0, eps3=0.5, gamma=1.0, tau=0.1)
"""Of 8 entries it uploads m = 4, and (2 m)^(2/3) = 4."""
SILENT = SparseVector(1.0, math.inf, math.inf, gamma=0.6, tau=0.1)
UPDATE = torch.tensor([0.5, -0.2, 0.05, 0.0, -0.9, 0.1, -0.09, 0.7], dtype=torch.float64)
ABOVE = UPDATE.abs() >= 0.1


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


BY_HAND = {
    # eps2 = 1 (2 * 4 * 1)^(2/3); 1/1, 2 * 4 * 1/4, 4 * 1/0.5.
    "paper": (Parts(1.0, 4.0, 0.5), Parts(1.0, 2.0, 8.0)),
    # eps2 = 1 (2 * 4)^(2/3), 4 answers of 0.5; 2/1, 4 * 4/4, 2/0.5.
    "released": (Parts(1.0, 4.0, 2.0), Parts(2.0, 4.0, 4.0)),
    # 1 is split as 1 : 4, 4 answers of 0.5; 1/0.2, 2 * 4/0.8, 2/0.5.
    "revised": (Parts(0.2, 0.8, 2.0), Parts(5.0, 10.0, 4.0)),
}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_budgets_and_scales_by_hand(generation):
    settings = replace(HALF, generation=generation)
    budgets, noise = BY_HAND[generation]
    assert declared(settings, 8) == pytest.approx(budgets)
    assert scales(settings, 8) == pytest.approx(noise)


def test_the_shipped_settings_cost_what_the_page_on_privacy_says():
    """eps1 = eps3 = 1 of 4,702,227 numbers, 90 % of which are uploaded."""
    table = SparseVector(0.9, 1.0, 1.0, 1e-4, 1e-6)
    said = {name: declared(replace(table, generation=name), 4_702_227) for name in GENERATIONS}
    assert uploads(table, 4_702_227) == 4_232_005
    assert [round(said[name].queries, 2) for name in GENERATIONS] == [89.48, 41_532.12, 1.0]
    assert [round(sum(said[name])) for name in GENERATIONS] == [91, 4_273_538, 4_232_006]
    noise = {name: scales(replace(table, generation=name), 4_702_227) for name in GENERATIONS}
    assert [round(noise[name].queries / 1e-4) for name in GENERATIONS] == [94_593, 408, 8_464_214]
    assert [round(noise[name].answers / 1e-4) for name in GENERATIONS] == [4_232_005, 2, 2]


# -- without noise --


@pytest.mark.parametrize("generation", GENERATIONS)
def test_without_noise_exactly_what_reaches_the_threshold_is_uploaded_and_clipped(generation):
    settings = replace(SILENT, generation=generation)
    chosen, values = sanitise(UPDATE, settings, generator=seeded())
    assert torch.equal(chosen, ABOVE)
    assert values.tolist() == [0.5, -0.2, -0.6, 0.1, 0.6]


@pytest.mark.parametrize("generation", ["released", "revised"])
def test_the_code_draws_with_replacement_so_that_fewer_entries_cross(generation):
    settings = replace(SILENT, share=1.0, tau=0.0, generation=generation)
    numbers = [
        sanitise(UPDATE.repeat(50), settings, generator=seeded(s))[0].sum() for s in range(9)
    ]
    # 400 draws from 400 reach 1 - 1/e of them.
    assert sum(numbers) / 9 == pytest.approx(400 * (1 - 1 / math.e), rel=0.03)
    assert sanitise(UPDATE.repeat(50), replace(settings, generation="paper"), generator=seeded())[
        0
    ].all()


@pytest.mark.parametrize("generation", GENERATIONS)
def test_an_entry_that_is_no_number_never_leaves(generation):
    update = torch.tensor([math.nan, 1.0, -1.0, math.inf])
    chosen, values = sanitise(
        update, replace(HALF, share=0.75, generation=generation), generator=seeded()
    )
    assert not chosen[0]
    assert values.isfinite().all()


# -- the noise --


@pytest.mark.parametrize(
    ("generation", "expected"), [("paper", 1.0), ("released", 1.0), ("revised", 1.5)]
)
def test_an_answer_is_clipped_after_its_noise_or_before(generation, expected):
    update, noise = torch.tensor([2.0, -2.0, 0.25]), torch.tensor([0.5, 0.5, 0.5])
    first, second, third = answers(update, noise, replace(HALF, generation=generation)).tolist()
    assert (first, third) == (expected, 0.75)
    assert second == (-0.5 if generation == "revised" else -1.0)


def test_the_noise_is_laplaces():
    drawn_now = laplace(torch.zeros(20_000, dtype=torch.float64), 3.0, seeded())
    assert stats.kstest(drawn_now.numpy(), stats.laplace(scale=3.0).cdf).pvalue > 0.01
    assert torch.equal(laplace(UPDATE, 0.0, seeded()), torch.zeros(8, dtype=torch.float64))


def test_the_chance_to_pass_is_that_of_laplaces_tail():
    magnitudes, threshold = torch.tensor([0.0, 0.3, 0.6, 1.0]), torch.tensor([0.4])
    expected = stats.laplace(scale=0.5).sf((threshold - magnitudes).numpy())
    assert passing(magnitudes, threshold, 0.5).tolist() == pytest.approx(expected.tolist())
    assert passing(magnitudes, threshold, 0.0).tolist() == [0, 0, 1, 1]


def literally(magnitudes, threshold, scale, m, replacement, generator):
    """Pass after pass over those that have failed, with noise for each; then m of the accepted."""
    accepted = torch.zeros(len(magnitudes), dtype=torch.bool)
    while accepted.sum() < m:
        noisy = magnitudes + laplace(magnitudes, scale, generator)
        accepted |= noisy >= threshold
    places = accepted.nonzero().flatten()
    if replacement:
        return places[torch.randint(len(places), (m,), generator=generator)].unique()
    return places[torch.randperm(len(places), generator=generator)[:m]]


@pytest.mark.parametrize("replacement", [False, True])
def test_drawing_the_pass_at_once_selects_as_often_as_pass_after_pass(replacement):
    magnitudes, threshold = torch.tensor([0.0, 0.3, 0.5, 1.0]), torch.tensor([0.8])
    times, looped, at_once, generator = 3000, torch.zeros(4), torch.zeros(4), seeded()
    for _ in range(times):
        looped[literally(magnitudes, threshold, 0.3, 2, replacement, generator)] += 1 / times
        passes = first_passes(magnitudes, threshold, 0.3, generator)
        at_once += drawn(passes, 2, replacement, generator) / times
    torch.testing.assert_close(at_once, looped, atol=0.04, rtol=0)  # 4 standard deviations
    assert looped[3] > looped[0] + 0.3  # larger entries cross more often


# -- what crosses --


def test_a_bit_for_every_entry_says_which_crossed():
    chosen = torch.tensor([1, 0, 1, 0, 0, 0, 0, 0, 1], dtype=torch.bool)
    assert packed(chosen).tolist() == [5, 1]
    whole = unpacked(packed(chosen), torch.tensor([7.0, 8.0, 9.0]), 9)
    assert whole.tolist() == [7, 0, 8, 0, 0, 0, 0, 0, 9]


def test_without_content_as_many_values_cross_as_at_most_can():
    chosen, values = sanitise(torch.empty(10, device="meta"), HALF, generator=None)
    assert (chosen.shape, values.shape, packed(chosen).shape) == ((10,), (5,), (2,))
    assert unpacked(packed(chosen), values, 10).shape == (10,)


# -- what makes no sense --


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"generation": "next"}, "unknown generation 'next'; known: paper, released, revised"),
        ({"share": 0.0}, "share lies in"),
        ({"share": 1.1}, "share lies in"),
        ({"eps1": 0.0}, "above 0"),
        ({"eps3": math.nan}, "above 0"),
        ({"gamma": math.inf}, "both are finite"),
        ({"tau": -1.0}, "both are finite"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(HALF, **changes)


@pytest.mark.parametrize("update", [torch.zeros(0), torch.zeros(2, 2)])
def test_an_update_of_another_shape_is_refused(update):
    with pytest.raises(ValueError, match=r"has the shape \(n,\)"):
        sanitise(update, HALF, generator=seeded())
