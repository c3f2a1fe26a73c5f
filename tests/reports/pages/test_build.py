"""Which tables of a folder a leaderboard is made of."""

from __future__ import annotations

from types import SimpleNamespace

from reports.pages.build import standings_in
from tests.reports.tables.test_standings import LINES, line, record, scored


def table(measure, lines, *, profile="cpu", paper="toys", x_axis="", records=(), published=True):
    shown = scored([{"data": "toys", **one, "profile": profile} for one in lines], records)
    shown.layout.x_axis = x_axis
    return SimpleNamespace(
        profile=profile,
        paper=paper,
        sheet=SimpleNamespace(measure=measure, layout=shown.layout),
        as_published=published,
        shown=shown,
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
    found = standings_in([CARD, private, leaking])["cpu"]
    assert found.metrics == ["accuracy", "floor-psnr", "accuracy-at-epsilon-4"]
    assert standings_in([private, leaking]) == {}


def test_those_of_another_paper_or_profile_or_of_a_users_own_settings_are_left_out():
    elsewhere = [
        table("leakage", LEAKING, records=FLOOR, paper="others"),
        table("leakage", LEAKING, records=FLOOR, profile="smoke"),
        table("leakage", LEAKING, records=FLOOR, published=False),
        table("final", PRIVATE),
    ]
    assert standings_in([CARD, *elsewhere])["cpu"].metrics == ["accuracy"]


def test_every_profile_has_standings_of_its_own_and_the_largest_comes_first():
    own = line("plain", "none", "accuracy", 10)
    found = standings_in([table("scorecard", [own], profile="smoke"), CARD])
    assert list(found) == ["cpu", "smoke"]
    for profile, of_it in found.items():
        assert {c.profile for c in of_it.conditions} == {profile}
    assert found["cpu"].means("accuracy").to_dict() == {"plain": 80, "public": 80}
    assert found["smoke"].means("accuracy").to_dict() == {"plain": 10}
