"""The page of findings counts claims as the gallery does, and as its example says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from docs.examples.claims_since import main

DOCS = Path(__file__).resolve().parents[2] / "docs"
FINDINGS = (DOCS / "findings.md").read_text()
BEFORE = re.findall(r"claims_since\.py (\w+)", FINDINGS)


def table_after(text: str, heading: str) -> list[dict[str, str]]:
    """The lines of the first Markdown table below a heading."""
    text = text[text.index(heading) :]
    head, _, *lines = re.search(r"(?:^\|.*\|\n)+", text, re.MULTILINE)[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in (head, *lines)]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def test_claims_of_now_are_the_gallerys():
    gallery = table_after((DOCS / "gallery.md").read_text(), "## What is measured under `cpu`")
    told = table_after(FINDINGS, "## The papers' claims, before and after")
    now = [
        {kind: count.rpartition("→")[2].strip() for kind, count in line.items()} for line in told
    ]
    assert now == [{kind: line[kind] for kind in told[0]} for line in gallery]


def test_claims_before_and_what_moved_are_what_the_example_prints(capsys):
    (commit,) = BEFORE
    known = subprocess.run(
        ["git", "cat-file", "-e", commit], cwd=DOCS, capture_output=True, check=False
    )
    if known.returncode:
        pytest.skip(f"a clone without commit {commit}")
    main(commit)
    for table in capsys.readouterr().out.strip().split("\n\n"):
        assert f"\n\n{table}\n\n" in FINDINGS
