"""The page of methods on equal terms."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

from reports.pages.leaderboard import nemenyi_quantiles, render_leaderboard, share_of_best
from reports.tables.standings import standings_of
from tests.reports.tables.test_standings import LINES, line, scored

COSTS = [
    line(row, public, metric, value)
    for row, public in (("plain", "none"), ("public", "in"), ("public", "out"))
    for metric, value in (
        ("megabytes-up", 1),
        ("megabytes-down", 0),
        ("client-teraflops", 0.5),
        ("server-teraflops", 0),
    )
]


def test_the_page_holds_the_standings_as_json_and_a_choice_of_every_condition():
    found = standings_of([scored([*LINES, *COSTS])])
    page = render_leaderboard(found)
    data = json.loads(re.search(r'id="standings">(.*?)</script>', page, re.DOTALL)[1])
    assert {method["title"] for method in data["methods"]} == {"Bound", "Plain", "Public"}
    assert len(data["quantiles"]) == len(data["methods"]) + 1
    for text in ("league/toy", "distribution=iid", "Accuracy (%)", "networks may differ"):
        assert text in page
    assert page.count("<figure>") == 3


def test_no_title_can_end_the_element_that_holds_the_data():
    made = scored([*LINES, *COSTS])
    made.layout.rows = {**made.layout.rows, "plain": "</script><b>"}
    assert "</script><b>" not in render_leaderboard(standings_of([made]))


def test_quantiles_are_those_of_demsars_table_5():
    assert nemenyi_quantiles(4)[2:] == pytest.approx([1.960, 2.343, 2.569], abs=2e-3)


def test_shares_run_from_the_worst_to_the_best_and_costs_by_their_logarithm():
    values = pd.Series({"a": 1.0, "b": 10.0, "c": 100.0})
    assert share_of_best(values, lower=False)["c"] == 1
    assert share_of_best(values, lower=True).to_dict() == pytest.approx({"a": 1, "b": 0.5, "c": 0})
    free = share_of_best(pd.Series({"a": 0.0, "b": 1.0}), lower=True)
    assert free.to_dict() == {"a": 1, "b": 0}
    assert share_of_best(pd.Series({"a": 2.0, "b": 2.0}), lower=True).tolist() == [1, 1]


def test_a_table_of_bounds_alone_has_a_page_without_ranks():
    found = standings_of([scored(LINES[:1])])
    assert render_leaderboard(found).count("<figure>") == 0


def test_the_page_opens_with_networks_that_are_alike_whatever_table_is_read_first():
    mixed = {**line("plain", "in", "accuracy", 60)}
    mixed["column"] = mixed["column"].replace(" public", " networks=mixed public")
    page = render_leaderboard(standings_of([scored([mixed]), scored(LINES)]))
    choice = page.partition('data-condition="networks">')[2].partition("</select>")[0]
    assert re.findall("<option>(.*?)</option>", choice) == ["alike", "mixed"]
