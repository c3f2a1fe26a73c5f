"""Whether runs of a few epochs had settled, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedtables.metrics.settling import epochs_to_end, has_settled

RISING = [0.1 * epoch for epoch in range(10)]
FLAT = [0.5] * 20


@pytest.mark.parametrize(
    ("metric", "history", "expected"),
    [
        ("accuracy", FLAT, True),
        ("accuracy", RISING, False),
        # The last two of twenty against the two before: 50.4 and 50.0 %, 50.6 and 50.0 %.
        ("accuracy", [*FLAT, 0.503, 0.505][2:], True),
        ("accuracy", [*FLAT, 0.505, 0.507][2:], False),
        ("accuracy", [*FLAT, 0.494, 0.494][2:], False),  # falling is no end either
        # A mean within half a point, and a single value 2.5 points above.
        ("accuracy", [*FLAT, 0.525, 0.48][2:], False),
        ("accuracy", [*FLAT, 0.515, 0.489][2:], True),
        ("hd95", [*[9.0] * 20, 6.5, 11.4][2:], False),  # of a distance the lower is the better
        ("hd95", [*[9.0] * 20, 11.5, 6.6][2:], False),
        ("hd95", [*[9.0] * 20, 10.9, 7.2][2:], True),
        ("psnr", [20.0, 20.2], True),  # a point is half a dB
        ("psnr", [20.0, 20.3], False),
        ("accuracy", [0.5], None),
        ("accuracy", [], None),
        ("accuracy", [0.5, float("nan")], None),
        ("bandwidth-gb", FLAT, None),
        ("of-a-plug-in", FLAT, None),
    ],
)
def test_a_run_has_settled_when_its_last_tenth_is_like_the_one_before(metric, history, expected):
    assert has_settled(metric, history) is expected


def test_the_tolerance_is_in_points():
    assert has_settled("accuracy", [0.50, 0.51], within=1.01)
    assert not has_settled("accuracy", [0.50, 0.51], within=0.99)
    with pytest.raises(ValueError, match="above 0 points, not 0"):
        has_settled("accuracy", FLAT, within=0)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=60), st.floats(0.01, 50))
def test_a_wider_tolerance_never_unsettles(history, within):
    assert has_settled("accuracy", history, 2 * within) or not has_settled(
        "accuracy", history, within
    )


def test_the_end_is_reached_where_a_history_stays_near_its_last_value():
    assert epochs_to_end([0.1, 0.5, 0.495, 0.5], 0.01) == 2
    assert epochs_to_end([0.5, 0.1, 0.5], 0.01) == 3
    assert epochs_to_end([0.5], 0.01) == 1
