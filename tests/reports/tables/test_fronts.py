"""Places in a plane, by hand."""

from __future__ import annotations

import math

from reports.tables.fronts import Spot, spots


def test_a_place_is_on_the_front_where_no_other_beats_it():
    places = [
        ("a", 1, 10, False),
        ("b", 2, 10, False),
        ("b", 3, 20, True),
        ("c", math.nan, 99, False),
    ]
    *known, unknown = spots(places)
    assert known == [
        Spot("a", 1, 10, True),
        Spot("b", 2, 10, False),
        Spot("b", 3, 20, True, True),
    ]
    assert not unknown.on_front
