"""How much of what papers print has been measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from results import published


def printed_numbers(table: str) -> int:
    """How many numbers the paper prints in `paper/table`."""
    return sum(isinstance(cell.value, float) for cell in published.published_table(table))


def coverage(sections: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[int, int]]:
    """By profile and paper, how many printed numbers have a measured one beside them, and how many
    the paper prints; a table of several results counts once, by the one that has most, and one
    that prints words instead of numbers not at all.
    """
    compared: dict[tuple[str, str], dict[str, int]] = {}
    for section in sections:
        paper = section["key"].split("/")[0]
        tables = compared.setdefault((section["profile"], paper), {})
        if printed_numbers(section["key"]):
            tables[section["key"]] = max(tables.get(section["key"], 0), section["compared"])
    return {
        (profile, paper): (
            sum(tables.values()),
            sum(printed_numbers(f"{paper}/{table}") for table in published.tables(paper)),
        )
        for (profile, paper), tables in compared.items()
    }
