"""Names that do not exist are refused with those that do."""

from dataclasses import dataclass

import pytest

from fedtables.results.names import check_known, near, printable


def test_a_near_name_is_meant_or_all_are_known():
    assert near("fedavq", ["fedavg", "dlad"]) == "did you mean fedavg?"
    assert near("fed", ["fedavg", "dlad"]) == "did you mean fedavg?"
    assert near("x", ["fedavg", "dlad"]) == "known: dlad, fedavg"


@dataclass(frozen=True)
class Settings:
    weights: str = "size"
    judges: str = "all"


def test_the_first_field_of_another_value_is_named_with_its_known_ones_in_their_order():
    known = {"weights": ("size", "one"), "judges": ("own", "all")}
    check_known(Settings(), **known)
    with pytest.raises(ValueError, match=r"^unknown weights 'two'; known: size, one$"):
        check_known(Settings("two", "none"), **known)
    with pytest.raises(ValueError, match=r"^unknown judges 'none'; known: own, all$"):
        check_known(Settings(judges="none"), **known)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a[31mb"),
        ("two\r\nlines\tand", "two lines and"),
        ("\x00\x07\x9b2J\x7f", "2J"),
        ("left\u202eright\u2066", "leftright"),
        ("Ünï ✗ † ×\u200dß", "Ünï ✗ † ×\u200dß"),
    ],
)
def test_what_is_no_character_is_shown_nowhere(text, shown):
    assert printable(text) == shown
