"""Methods over the conditions of a scorecard, by hand."""

import json
import math
from types import SimpleNamespace

import pytest

from fedtables.reports.tables.ranking import Spot
from fedtables.reports.tables.standings import (
    at_epsilon,
    costs,
    fronts,
    planes,
    ranking,
    standings_of,
)
from fedtables.reports.tables.standings_files import dumped
from fedtables.reports.tables.table import ShownTable
from tests.records import made_record
from tests.reports.drawn import table_of

TITLES = {"bound": "Bound", "plain": "Plain", "public": "Public"}


def line(row, public, metric, value, **more):
    column = f"distribution=iid public={public}"
    value = value if isinstance(value, str) else float(value)
    return {
        **{"row": row, "column": column, "metric": metric, "value": value, "std": None},
        **{"n": 2, "status": "ok", "profile": "smoke"},
        **more,
    }


def record(row="plain", public="none", **more):
    column = f"distribution=iid public={public}"
    return made_record(table="league/toy", row=row, column=column, **{"cell": row, **more})


def scored(lines, records=()):
    oracles, methods = frozenset({"bound"}), {"public": "of-outputs"}
    layout = SimpleNamespace(key="league/toy", rows=TITLES, oracles=oracles, methods=methods)
    return ShownTable(layout, table_of(lines), records)


LINES = [
    line("bound", "none", "accuracy", 99),
    line("plain", "none", "accuracy", 80),
    line("public", "in", "accuracy", 90),
    line("public", "out", "accuracy", 70),
]


def test_a_run_without_public_images_stands_in_every_condition_of_its_column():
    found = standings_of([scored(LINES)])
    assert [condition.public for condition in found.conditions] == ["in", "out"]
    assert found.frame("accuracy").loc["plain"].tolist() == [80, 80]
    assert found.frame("accuracy").loc["public"].tolist() == [90, 70]
    assert ranking(found)["mean_rank"] == {"plain": 1.5, "public": 1.5}
    assert set(found.seeds.values()) == {2}
    assert [method.method for method in found.methods] == ["bound", "plain", "of-outputs"]


def test_where_no_method_uses_public_images_there_is_one_condition():
    found = standings_of([scored(LINES[:2])])
    assert [condition.public for condition in found.conditions] == ["none"]


def test_bounds_and_methods_that_lack_a_condition_are_not_ranked():
    ranks = ranking(standings_of([scored([*LINES[:3], line("bound", "out", "accuracy", 60)])]))
    assert ranks["mean_rank"] == {"plain": 1.0}
    assert ranks["not_ranked"] == ["public"]


def test_a_mean_over_fewer_values_than_anothers_is_not_ranked():
    few, complete = {"defined": 9, "of": 10}, {"defined": 10, "of": 10}
    plain, public = LINES[1], LINES[2] | complete
    ranks = ranking(standings_of([scored([plain | few, public])]))
    assert ranks["mean_rank"] == {"public": 1.0}
    assert ranks["not_ranked"] == ["plain"]
    ranks = ranking(standings_of([scored([plain | complete, public])]))
    assert ranks["mean_rank"] == {"public": 1.0, "plain": 2.0}


def test_a_row_that_breaks_the_contract_is_on_no_front_and_has_no_rank():
    cost = {"plain": 2, "public": 1}
    lines = [
        {**one, "contract": "reads test labels" if one["row"] == "public" else ""}
        for one in (
            *LINES[1:],
            *(line("plain", "none", f"megabytes-{way}", cost["plain"]) for way in ("up", "down")),
            *(
                line("public", at, f"megabytes-{way}", cost["public"])
                for way in ("up", "down")
                for at in ("in", "out")
            ),
        )
    ]
    found = standings_of([scored(lines)])
    assert [method.broken for method in found.methods] == ["", "", "reads test labels"]
    ranks = ranking(found)
    assert ranks["mean_rank"] == {"plain": 1.0}
    assert (ranks["not_ranked"], ranks["broken"]) == ([], ["public"])
    assert fronts(found) == {"megabytes": ["plain"]}


def test_conditions_with_mixed_networks_are_not_ranked_with_the_others():
    mixed = line("public", "in", "accuracy", 50)
    mixed["column"] = "distribution=iid networks=mixed public=in"
    found = standings_of([scored([*LINES, mixed])])
    assert [c.networks for c in found.conditions] == ["alike", "alike", "mixed"]
    assert {c.column for c in found.conditions} == {"distribution=iid"}
    assert ranking(found)["mean_rank"] == {"plain": 1.5, "public": 1.5}
    alone = standings_of([scored([mixed])])
    assert alone.ranked == alone.conditions
    assert "networks=mixed" in alone.conditions[0].key


def test_a_method_needs_what_any_of_its_runs_needs():
    def held(name, value, public="in"):
        column = f"distribution=iid public={public} property={name}"
        return line("public", public, "property", value, column=column)

    lines = [
        *LINES,
        *(held("asynchronous", "yes"), held("asynchronous", "no", "out")),
        *(held("distillation", "no"), held("distillation", "yes", "out")),
    ]
    (*_, method) = standings_of([scored(lines)]).methods
    assert method.properties == {"asynchronous": False, "distillation": True}


def test_what_crosses_is_read_off_records():
    records = [
        record(bytes_by_kind={"up/labels": 3, "down/logits": 4}),
        record(bytes_by_kind={"up/votes": 3}, status="failed"),
    ]
    _, plain, _ = standings_of([scored(LINES, records)]).methods
    assert (plain.sends, plain.receives) == ({"labels"}, {"logits"})


