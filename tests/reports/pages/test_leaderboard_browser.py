"""The leaderboard in a real browser, where one is installed: its ranks are those that Python
computes, it filters, picks, and fits a phone.
"""

import pytest

from fedtables.reports.pages.leaderboard import render_leaderboard
from fedtables.reports.tables.standings import ranking, standings_of
from tests.reports.pages.test_leaderboard import COSTS
from tests.reports.tables.test_standings import TITLES, line, scored

ACCURACIES = {
    "iid": {("bound", "none"): 99, ("plain", "none"): 80, ("public", "in"): 90},
    "niid1": {("bound", "none"): 97, ("plain", "none"): 60, ("public", "in"): 60},
}
"""By partition, row and public images: where both are equal, both have a rank of a half."""
SETTLED = {"iid": "yes", "niid1": "no"}


def at(partition, entry):
    return {**entry, "column": entry["column"].replace("iid", partition)}


@pytest.fixture(scope="module")
def standings():
    lines = [
        at(partition, line(row, public, "accuracy", value, settled=SETTLED[partition]))
        for partition, values in ACCURACIES.items()
        for (row, public), value in values.items()
    ]
    held = at("iid", line("public", "in", "property", "yes"))
    held["column"] += " property=distillation"
    plain = line("plain", "none", "property", "no")
    plain["column"] += " property=distillation"
    costs = [
        at(partition, cost) for partition in ACCURACIES for cost in COSTS if "out" not in str(cost)
    ]
    mixed = line("public", "in", "accuracy", 50)
    mixed["column"] = "distribution=iid networks=mixed public=in"
    return standings_of([scored([*lines, *costs, held, plain, mixed])])


@pytest.fixture
def open_board(open_tab, standings, tmp_path):
    page = tmp_path / "leaderboard.html"
    page.write_text(render_leaderboard({"smoke": standings}), encoding="utf-8")

    def opening(**options):
        return open_tab(page.as_uri(), **options)

    return opening


def ranks(tab):
    """By method, the mean rank that the page shows."""
    lines = tab.locator(".board tbody tr").all()
    return {
        entry.locator("th").inner_text(): entry.locator("td").first.inner_text() for entry in lines
    }


def test_its_ranks_are_those_that_python_computes(open_board, standings):
    tab = open_board()
    assert tab.complaints == []
    ranked = ranking(standings)["mean_rank"]
    expected = {TITLES[row]: f"{rank:.2f}" for row, rank in ranked.items()}
    assert ranks(tab) == {**expected, "Bound †": "–"}
    assert expected == {"Public": "1.25", "Plain": "1.75"}
    assert f"critical difference {ranking(standings)['critical_difference']:.2f}" in tab.inner_text(
        "#count"
    )


def test_it_ranks_again_within_the_conditions_that_are_chosen(open_board):
    tab = open_board()
    tab.select_option("[data-condition=column]", "distribution=niid1")
    assert ranks(tab) == {"Public": "1.50", "Plain": "1.50", "Bound †": "–"}
    assert tab.inner_text("#count").startswith(
        "Profile smoke: 1 of 3 conditions (seeds: 2); 2 methods ranked; critical difference "
    )


def test_what_breaks_a_constraint_is_hidden_and_another_one_picked(open_board):
    tab = open_board()
    assert "Pick Public" in tab.inner_text("#pick")
    tab.check("[data-property=distillation]")
    assert ranks(tab) == {"Plain": "1.00"}
    assert "Pick Plain" in tab.inner_text("#pick")
    tab.fill("#megabytes", "0.5")
    assert ranks(tab) == {}
    assert "Loosen one" in tab.inner_text("#pick")


def cells(tab, title):
    """By heading, the texts of a method's line."""
    heads = tab.locator(".board thead th").all_inner_texts()
    lines = tab.locator(".board tbody tr").filter(has_text=title)
    return dict(zip(heads[1:], lines.first.locator("td").all_inner_texts(), strict=True))


def test_a_number_is_marked_where_its_own_metric_was_cut_short(open_board):
    tab = open_board()
    shown = cells(tab, "Public")
    assert shown["Accuracy (%)"] == "75.00 §"
    assert shown["Sent up (MB)"] == "1"
    tab.select_option("[data-condition=column]", "distribution=iid")
    assert cells(tab, "Public")["Accuracy (%)"] == "90.00"


def test_profiles_are_chosen_never_mixed_and_what_breaks_the_contract_has_no_rank(
    open_tab, standings, tmp_path
):
    values = {"own": 95, "plain": 50, "public": 50}
    lines = [line(r, "none", "accuracy", v, profile="tiny") for r, v in values.items()]
    made = scored([{**lines[0], "contract": "reads test labels"}, *lines[1:]])
    made.layout.rows = {**TITLES, "own": "My own ✗"}
    page = tmp_path / "leaderboard.html"
    both = {"smoke": standings, "tiny": standings_of([made])}
    page.write_text(render_leaderboard(both), encoding="utf-8")
    tab = open_tab(page.as_uri())
    assert tab.inner_text("#count").startswith("Profile smoke: ")
    assert tab.inner_text("#count").endswith("; only under tiny: My own ✗")
    assert ranks(tab)["Public"] == "1.25"
    assert tab.locator("figure.picture:visible").count() == 3
    tab.select_option("[data-condition=profile]", "tiny")
    assert ranks(tab) == {"Plain": "1.50", "Public": "1.50", "Bound †": "–", "My own ✗": "–"}
    assert tab.locator("figure.picture:visible").count() == 2
    assert tab.complaints == []
