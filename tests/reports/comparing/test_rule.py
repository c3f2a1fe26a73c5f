"""The tests of the regression report, by hand."""

import pytest

from fedtables.reports.comparing.rule import explained, holm, measurements, p_value


def cell(value, std=None, n=1):
    return {"value": value, "std": std, "n": n}


def test_holms_procedure_by_hand():
    # 0.01 <= 0.05 / 4; 0.013 <= 0.05 / 3; 0.04 > 0.05 / 2 ends it, though 0.045 <= 0.05 / 1.
    assert holm({"a": 0.04, "b": 0.01, "c": 0.045, "d": 0.013}, 0.05) == {"b", "d"}
    assert holm({}, 0.05) == set()


@pytest.mark.parametrize(
    ("base", "new", "counts"),
    [
        (cell(26, 0.0, 3), cell(24, 0.0, 3), (1, 1)),
        (cell(26, 0.5, 3), cell(24, 0.0, 3), (3, 3)),  # the seeds do move it
        (cell(26), cell(24), (1, 1)),
        (cell(26, 0.5, 3), cell(24), (3, 1)),
    ],
)
def test_seeds_that_move_nothing_are_one_measurement(base, new, counts):
    assert measurements(base, new) == counts


def test_welchs_test_takes_no_spread_for_smaller_than_the_noise():
    """t = 2.776 with 4 degrees of freedom: p = 0.025."""
    t = 2.7764451
    lower = cell(0.9 - t * 0.03 * (2 / 3) ** 0.5, 0.001, 3)
    assert p_value(cell(0.9, 0.001, 3), lower, 1, 0.03) == pytest.approx(0.025, abs=1e-6)
    assert p_value(cell(0.9, 0.001, 3), lower, 1) < 1e-4


@pytest.mark.parametrize(
    ("base", "new", "error"),
    [
        (cell(26.0, 0.0, 3), cell(24.0, 0.0, 3), 2**0.5),
        (cell(26.0, 1.0, 4), cell(24.0), 1.25**0.5),
    ],
)
def test_one_measurement_is_tested_with_what_is_known_of_its_spread(base, new, error):
    """z = 1.959964: p = 0.025, two-sided 0.05; the other way round 0.975."""
    noise = 2 / 1.959964 / error
    base = {**base, "std": base["std"] * noise}
    assert p_value(base, new, 1, noise) == pytest.approx(0.025, abs=1e-6)
    assert p_value(base, new, -1, noise) == pytest.approx(0.975, abs=1e-6)
    assert p_value(base, new, 0, noise) == pytest.approx(0.05, abs=1e-6)


def test_without_a_spread_that_is_known_there_is_no_test():
    with pytest.raises(ValueError, match="no spread that is known"):
        p_value(cell(26, 0.0, 3), cell(24, 0.0, 3), 1)


def test_what_noise_explains_shrinks_with_the_seeds():
    assert explained(cell(26), cell(24), 2.0, 0.025) == pytest.approx(2 * 1.959964 * 2**0.5)
    assert explained(cell(26, 1.0, 8), cell(24, 1.0, 8), 2.0, 0.025) == pytest.approx(1.959964)
    assert explained(cell(26), cell(24), 0.0, 0.025) == 0
