"""How much of what papers print has been measured."""

from __future__ import annotations

from reports.pages.printed import coverage, printed_numbers


def test_printed_numbers_with_a_measured_one_count_once():
    def section(key, compared, profile="cpu"):
        return {"key": key, "profile": profile, "compared": compared}

    assert printed_numbers("dlad/table1") == 0  # classes, which are texts
    assert printed_numbers("dlad/table2") == 48  # of 60 cells, 12 are dashes
    assert printed_numbers("dlad/figure2") == 0
    whole = sum(printed_numbers(f"dlad/table{number}") for number in range(1, 5))
    assert coverage(
        [
            section("dlad/table1", 20),
            section("dlad/table3", 20),
            section("dlad/table2", 16),
            section("dlad/table2", 12),  # of another protocol
            section("dlad/table2", 48, "smoke"),
        ]
    ) == {("cpu", "dlad"): (36, whole), ("smoke", "dlad"): (48, whole)}
