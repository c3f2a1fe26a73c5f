"""The league's page counts claims as the gallery does."""

import re
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"


def table_after(page: str, heading: str) -> list[dict[str, str]]:
    """The lines of the first Markdown table below a heading of a page."""
    text = (RESULTS / page).read_text().partition(heading)[2]
    table = re.search(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert table is not None
    head, _, *lines = table[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in (head, *lines)]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def test_claims_are_counted_as_in_the_gallery():
    told = table_after("league.md", "## How do the papers' claims stand?")
    gallery = table_after("gallery.md", "## What is measured under `cpu`")
    assert told == [{kind: line[kind] for kind in told[0]} for line in gallery]
