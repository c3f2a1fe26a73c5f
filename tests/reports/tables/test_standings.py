"""Methods over the conditions of a scorecard, by hand."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from reports.tables.standings import (
    Scored,
    add_private,
    as_csv,
    as_json,
    costs,
    dumped,
    fronts,
    ranking,
    reached,
    seconds_by_epoch,
    standings_of,
)
from results.arrays import pack
from results.record import Record

TITLES = {"bound": "Bound", "plain": "Plain", "public": "Public"}


def line(row, public, metric, value, **more):
    column = f"distribution=iid public={public}"
    return {
        **{"row": row, "column": column, "metric": metric, "value": str(value), "std": ""},
        **{"n": "2", "status": "ok", "profile": "smoke"},
        **more,
    }


def record(row="plain", public="none", **more):
    fields = {
        **{
            "seed": 0,
            "seeds": {},
            "profile": "smoke",
            "protocol": "paper",
            "cell": row,
            "code": "",
        },
        **more,
    }
    column = f"distribution=iid public={public}"
    return Record(table="league/toy", row=row, column=column, **fields)


def scored(lines, records=()):
    layout = SimpleNamespace(key="league/toy", rows=TITLES, oracles=frozenset({"bound"}))
    return Scored(layout, lines, records)


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
    assert [condition["seeds"] for condition in as_json(found)["conditions"]] == [2, 2]


def test_where_no_method_uses_public_images_there_is_one_condition():
    found = standings_of([scored(LINES[:2])])
    assert [condition.public for condition in found.conditions] == ["none"]


def test_bounds_and_methods_that_lack_a_condition_are_not_ranked():
    ranks = ranking(standings_of([scored([*LINES[:3], line("bound", "out", "accuracy", 60)])]))
    assert ranks["mean_rank"] == {"plain": 1.0}
    assert ranks["not_ranked"] == ["public"]


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


def test_what_leaves_a_client_and_what_was_cut_short_is_read_off_records():
    records = [
        record(bytes_by_kind={"up/labels": 3, "down/logits": 4}, settled={"accuracy": False})
    ]
    _, plain, _ = standings_of([scored(LINES, records)]).methods
    assert plain.sends == {"labels"}
    assert len(plain.cut_short) == 2


def test_accuracy_at_equal_cost_is_the_last_within_it():
    history, spent = np.array([0.1, 0.5, 0.7]), np.array([1.0, 2.0, 4.0])
    assert reached(history, spent, 2) == 0.5
    assert reached(history, spent, 100) == 0.7
    assert math.isnan(reached(history, spent, 0.5))


@pytest.mark.parametrize(
    ("sent", "expected"),
    [([8, 8], [6 + 1, 6 + 2]), ([4, 8], [4, 8]), ([0, 0], [4, 8])],
    ids=["one-shot: clients first", "in rounds", "nothing sent"],
)
def test_time_is_even_over_rounds_and_behind_the_clients_in_one_shot_methods(sent, expected):
    arrays = pack({"accuracy": np.zeros(2), "bytes": np.array(sent)})
    made = record(arrays=arrays, fit_seconds={"local": 6.0, "server": 2.0})
    assert seconds_by_epoch(made, 2).tolist() == expected


def test_accuracy_at_equal_bytes_is_the_mean_over_seeds_where_all_got_so_far():
    def run(seed, bytes_of):
        arrays = pack({"accuracy": np.array([0.2, 0.4]), "bytes": np.array(bytes_of)})
        return record(seed=seed, arrays=arrays)

    records = [run(0, [500_000, 2_000_000]), run(1, [1_000_000, 20_000_000])]
    _, plain, _ = standings_of([scored(LINES, records)]).methods
    at = {name: list(values.values()) for name, values in plain.values.items()}
    assert at["accuracy-at-1-mb"] == pytest.approx([20, 20])
    assert at["accuracy-at-10-mb"] == pytest.approx([30, 30])
    assert "accuracy-at-10-s" not in at


def test_the_files_have_every_number():
    found = standings_of([scored(LINES)])
    methods = {method["row"]: method for method in json.loads(dumped(found))["methods"]}
    assert methods["bound"]["upper_bound"]
    assert sorted(methods["public"]["values"]["accuracy"].values()) == [70, 90]
    assert as_csv(found).count("\n") == 1 + 6


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
    assert json.loads(dumped(found))["methods"]


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
    assert json.loads(dumped(found))["fronts"] == fronts(found)


def test_accuracy_under_privacy_stands_in_the_conditions_of_its_data_and_public_images():
    def private(row, public, epsilon, value, **more):
        made = line(row, public, "accuracy", value, data="toys", **more)
        return {**made, "column": f"{made['column']} epsilon={epsilon}"}

    public_league = scored([{**one, "data": "toys"} for one in LINES])
    found = standings_of([public_league])
    lines = [
        private("plain", "none", "1", 40, std="2"),
        private("plain", "none", "inf", 80),
        private("public", "in", "1", 50),
        private("public", "in", "4", 60),
        private("stranger", "in", "4", 60),
        {**private("public", "in", "10", 70), "data": "others"},
        private("public", "in", "10", "", status="failed"),
    ]
    add_private(found, [public_league], [scored(lines)])
    at_one, at_four = (found.frame(f"accuracy-at-epsilon-{n}") for n in (1, 4))
    assert at_one.loc["plain"].tolist() == [40, 40]
    assert at_one.loc["public"].fillna(0).tolist() == [50, 0]
    assert at_four.loc["public"].fillna(0).tolist() == [60, 0]
    names = [name for name in found.metrics if "epsilon" in name]
    assert names == ["accuracy-at-epsilon-1", "accuracy-at-epsilon-4"]
