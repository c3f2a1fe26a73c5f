"""How a paper's claims stand in a set of results, at the top of the page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from reports.tables.claims import CUT_SHORT
from results import published

HOLDS, HOLDS_SETTLED = "holds", "of these settled"
FAILS, FAILS_SETTLED = "does not hold", "of those settled"
WHERE_DECIDED, IN_PART, UNDECIDED = "holds where decided", "in part", "undecided"
UNMEASURED = "not measured"
KINDS = (
    *(HOLDS, HOLDS_SETTLED, WHERE_DECIDED, IN_PART, UNDECIDED),
    *(FAILS, FAILS_SETTLED, CUT_SHORT, UNMEASURED),
)
"""What a claim comes to; settled: by runs that are all known to have settled. Of a claim with
several comparisons some may be decided: it holds where decided if they all hold.
"""


def verdict_kind(verdict: str) -> str:
    """`yes`, `no`, `short` or `open`: whether a claim holds wherever it was judged, or nowhere, or
    its runs were cut short; open if in part or undecided.
    """
    if verdict.startswith(("does not hold", "holds in 0 of")):
        return "no"
    if verdict.startswith("cut short"):
        return "short"
    return "yes" if verdict.startswith("holds") and not verdict.startswith("holds in") else "open"


def standing(
    judged: Iterable[tuple[str, str, str, Mapping[str, str]]],
) -> list[dict[str, Any]]:
    """A line per profile and paper, from `(profile, paper, anchor, claim)` of every claim that was
    judged, `claim` a line of a table's `claims.csv`: how many claims the paper makes, how
    many of them hold in print, and of those how many come to each of `KINDS` here; and every claim
    with the place of its evidence.

    Of a claim that several results judge the first counts.
    """
    found: dict[tuple[str, str], dict[str, tuple[str, Mapping[str, str]]]] = {}
    for profile, paper, anchor, line in judged:
        found.setdefault((profile, paper), {}).setdefault(line["id"], (anchor, line))
    lines = []
    for (profile, paper), judgements in found.items():
        claims = published.claims(paper)
        every = [(c, *judgements.get(c.id, ("", {"verdict": UNMEASURED}))) for c in claims]
        in_print = [line for claim, _, line in every if claim.holds_in_print == "yes"]
        kinds = Counter(kind for line in in_print for kind in _kinds(line))
        links = [
            {
                "text": claim.claim,
                "verdict": line["verdict"],
                "kind": verdict_kind(line["verdict"]),
                "anchor": f"{anchor}-{claim.id}" if anchor else "",
            }
            for claim, anchor, line in every
        ]
        told = {"paper": paper, "profile": profile, "claims": len(claims), "links": links}
        counts = {kind: kinds[kind] for kind in KINDS}
        lines.append({**told, "in_print": len(in_print), "kinds": counts})
    return lines


def claim_kind(verdict: str) -> str:
    """The one of `KINDS`, settled or not, that a verdict comes to."""
    if verdict.startswith(("not measured", "not judged (")):
        return UNMEASURED
    kind = verdict_kind(verdict)
    if kind == "open":
        held = re.match(r"holds in (\d+) of (\d+)", verdict)
        return UNDECIDED if not held else WHERE_DECIDED if held[1] == held[2] else IN_PART
    return {"yes": HOLDS, "no": FAILS, "short": CUT_SHORT}[kind]


def _kinds(line: Mapping[str, str]) -> list[str]:
    """The `KINDS` that a claim counts for; older lines do not tell what had settled."""
    kind = claim_kind(line["verdict"])
    if kind == HOLDS and _all(line, "settled", "held"):
        return [HOLDS, HOLDS_SETTLED]
    if kind == FAILS and _all(line, "failed_settled", "failed"):
        return [FAILS, FAILS_SETTLED]
    return [kind]


def _all(line: Mapping[str, str], settled: str, counted: str) -> bool:
    """Whether all comparisons that one column counts are in the other, and there are any."""
    return line.get(settled, "") not in ("", "0") and line[settled] == line[counted]
