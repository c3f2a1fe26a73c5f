"""Numbers as people write them."""

from dataclasses import dataclass

import pytest

from fedtables.results.numbers import (
    MOST_WHOLE,
    Count,
    Share,
    SomeShare,
    check_bounds,
    finite_number,
    shortened,
    whole_number,
)


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("12", 12), ("-3", -3), ("007", 7)])
def test_whole_numbers(text, value):
    assert whole_number(text) == value


@pytest.mark.parametrize(
    "text",
    ["", " ", "1_0", "+1", "1.0", "1e3", "0x10", "\u0661", "1" * 5000, str(MOST_WHOLE + 1), "nan"],
)
def test_what_is_no_whole_number(text):
    with pytest.raises(ValueError, match="is not a whole number"):
        whole_number(text)


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1.0), (".5", 0.5), ("2.", 2.0), ("1e-3", 0.001), ("-1.5", -1.5)]
)
def test_numbers(text, value):
    assert finite_number(text) == value


@pytest.mark.parametrize("text", ["", "inf", "nan", "1e400", "1e13", "1_0", "\u00bd", "e3", "."])
def test_what_is_no_number(text):
    with pytest.raises(ValueError, match="is not a number"):
        finite_number(text)


def test_bounds_are_part_of_the_message():
    with pytest.raises(ValueError, match="'0' is not a whole number from 1 to 9"):
        whole_number("0", 1, 9)
    with pytest.raises(ValueError, match=r"'-1' is not a number from 0 to 2.5"):
        finite_number("-1", 0, 2.5)


def test_a_long_text_is_shortened():
    assert len(shortened("9" * 5000)) < 70


@dataclass
class Settings:
    rounds: Count = 1
    kept: Share = 0.0
    able: SomeShare = 1.0
    free: int = 0


def test_settings_are_held_to_the_bounds_of_their_annotations():
    check_bounds(Settings, {"rounds": 1, "kept": 0, "able": 1, "free": -5})
    for name, value, wanted in (
        ("rounds", 0, "own.rounds is a number from 1, at most 2147483647, not 0"),
        ("kept", 1.5, "own.kept is a number from 0, at most 1, not 1.5"),
        ("able", 0.0, "own.able is a number above 0, at most 1, not 0.0"),
        ("able", float("nan"), "not nan"),
    ):
        with pytest.raises(ValueError, match=wanted):
            check_bounds(Settings, {name: value}, "own.")
