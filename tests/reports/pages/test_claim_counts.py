"""How claims stand, at the top of the page."""

from __future__ import annotations

import pytest

from reports.pages.claim_counts import claim_kind, standing, verdict_kind
from results import published


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
        ("not judged: accuracy at chance", "open"),
        ("cut short; 2 undecided (spread over seeds)", "short"),
        ("holds (1 before its run settled)", "yes"),
        ("not measured", "open"),
        ("holds (at accuracy 23 % in a=1)", "yes"),
    ],
)
def test_a_verdict_is_yes_no_or_neither(verdict, kind):
    assert verdict_kind(verdict) == kind


def test_what_is_measured_and_not_judged_is_undecided():
    assert claim_kind("not judged: accuracy at chance") == "undecided"
    assert claim_kind("not judged (the paper prints no values)") == "not measured"


def claim(identifier, verdict, settled=""):
    counts = {"held": "4", "settled": settled, "failed": "4", "failed_settled": settled}
    return {"id": identifier, "verdict": verdict, **counts}


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
        "cut short",
        "not measured",
    )
    judged = [
        ("cpu", "fedad", f"table-{number}", claim(true[number], verdict, settled))
        for number, (verdict, settled) in enumerate(zip(verdicts, "4300004300", strict=True))
    ]
    again = ("cpu", "fedad", "later", claim(true[0], "does not hold"))
    untrue = ("cpu", "fedad", "table-9", claim(false, "holds"))
    (line,) = standing([*judged, again, untrue])
    assert (line["profile"], line["paper"]) == ("cpu", "fedad")
    assert line["claims"] == len(published.claims("fedad"))
    assert line["in_print"] == len(true)
    assert line["kinds"] == {
        "holds": 3,
        "of these settled": 1,
        "holds where decided": 1,
        "in part": 1,
        "undecided": 1,
        "does not hold": 2,
        "of those settled": 1,
        "cut short": 1,
        "not measured": 1 + len(true) - len(verdicts),
    }
    links = {link["text"]: link["anchor"] for link in line["links"]}
    texts = {c.id: c.claim for c in published.claims("fedad")}
    assert links[texts[true[0]]] == f"table-0-{true[0]}"
    assert sum(not anchor for anchor in links.values()) == len(links) - len(verdicts) - 1
