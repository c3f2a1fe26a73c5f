"""Which tables of a folder a leaderboard is made of."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd

from reports.pages.build import standings_in
from tests.reports.tables.test_standings import LINES, line, record, scored


def table(measure, lines, *, profile="cpu", paper="toys", x_axis="", records=(), published=True):
    layout = scored(lines).layout
    layout.x_axis = x_axis
    return SimpleNamespace(
        profile=profile,
        paper=paper,
        sheet=SimpleNamespace(measure=measure, layout=layout),
        as_published=published,
        lines=pd.DataFrame([{"data": "toys", **one, "profile": profile} for one in lines]),
        records=list(records),
    )


def at(entry, more):
    return {**entry, "column": f"{entry['column']} {more}"}


CARD = table("scorecard", LINES)
PRIVATE = [at(line("plain", "none", "accuracy", 40), "epsilon=4")]
LEAKING = [at(line("floor", "in", "psnr", 17), "client=average")]
FLOOR = [record(row="floor", config={"attack.images_by": "nearest-public"})]


def test_privacy_and_leakage_are_found_by_axis_and_measure_beside_the_scorecard():
    private = table("final", PRIVATE, x_axis="epsilon")
    leaking = table("leakage", LEAKING, records=FLOOR)
    found = standings_in([CARD, private, leaking])
    assert found.metrics == ["accuracy", "floor-psnr", "accuracy-at-epsilon-4"]
    assert standings_in([private, leaking]) is None


def test_those_of_another_paper_or_profile_or_of_a_users_own_settings_are_left_out():
    elsewhere = [
        table("leakage", LEAKING, records=FLOOR, paper="others"),
        table("leakage", LEAKING, records=FLOOR, profile="smoke"),
        table("leakage", LEAKING, records=FLOOR, published=False),
        table("final", PRIVATE),
    ]
    assert standings_in([CARD, *elsewhere]).metrics == ["accuracy"]


def test_the_largest_profile_that_has_a_scorecard_is_taken():
    smoke = table("scorecard", LINES, profile="smoke")
    assert {c.profile for c in standings_in([smoke, CARD]).conditions} == {"cpu"}