def test_what_was_cut_short_is_known_by_metric():
    """Of a metric with a history of its own; what has none is not known to have been."""
    lines = [
        line("plain", "none", "accuracy", 80, settled="no"),
        line("plain", "none", "megabytes-up", 3, settled=""),
        line("public", "in", "accuracy", 90, settled="yes"),
        line("public", "out", "accuracy", 70, settled="no"),
    ]
    found = standings_of([scored(lines)])
    inside, outside = (condition.key for condition in found.conditions)
    assert found.cut_short("plain", "accuracy") == {inside, outside}
    assert found.cut_short("plain", "megabytes-up") == set()
    assert found.cut_short("public", "accuracy") == {outside}


def test_seconds_are_means_over_seeds_where_every_record_has_them():
    def run(seed, **places):
        return record(seed=seed, fit_seconds=places)

    records = [run(0, local=6.0, server=2.0), run(1, local=8.0)]
    found = standings_of([scored(LINES, records)])
    seconds = found.of("plain", "client-seconds")
    assert list(seconds.index) == [condition.key for condition in found.conditions]
    assert (set(seconds["value"]), set(seconds["n"])) == ({7}, {2})
    assert seconds["std"].tolist() == pytest.approx([math.sqrt(2)] * 2)
    assert found.of("plain", "server-seconds").empty


def test_a_row_with_public_images_elsewhere_has_no_run_without_them():
    """As a plug-in has, which is run in every column: with none it distils on nothing."""
    found = standings_of([scored([*LINES, line("public", "none", "accuracy", 11)])])
    assert found.frame("accuracy").loc["public"].tolist() == [90, 70]
    looked = line("plain", "none", "property", "yes")
    looked["column"] += " property=distillation"
    found = standings_of([scored([*LINES, looked])])
    assert found.frame("accuracy").loc["plain"].isna().all()


def test_failed_cells_and_values_that_are_no_numbers_are_left_out():
    failed = {**line("plain", "none", "", ""), "status": "failed: why", "n": ""}
    found = standings_of([scored([failed, line("public", "in", "accuracy", "nan")])])
    assert not found.seeds
    assert ranking(found)["mean_rank"] == {}
    assert json.loads(dumped({"smoke": found}))["smoke"]["methods"]


def test_a_front_has_the_methods_that_are_better_or_cheaper():
    def cost(row, public, megabytes, work):
        return [
            line(row, public, "megabytes-up", megabytes / 2),
            line(row, public, "megabytes-down", megabytes / 2),
            line(row, public, "client-teraflops", work),
        ]

    lines = [LINES[1], LINES[2], *cost("plain", "none", 4, 1), *cost("public", "in", 4, 2)]
    found = standings_of([scored(lines)])
    assert costs(found)["megabytes"].to_dict() == {"plain": 4, "public": 4}
    assert fronts(found) == {"megabytes": ["public"], "client-teraflops": ["plain", "public"]}
    assert json.loads(dumped({"smoke": found}))["smoke"]["fronts"] == fronts(found)


def test_a_plane_has_a_place_of_each_method_that_has_both_and_marks_the_front():
    lines = [
        line("plain", "none", "accuracy", 80, settled="no"),
        *LINES[2:],
        *(line("plain", "none", name, 1) for name in ("megabytes-up", "megabytes-down")),
        *(line("public", "in", name, 2) for name in ("megabytes-up", "megabytes-down")),
    ]
    found = standings_of([scored(lines)])
    assert fronts(found) == {"megabytes": ["plain"]}
    # Public has 90 and 70 %, as plain has 80 in both, and bytes in one of its conditions alone.
    assert planes(found) == {"megabytes": (Spot("plain", 2, 80, True, True),)}


def test_the_front_against_epsilon_has_what_nothing_beats_at_as_little_or_less():
    found = standings_of([scored(LINES)])
    inside, outside = (condition.key for condition in found.conditions)
    for epsilon, of_plain, of_public in ((1, 40, 30), (4, 50, 60), (10, 70, 60)):
        name = f"accuracy-at-epsilon-{epsilon}"
        plain = [("plain", name, key, of_plain, math.nan, 1, False) for key in (inside, outside)]
        public = ("public", name, inside, of_public, math.nan, 1, epsilon == 4)
        found = found.and_also([*plain, public])
    assert [list(values) for values in at_epsilon(found).values()] == [[40, 30], [50, 60], [70, 60]]
    assert planes(found)["epsilon"] == (
        Spot("plain", 1, 40, True),
        Spot("public", 1, 30, False),
        Spot("plain", 4, 50, False),
        Spot("public", 4, 60, True, True),
        Spot("plain", 10, 70, True),
        Spot("public", 10, 60, False),
    )
    assert fronts(found) == {"epsilon": ["plain", "public"]}


def test_metrics_stand_in_the_order_of_the_method_that_has_most_and_those_at_a_cost_by_it():
    found = standings_of([scored(LINES)])
    names = {
        "plain": ("last", "accuracy-at-10-mb"),
        "public": (
            "first",
            "last",
            "accuracy-at-1-s",
            "accuracy-at-100-mb",
            "accuracy-at-epsilon-4",
        ),
    }
    key = found.conditions[0].key
    found = found.and_also(
        (row, name, key, 1, math.nan, 1, False) for row, of in names.items() for name in of
    )
    assert found.metrics == [
        *("accuracy", "first", "last", "accuracy-at-epsilon-4"),
        *("accuracy-at-10-mb", "accuracy-at-100-mb", "accuracy-at-1-s"),
    ]
