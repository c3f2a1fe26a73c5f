"""What of print is measured, by hand."""

from types import SimpleNamespace

import pandas as pd
import pytest

from fedtables.reports.pages.measured import (
    coverage,
    covered,
    printed_numbers,
    standing,
    to_close,
    verdict_kind,
)
from fedtables.results import published
from fedtables.results.published import claims


def result(name, lines, seeds="1 seed", judged=(), paper="dlad"):
    frame = pd.DataFrame(lines, columns=["row", "column", "metric", "difference", "settled"])
    return SimpleNamespace(
        profile="cpu",
        paper=paper,
        name=name,
        anchor=name,
        as_published="released" not in name,
        claims=[
            {"id": claim, "claim": "It is so", "verdict": verdict, "held": "1", "settled": "0"}
            for claim, verdict in judged
        ],
        lines=frame,
        sheet=SimpleNamespace(shown=lambda frame: frame, layout=SimpleNamespace(seeds=seeds)),
    )


def test_a_number_counts_once_and_only_beside_a_printed_one():
    first = [("a", "x=1", "accuracy", "0.1", "yes"), ("b", "x=1", "accuracy", None, "yes")]
    second = [
        ("a", "x=1", "accuracy", "0.2", "no"),
        ("a", "x=2", "accuracy", "0.2", "no"),
        ("a", "x=3", "accuracy", "0.2", ""),
    ]
    page = covered([result("table3", first), result("table3.bf16", second, seeds="3 to 6 seeds")])
    assert "| dlad/table3 | 26 | 3 | 1 | 1 | 1 | 1 or 3 to 6 |" in page
    assert "| dlad/table4 | 141 | 0 | 0 | 0 | 0 | none |" in page
    printed = sum(
        isinstance(cell.value, float)
        for name in published.tables("dlad")
        for cell in published.published_table(f"dlad/{name}")
    )
    assert page[-2] == f"| together | {printed} | 3 | 1 | 1 | 1 |  |"


def test_claims_are_counted_by_verdict_in_tables_of_the_papers_own():
    held, other = [claim.id for claim in claims("dlad") if claim.holds_in_print == "yes"][:2]
    judged = [(held, "holds"), (other, "does not hold")]
    page = covered(
        [result("table3", [], judged=judged[:1]), result("table3.released", [], judged=judged)]
    )
    known = claims("dlad")
    in_print = sum(claim.holds_in_print == "yes" for claim in known)
    others = " | ".join("0" * 8)
    line = f"| dlad | {len(known)} | {in_print} | 1 | {others} | {in_print - 1} |  |"
    assert line in page


@pytest.mark.parametrize(
    ("hours", "beyond", "said"),
    [
        (0.0, 0, ""),
        (3.24, 0, "up to 3.2"),
        (0.5, 2, "up to 0.5; 2 need more than 12 seeds"),
    ],
)
def test_what_is_open_has_its_price(hours, beyond, said):
    assert to_close({"core_hours": hours, "beyond": beyond}) == said


def test_what_no_paper_claims_is_listed_as_expected_and_counts_in_no_paper():
    claim = claims("dlad")[0].id
    page = covered([result("trial", [], judged=[("dlad-trial-z", "holds"), (claim, "holds")])])
    assert [line for line in page if "It is so" in line] == ["| dlad-trial-z | It is so | holds |"]
    assert any(line.startswith(f"| dlad | {len(claims('dlad'))} |") for line in page)


def test_printed_numbers_with_a_measured_one_count_once():
    def section(key, compared, profile="cpu"):
        layout, result = SimpleNamespace(key=key), SimpleNamespace(profile=profile, paper="dlad")
        printed = printed_numbers(key)
        return {"layout": layout, "result": result, "compared": compared, "printed": printed}

    assert printed_numbers("dlad/table1") == 0  # classes, which are texts
    assert printed_numbers("dlad/table2") == 48  # of 60 cells, 12 are dashes
    whole = sum(printed_numbers(f"dlad/table{number}") for number in range(1, 5))
    sections = [
        section("dlad/table1", 20),
        section("dlad/table3", 20),
        section("dlad/table2", 16),
        section("dlad/table2", 12),  # of another protocol
        section("dlad/table2", 48, "smoke"),
    ]
    both = {("cpu", "dlad"): (36, whole), ("smoke", "dlad"): (48, whole)}
    assert coverage(sections) == both


@pytest.mark.parametrize(
    ("verdict", "kind"),
    [
        ("holds", "yes"),
        ("holds; 1 undecided (spread over seeds)", "yes"),
        ("holds in 3 of 4", "open"),
        ("holds in 0 of 1; 3 undecided (spread over seeds)", "no"),
        ("does not hold", "no"),
        ("cut short", "short"),
        ("cut short: 4, which all fail so far", "short"),
        ("no difference", "same"),
        ("no difference (1 before its run settled)", "same"),
        ("no difference: 1; 1 undecided (spread over seeds)", "open"),
        ("holds in 1 of 1 decided; no difference: 1", "open"),
        ("not judged: accuracy at chance", "open"),
        ("cut short; 2 undecided (spread over seeds)", "short"),
        ("holds (1 before its run settled)", "yes"),
        ("not measured", "open"),
        ("holds (at accuracy 23 % in a=1)", "yes"),
    ],
)
def test_a_verdict_is_yes_no_or_neither(verdict, kind):
    assert verdict_kind(verdict) == kind


def claim(identifier, verdict, settled=""):
    counts = {"held": "4", "settled": settled, "failed": "4", "failed_settled": settled}
    return {"id": identifier, "verdict": verdict, **counts}


def judging(anchor, claim):
    about = {"profile": "cpu", "paper": "fedad", "as_published": True}
    return SimpleNamespace(**about, anchor=anchor, claims=[claim])


def test_claims_that_hold_in_print_are_counted_by_what_they_come_to_here():
    true = [c.id for c in published.claims("fedad") if c.holds_in_print == "yes"]
    false = next(c.id for c in published.claims("fedad") if c.holds_in_print != "yes")
    verdicts = (
        "holds",
        "holds",
        "holds (2 before their runs settled)",
        "holds in 3 of 4",
        "holds in 3 of 3; 1 undecided (spread over seeds)",
        "undecided (spread over seeds)",
        "does not hold",
        "does not hold",
        "no difference",
        "cut short",
        "not measured",
    )
    judged = [
        judging(f"table-{number}", claim(true[number], verdict, settled))
        for number, (verdict, settled) in enumerate(zip(verdicts, "43000043000", strict=True))
    ]
    again = judging("later", claim(true[0], "does not hold"))
    untrue = judging("table-9", claim(false, "holds"))
    (line,) = standing([*judged, again, untrue])
    assert (line["profile"], line["paper"]) == ("cpu", "fedad")
    assert line["claims"] == len(published.claims("fedad"))
    assert line["in_print"] == len(true)
    assert line["kinds"] == {
        "holds": 3,
        "holds, all settled": 1,
        "holds where decided": 1,
        "in part": 1,
        "no difference": 1,
        "undecided": 1,
        "does not hold": 2,
        "does not hold, all settled": 1,
        "cut short": 1,
        "not measured": 1 + len(true) - len(verdicts),
    }
    links = {link["text"]: link["anchor"] for link in line["links"]}
    texts = {c.id: c.claim for c in published.claims("fedad")}
    assert links[texts[true[0]]] == f"table-0-{true[0]}"
    assert sum(not anchor for anchor in links.values()) == len(links) - len(verdicts) - 1
