"""The page of methods on equal terms."""

import json
import math
import re

import pandas as pd
import pytest

from fedtables.reports.drawing.palette import listed, looks
from fedtables.reports.measures.exchange import SCORED
from fedtables.reports.pages import leaderboard
from fedtables.reports.pages.leaderboard import (
    column_of,
    draw_axes,
    draw_fronts,
    nemenyi_quantiles,
    render_leaderboard,
    share_of_best,
)
from fedtables.reports.tables.standings import planes, standings_of
from tests.reports.tables.test_standings import LINES, TITLES, line, scored

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
    page = render_leaderboard({"smoke": found})
    data = json.loads(re.search(r'id="standings">(.*?)</script>', page, re.DOTALL)[1])
    methods = data["profiles"]["smoke"]["methods"]
    assert {method["title"] for method in methods} == {"Bound", "Plain", "Public"}
    assert len(data["profiles"]["smoke"]["quantiles"]) == len(methods) + 1
    assert not {"std", "n"} & set(methods[0])  # of the files beside
    for text in ("league/toy", "distribution=iid", "Accuracy (%)", "networks may differ"):
        assert text in page
    assert page.count("<figure ") == 3


def test_the_page_says_what_its_properties_seconds_and_leaks_mean():
    found = standings_of([scored([*LINES, *COSTS])])
    page = render_leaderboard({"smoke": found})
    assert f"<dt>public images</dt><dd>{SCORED['distillation']}</dd>" in page
    assert 'data-property="distillation" data-wanted="no"> no public images' in page
    assert 'data-column="property distillation">public images' in page
    assert "the machine that ran them" in page
    assert "The floor is the nearest public image" not in page
    key = found.conditions[0].key
    found = found.and_also([("plain", "floor-psnr", key, 17, math.nan, 1, False)])
    assert "The floor is the nearest public image" in render_leaderboard({"smoke": found})


@pytest.mark.parametrize(
    ("metric", "title", "written", "better"),
    [
        ("accuracy-at-epsilon-4", "Accuracy at epsilon 4 (%)", {2}, "higher"),
        ("accuracy-at-10-mb", "Accuracy at 10 MB (%)", {2}, "higher"),
        ("client-seconds", "Time of clients (s)", {3}, "lower"),
        ("leaked-psnr", "PSNR of what leaks (dB)", {3}, ""),
        ("fog", "fog", {3}, ""),
    ],
)
def test_a_column_is_headed_and_written_as_what_is_known_of_its_metric(
    metric, title, written, better
):
    column = column_of(metric)
    assert (column["title"], column["better"]) == (title, better)
    assert set(column["format"].values()) == written


@pytest.fixture
def private():
    """Two rows of one method and a bound, with accuracy at two epsilons."""
    made = scored([*LINES, *COSTS])
    made.layout.methods = dict.fromkeys(TITLES, "fedkd-gong")
    found = standings_of([made])
    key = found.conditions[0].key
    return found.and_also(
        (row, f"accuracy-at-epsilon-{epsilon}", key, accuracy + len(row), math.nan, 1, False)
        for row in ("plain", "public")
        for epsilon, accuracy in (("1", 30.0), ("10", 60.0))
    )


def test_every_plane_is_drawn_from_what_the_files_say_in_the_looks_of_the_tables(
    private, monkeypatch, tmp_path
):
    seen = []
    monkeypatch.setattr(leaderboard, "front_plot", lambda *given: seen.append(given))
    draw_fronts(private, tmp_path / "fronts.png", "toys")
    ((drawn, titles, styles, path, about),) = seen
    assert [plane.spots for plane in drawn] == list(planes(private).values())
    assert [plane.ticks for plane in drawn] == [(), (), [1, 10]]
    assert titles == TITLES
    assert styles == looks(TITLES, dict.fromkeys(TITLES, "fedkd-gong"), {"bound"})
    assert styles["plain"].colour != styles["public"].colour != listed()["fedkd-gong"].colour
    assert path == tmp_path / "fronts.png"
    assert about.note.startswith("toys; hollow")


def test_the_axes_end_with_accuracy_at_the_largest_epsilon(private, monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(leaderboard, "parallel_plot", lambda *given: seen.append(given))
    draw_axes(private, tmp_path / "axes.png", "toys")
    ((values, styles, names, *_),) = seen
    assert names == [
        *("accuracy", "MB up", "MB down", "work of clients", "work of server", "at epsilon 10"),
    ]
    # 80 and 80 % of plain, 90 and 70 of public: both are the best; 65 and 66 % at epsilon 10.
    assert values == {"Plain": [1, 1, 1, 1, 1, 0], "Public": [1, 1, 1, 1, 1, 1]}
    assert set(styles) == set(values)


def test_no_title_can_end_the_element_that_holds_the_data():
    made = scored([*LINES, *COSTS])
    made.layout.rows = {**made.layout.rows, "plain": "</script><b>"}
    assert "</script><b>" not in render_leaderboard({"smoke": standings_of([made])})


def test_quantiles_are_those_of_demsars_table_5():
    assert nemenyi_quantiles(4)[2:] == pytest.approx([1.960, 2.343, 2.569], abs=2e-3)


def test_shares_run_from_the_worst_to_the_best_and_costs_by_their_logarithm():
    values = pd.Series({"a": 1.0, "b": 10.0, "c": 100.0})
    assert share_of_best(values, lower=False)["c"] == 1
    assert share_of_best(values, lower=True).to_dict() == pytest.approx({"a": 1, "b": 0.5, "c": 0})
    free = share_of_best(pd.Series({"a": 0.0, "b": 1.0}), lower=True)
    assert free.to_dict() == {"a": 1, "b": 0}
    assert share_of_best(pd.Series({"a": 2.0, "b": 2.0}), lower=True).tolist() == [1, 1]


def test_the_page_opens_with_networks_that_are_alike_whatever_table_is_read_first():
    mixed = {**line("plain", "in", "accuracy", 60)}
    mixed["column"] = mixed["column"].replace(" public", " networks=mixed public")
    page = render_leaderboard({"smoke": standings_of([scored([mixed]), scored(LINES)])})
    choice = page.partition('data-condition="networks">')[2].partition("</select>")[0]
    assert re.findall("<option>(.*?)</option>", choice) == ["alike", "mixed"]
