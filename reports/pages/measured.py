"""How much of what papers print a set of results has, and how the papers' claims stand there: for
the top of the page, and as Markdown.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fedtables.reports.pages.result_files import Result
from fedtables.reports.tables.claims import CUT_SHORT, NO_DIFFERENCE
from fedtables.reports.tables.margins import LOOKS
from fedtables.reports.tables.markup import markdown_table
from fedtables.results import published
from fedtables.results.store import PLACE

HOLDS, HOLDS_SETTLED = "holds", "holds, all settled"
FAILS, FAILS_SETTLED = "does not hold", "does not hold, all settled"
WHERE_DECIDED, IN_PART, UNDECIDED = "holds where decided", "in part", "undecided"
UNMEASURED = "not measured"
KINDS = (
    *(HOLDS, HOLDS_SETTLED, WHERE_DECIDED, IN_PART, NO_DIFFERENCE, UNDECIDED),
    *(FAILS, FAILS_SETTLED, CUT_SHORT, UNMEASURED),
)
"""What a claim comes to; settled: by runs that are all known to have settled. Of a claim with
several comparisons some may be decided: it holds where decided if they all hold.
"""


COST = ("core_hours", "beyond")
"""Of a claim: core-hours that would close its comparisons, and how many need more seeds than
the last of `LOOKS`."""
TO_CLOSE = "core-hours to close the open"


MARKS = {HOLDS: "yes", FAILS: "no", CUT_SHORT: "short", NO_DIFFERENCE: "same"}


def verdict_kind(verdict: str) -> str:
    """`yes`, `no`, `same`, `short` or `open`: whether a claim holds wherever it was judged, or
    nowhere, or there is no difference, or its runs were cut short; open if in part or undecided.
    """
    return MARKS.get(claim_kind(verdict), "open")


def standing(results: Sequence[Result]) -> list[dict[str, Any]]:
    """A line per profile and paper: how many claims the paper makes, how many of them hold in
    print, and of those how many come to each of `KINDS` in the results; and every claim with the
    place of its evidence.

    Of several results that judge a claim the first counts, of settings of somebody's own none.
    """
    found: dict[tuple[str, str], dict[str, tuple[str, Mapping[str, str]]]] = {}
    for result in results:
        for claim in result.claims if result.as_published else ():
            judged = found.setdefault((result.profile, result.paper), {})
            judged.setdefault(claim["id"], (result.anchor, claim))
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
        cost = {name: sum(float(line.get(name) or 0) for line in in_print) for name in COST}
        lines.append({**told, "in_print": len(in_print), "kinds": counts, **cost})
    return lines


def to_close(line: Mapping[str, Any]) -> str:
    """What would close what is open in a line of `standing`: less, where claims share cells."""
    hours, beyond = line["core_hours"], int(line["beyond"])
    parts = []
    if hours:
        parts.append(f"up to {hours:.2g}")
    if beyond:
        parts.append(f"{beyond} need more than {LOOKS[-1]} seeds")
    return "; ".join(parts)


def claim_kind(verdict: str) -> str:
    """The one of `KINDS`, settled or not, that a verdict comes to."""
    if verdict.startswith(("not measured", "not judged (")):
        return UNMEASURED
    if verdict.startswith(("does not hold", "holds in 0 of")):
        return FAILS
    if verdict.startswith("cut short"):
        return CUT_SHORT
    if held := re.match(r"holds in (\d+) of (\d+)", verdict):
        wholly = held[1] == held[2] and NO_DIFFERENCE not in verdict
        return WHERE_DECIDED if wholly else IN_PART
    if verdict.startswith(NO_DIFFERENCE):
        return UNDECIDED if ";" in verdict else NO_DIFFERENCE
    return HOLDS if verdict.startswith("holds") else UNDECIDED


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


def covered(results: Sequence[Result]) -> list[str]:
    """By profile a table of papers' tables, one of claims, and one of what was expected of tables
    that no paper prints; nothing for results of no paper that prints numbers.
    """
    lines = []
    for profile in dict.fromkeys(result.profile for result in results):
        own = [r for r in results if r.profile == profile and r.paper in published.papers()]
        if own:
            lines += [
                f"## What is measured under `{profile}`",
                "",
                *_claims(own),
                *_tables(own),
                "",
                *_expected(own),
            ]
    return lines


def _claims(results: Sequence[Result]) -> list[str]:
    lines = standing(results)
    if not lines:
        return []
    both = {name: sum(line[name] for line in lines) for name in ("claims", "in_print", *COST)}
    kinds = {kind: sum(line["kinds"][kind] for line in lines) for kind in KINDS}
    rows = [
        (line["paper"], line["claims"], line["in_print"], *line["kinds"].values(), to_close(line))
        for line in (*lines, {"paper": "together", **both, "kinds": kinds})
    ]
    return [*markdown_table(("paper", "claims", "hold in print", *KINDS, TO_CLOSE), rows), ""]


def _expected(results: Sequence[Result]) -> list[str]:
    """Of what is judged the expectations: no paper's text makes them."""
    rows = [
        (line["id"], line["claim"], line["verdict"])
        for result in results
        if result.as_published
        for line in result.claims
        if line["id"] not in {claim.id for claim in published.claims(result.paper)}
    ]
    head = ("expected of tables of this suite's own", "what", "verdict")
    return [*markdown_table(head, rows), ""] if rows else []


def _tables(results: Sequence[Result]) -> list[str]:
    """Of the tables with printed numbers, how many these are, how many any result has, and of how
    many of those the first result that has them says that their run had settled or was cut short.
    """
    rows = []
    for paper in dict.fromkeys(result.paper for result in results):
        for name in published.tables(paper):
            of_it = [r for r in results if r.paper == paper and r.name.partition(".")[0] == name]
            printed = printed_numbers(f"{paper}/{name}")
            if printed:
                lines = [_compared(result) for result in of_it]
                found = pd.concat(lines).drop_duplicates(PLACE) if lines else _NOTHING
                marks = [int((found["settled"] == mark).sum()) for mark in ("yes", "no", "")]
                seeds = sorted({r.sheet.layout.seeds.partition(" seed")[0] for r in of_it})
                told = " or ".join(seeds) or "none"
                rows.append((f"{paper}/{name}", printed, len(found), *marks, told))
    sums = (sum(column) for column in zip(*(row[1:-1] for row in rows), strict=True))
    head = ("table", "printed numbers", "measured", "settled", "cut short", "not known", "seeds")
    return markdown_table(head, [*rows, ("together", *sums, "")])


_NOTHING = pd.DataFrame(columns=[*PLACE, "settled"])


def _compared(result: Result) -> pd.DataFrame:
    """The lines that have a printed number beside the measured one, with what their run says of
    having settled: `yes`, `no`, or nothing, as files say that are older.
    """
    lines = result.sheet.shown(result.lines)
    lines = lines[lines["difference"].notna()]
    return lines.reindex(columns=_NOTHING.columns, fill_value="")


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
        result, key = section["result"], section["layout"].key
        tables = compared.setdefault((result.profile, result.paper), {})
        if section["printed"]:
            tables[key] = max(tables.get(key, 0), section["compared"])
    return {
        (profile, paper): (
            sum(tables.values()),
            sum(printed_numbers(f"{paper}/{table}") for table in published.tables(paper)),
        )
        for (profile, paper), tables in compared.items()
    }
