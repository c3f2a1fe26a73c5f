"""Standings as files that other tools read: one JSON, and two CSVs."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple
from typing import Any

import pandas as pd

from fedtables.reports.tables.standings import (
    EPSILON,
    Condition,
    Standing,
    Standings,
    fronts,
    planes,
    ranking,
)
from fedtables.results.store import quoted


def as_json(found: Standings) -> dict[str, Any]:
    """All of it, as the page and other tools read it.

    Of `fronts`, each by its cost's name, those against bytes and work are lists of rows; that
    against epsilon is one of places, `{"row": "fedavg", "epsilon": 4.0}`, the least epsilon first:
    a method has a place at each epsilon at which nothing beats it with as little or less.
    """
    on_epsilon = [spot for spot in planes(found).get(EPSILON, ()) if spot.on_front]
    places = [{"row": spot.row, EPSILON: spot.cost} for spot in on_epsilon]
    return {
        "conditions": [
            {
                "key": c.key,
                **asdict(c),
                "seeds": found.seeds.get(c.key, 0),
            }
            for c in found.conditions
        ],
        "methods": [
            {
                "row": m.row,
                "title": m.title,
                "upper_bound": m.bound,
                "contract": m.broken,
                "properties": m.properties,
                "sends": sorted(m.sends),
                **_numbers(found.of(m.row)),
            }
            for m in found.methods
        ],
        "ranking": ranking(found),
        "fronts": {**fronts(found), **({EPSILON: places} if places else {})},
    }


def _numbers(of_row: pd.DataFrame) -> dict[str, Any]:
    """A row's values, deviations where there are two seeds or more, and numbers of seeds, by metric
    and condition's key; and by metric keys of conditions in which it was cut short.
    """
    told: dict[str, Any] = {"values": {}, "std": {}, "n": {}, "cut_short": {}}
    for metric, numbers in of_row.set_index("key").groupby("metric", sort=False):
        told["values"][metric] = numbers["value"].to_dict()
        told["std"][metric] = numbers["std"].dropna().to_dict()
        told["n"][metric] = numbers["n"].to_dict()
        told["cut_short"][metric] = sorted(numbers.index[numbers["cut_short"]])
    for name in ("std", "cut_short"):
        told[name] = {metric: found for metric, found in told[name].items() if found}
    return told


def dumped(by_profile: Mapping[str, Standings]) -> str:
    """`as_json` of each profile as text; what is not a number has no place there."""
    told = {profile: as_json(found) for profile, found in by_profile.items()}
    return json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


METHOD = ("row", "title", "upper_bound", "contract")
NUMBERS = (*Condition.__dataclass_fields__, *METHOD, "metric", "value", "std", "n", "cut_short")
"""Columns of `as_csv`."""


def _method(method: Standing) -> tuple[Any, ...]:
    """What lines of a method begin with, under `METHOD`."""
    return method.row, method.title, method.bound, method.broken


def as_csv(by_profile: Mapping[str, Standings]) -> str:
    """A line for each profile, method, condition and metric: its mean over `n` seeds, their
    standard deviation, empty for one, and whether the metric was cut short in any of them.
    """
    lines = [
        (*astuple(c), *_method(m), metric, *numbers.loc[c.key])
        for found in by_profile.values()
        for m in found.methods
        for metric, of_metric in found.of(m.row).groupby("metric", sort=False)
        for numbers in (of_metric.set_index("key")[["value", "std", "n", "cut_short"]],)
        for c in found.conditions
        if c.key in numbers.index
    ]
    return _text(lines, NUMBERS)


def methods_csv(by_profile: Mapping[str, Standings]) -> str:
    """A line for each profile and method: its mean rank by accuracy, empty where it is not ranked,
    the kinds of payload that leave a client, and what its runs need or not.
    """
    ranks = {profile: ranking(found)["mean_rank"] for profile, found in by_profile.items()}
    methods = [(profile, m) for profile, found in by_profile.items() for m in found.methods]
    properties = list(dict.fromkeys(name for _, m in methods for name in m.properties))
    lines = [
        (
            profile,
            *_method(method),
            ranks[profile].get(method.row, math.nan),
            " ".join(sorted(method.sends)),
            *(method.properties.get(name) for name in properties),
        )
        for profile, method in methods
    ]
    return _text(lines, ("profile", *METHOD, "mean_rank", "sends", *properties))


def _text(lines: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> str:
    frame = pd.DataFrame(lines, columns=list(columns)).map(quoted)
    return str(frame.to_csv(index=False, lineterminator="\n"))
