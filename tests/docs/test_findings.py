"""The page of findings counts claims as the gallery does, and as its own lines say."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
FINDINGS = (DOCS / "results" / "findings.md").read_text()


def table_after(text: str, heading: str) -> list[dict[str, str]]:
    """The lines of the first Markdown table below a heading."""
    text = text[text.index(heading) :]
    head, _, *lines = re.search(r"(?:^\|.*\|\n)+", text, re.MULTILINE)[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in (head, *lines)]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def test_claims_of_now_are_the_gallerys():
    gallery = table_after(
        (DOCS / "results" / "gallery.md").read_text(), "## What is measured under `cpu`"
    )
    told = table_after(FINDINGS, "## The papers' claims, before and after")
    now = [
        {kind: count.rpartition("→")[2].strip() for kind, count in line.items()} for line in told
    ]
    assert now == [{kind: line[kind] for kind in told[0]} for line in gallery]


def test_claims_before_and_what_moved_are_what_the_page_s_lines_print(monkeypatch):
    [code] = re.findall(r"```python\n(.*?)```", FINDINGS, re.DOTALL)
    monkeypatch.chdir(DOCS.parent)
    names = {}
    try:
        exec(code, names)
    except subprocess.CalledProcessError:
        pytest.skip("a clone without the commit before")
    claims = names["claims"]
    counts = table_after(FINDINGS, "## The papers' claims, before and after")
    for line in counts:
        of = claims if line["paper"] == "together" else claims[claims["paper"] == line["paper"]]
        assert int(line["hold in print"]) == len(of)
        before, now = Counter(of["before"]), Counter(of["now"])
        kinds = [kind for kind in line if kind not in ("paper", "hold in print")]
        assert [line[kind] for kind in kinds] == [f"{before[k]} → {now[k]}" for k in kinds]
    moved = names["moved"].groupby(["before", "now"])["claim"].agg(", ".join).to_dict()
    told = table_after(FINDINGS, "What moved, by identifier")
    assert {(line["before"], line["now"]): line["which"] for line in told} == moved
    assert all(int(line["claims"]) == 1 + line["which"].count(",") for line in told)
