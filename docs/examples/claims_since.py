"""How verdicts on the papers' claims moved since a commit, of the claims that hold in print: a
count by paper, then what moved. The commit's verdicts and today's are counted by today's rule.

PYTHONPATH=. python docs/examples/claims_since.py COMMIT [PROFILE]
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Iterable

import pandas as pd

from reports.pages.measured import (
    FAILS,
    HOLDS,
    IN_PART,
    UNDECIDED,
    UNMEASURED,
    WHERE_DECIDED,
    claim_kind,
)
from reports.tables.claims import CUT_SHORT
from reports.tables.markup import markdown_table
from results import published
from results.sourcecode import ROOT

KINDS = (HOLDS, WHERE_DECIDED, IN_PART, UNDECIDED, FAILS, CUT_SHORT, UNMEASURED)


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def verdicts(texts: Iterable[str]) -> dict[str, str]:
    """What each claim comes to by the texts of some `claims.csv`, the first that judges it."""
    lines = [line for text in texts for line in csv.DictReader(text.splitlines())]
    return {line["id"]: claim_kind(line["verdict"]) for line in reversed(lines)}


def main(commit: str, profile: str = "cpu") -> None:
    names = git("ls-tree", "-r", "--name-only", commit, f"results/{profile}").splitlines()
    earlier = [git("show", f"{commit}:{n}") for n in names if n.endswith(".claims.csv")]
    files = sorted((ROOT / "results" / profile).glob("*/*.claims.csv"))
    before, now = verdicts(earlier), verdicts(file.read_text() for file in files)
    claims = pd.DataFrame(
        [
            (paper, claim.id, before.get(claim.id, UNMEASURED), now.get(claim.id, UNMEASURED))
            for paper in published.papers()
            for claim in published.claims(paper)
            if claim.holds_in_print == "yes"
        ],
        columns=["paper", "id", "before", "now"],
    )
    rows = [
        (
            paper,
            len(of),
            *(f"{(of['before'] == k).sum()} → {(of['now'] == k).sum()}" for k in KINDS),
        )
        for paper, of in [*claims.groupby("paper"), ("together", claims)]
    ]
    print("\n".join(markdown_table(("paper", "hold in print", *KINDS), rows)), end="\n\n")
    moved = claims[claims["before"] != claims["now"]].astype(
        dict.fromkeys(("before", "now"), pd.CategoricalDtype(KINDS, ordered=True))
    )
    changed = [
        (*move, len(of), ", ".join(of["id"]))
        for move, of in moved.groupby(["before", "now"], observed=True)
    ]
    print("\n".join(markdown_table(("before", "now", "claims", "which"), changed)))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
