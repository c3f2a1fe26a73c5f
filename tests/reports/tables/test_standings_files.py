"""Files of a leaderboard: what every line and entry has."""

import io
import json
import math

import pandas as pd

from fedtables.reports.tables.standings import fronts, standings_of
from fedtables.reports.tables.standings_files import NUMBERS, as_csv, as_json, dumped, methods_csv
from tests.reports.tables.test_standings import LINES, line, scored


def read(text):
    return pd.read_csv(io.StringIO(text))


def test_the_json_has_every_number():
    found = standings_of([scored(LINES)])
    told = json.loads(dumped({"smoke": found}))["smoke"]
    methods = {method["row"]: method for method in told["methods"]}
    assert methods["bound"]["upper_bound"]
    assert sorted(methods["public"]["values"]["accuracy"].values()) == [70, 90]
    assert set(methods["public"]["n"]["accuracy"].values()) == {2}
    assert methods["public"]["cut_short"] == {}
    assert [condition["seeds"] for condition in told["conditions"]] == [2, 2]


def test_the_fronts_of_the_json_are_those_of_the_planes_and_against_epsilon_have_their_places():
    found = standings_of([scored(LINES)])
    found = found.and_also(
        (row, f"accuracy-at-epsilon-{epsilon}", condition.key, value, math.nan, 1, False)
        for condition in found.conditions
        for row, epsilon, value in (
            *(("plain", 1, 15), ("plain", 4, 25)),
            *(("public", 1, 16), ("public", 4, 26)),
        )
    )
    assert fronts(found) == {"epsilon": ["public"]}
    assert as_json(found)["fronts"] == {
        "epsilon": [{"row": "public", "epsilon": 1}, {"row": "public", "epsilon": 4}]
    }


def test_a_line_of_numbers_says_of_how_many_runs_and_whether_its_metric_was_cut_short():
    lines = [
        line("plain", "none", "accuracy", 80, settled="no", std=1.5, n=3),
        line("plain", "none", "megabytes-up", 2),
        *LINES[2:],
    ]
    table = read(as_csv({"smoke": standings_of([scored(lines)])}))
    assert tuple(table.columns) == NUMBERS
    plain = table[(table["row"] == "plain") & (table["public"] == "in")].set_index("metric")
    assert plain.loc["accuracy", ["value", "std", "n", "cut_short"]].tolist() == [80, 1.5, 3, True]
    assert plain.loc["megabytes-up", ["value", "n", "cut_short"]].tolist() == [2, 2, False]
    assert plain["title"].eq("Plain").all()
    assert not plain["upper_bound"].any()
    assert math.isnan(plain.loc["megabytes-up", "std"])


def test_a_line_of_methods_says_what_it_sends_needs_and_is_worth():
    held = line("public", "in", "property", "yes")
    held["column"] += " property=distillation"
    found = standings_of([scored([*LINES, held])])
    found.methods[2].sends = {"votes", "labels"}
    table = read(methods_csv({"smoke": found})).set_index("row")
    told = table.drop(columns="contract").loc["public"].tolist()
    assert told == ["smoke", "Public", False, 1.5, "labels votes", True]
    assert table.loc["bound", "upper_bound"]
    assert math.isnan(table.loc["bound", "mean_rank"])
    assert pd.isna(table.loc["plain", "distillation"])


def test_no_spreadsheet_runs_a_title():
    made = scored(LINES)
    made.layout.rows = {**made.layout.rows, "plain": "=1+1"}
    found = standings_of([made])
    assert "'=1+1" in as_csv({"smoke": found})
    assert "'=1+1" in methods_csv({"smoke": found})


def test_a_table_of_nothing_has_its_headings():
    found = standings_of([])
    assert as_csv({"smoke": found}) == ",".join(NUMBERS) + "\n"
    assert (
        methods_csv({"smoke": found}) == "profile,row,title,upper_bound,contract,mean_rank,sends\n"
    )


def test_the_files_say_of_what_profile_a_line_is_and_who_breaks_the_contract():
    broken = [{**one, "contract": "reads test labels"} for one in LINES[1:2]]
    cpu = [{**one, "profile": "cpu"} for one in LINES]
    both = {"cpu": standings_of([scored(cpu)]), "smoke": standings_of([scored(broken)])}
    told = json.loads(dumped(both))
    assert [m["contract"] for m in told["smoke"]["methods"]] == ["", "reads test labels", ""]
    assert set(told["cpu"]["ranking"]["mean_rank"]) == {"plain", "public"}
    assert told["smoke"]["ranking"]["mean_rank"] == {}
    methods = read(methods_csv(both)).set_index(["profile", "row"])
    assert methods.loc[("smoke", "plain"), "contract"] == "reads test labels"
    assert math.isnan(methods.loc[("smoke", "plain"), "mean_rank"])
    assert methods.loc[("cpu", "plain"), "mean_rank"] == 1.5
    numbers = read(as_csv(both)).set_index("profile")
    assert numbers.loc[["smoke"], "contract"].eq("reads test labels").all()
    assert numbers.loc[["cpu"], "contract"].isna().all()
