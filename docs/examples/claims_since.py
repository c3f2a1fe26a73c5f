"""How verdicts on the papers' claims moved since a commit, of the claims that hold in print: a
count by paper, then what moved. The commit's verdicts and today's are counted by today's rule.

PYTHONPATH=. python docs/examples/claims_since.py COMMIT [PROFILE]
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

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
    found: dict[str, str] = {}
    for text in texts:
        for line in csv.DictReader(text.splitlines()):
            found.setdefault(line["id"], claim_kind(line["verdict"]))
    return found


def of_commit(commit: str, profile: str) -> Iterator[str]:
    names = git("ls-tree", "-r", "--name-only", commit, f"results/{profile}").splitlines()
    return (git("show", f"{commit}:{name}") for name in names if name.endswith(".claims.csv"))


def of_today(profile: str) -> Iterator[str]:
    files = sorted((ROOT / "results" / profile).glob("*/*.claims.csv"))
    return (file.read_text() for file in files)


def markdown(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = list(head)
    return "\n".join(
        f"| {' | '.join(map(str, row))} |" for row in (head, ["---"] * len(head), *rows)
    )


def main(commit: str, profile: str = "cpu") -> None:
    before, now = verdicts(of_commit(commit, profile)), verdicts(of_today(profile))
    moves: dict[tuple[str, str], list[str]] = {}
    counts: dict[str, Counter[tuple[str, str]]] = {}
    for paper in published.papers():
        for claim in published.claims(paper):
            if claim.holds_in_print == "yes":
                move = before.get(claim.id, UNMEASURED), now.get(claim.id, UNMEASURED)
                moves.setdefault(move, []).append(claim.id)
                for name in (paper, "together"):
                    counts.setdefault(name, Counter()).update(enumerate(move))
    counts["together"] = counts.pop("together")  # last
    rows = (
        (name, found.total() // 2, *(f"{found[0, k]} → {found[1, k]}" for k in KINDS))
        for name, found in counts.items()
    )
    print(markdown(("paper", "hold in print", *KINDS), rows), end="\n\n")
    moved = sorted(moves, key=lambda move: [KINDS.index(kind) for kind in move])
    changed = [
        (*move, len(moves[move]), ", ".join(moves[move])) for move in moved if len({*move}) == 2
    ]
    print(markdown(("before", "now", "claims", "which"), changed))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
