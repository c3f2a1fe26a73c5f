"""Standings as files that other tools read: one JSON, and two CSVs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from reports.tables.standings import EPSILON, Standings, fronts, planes, ranking
from results.spreadsheet import quoted

CONDITION = ("profile", "table", "column", "networks", "public")
"""What tells conditions apart."""


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
                **{name: getattr(c, name) for name in CONDITION},
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
                "values": m.values,
                "std": m.stds,
                "n": m.counts,
                "cut_short": {metric: sorted(keys) for metric, keys in m.unsettled.items()},
            }
            for m in found.methods
        ],
        "ranking": ranking(found),
        "fronts": {**fronts(found), **({EPSILON: places} if places else {})},
    }


def dumped(by_profile: Mapping[str, Standings]) -> str:
    """`as_json` of each profile as text; what is not a number has no place there."""
    told = {profile: as_json(found) for profile, found in by_profile.items()}
    return json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


NUMBERS = (
    *CONDITION,
    *("row", "title", "upper_bound", "contract", "metric", "value", "std", "n", "cut_short"),
)
"""Columns of `as_csv`."""


def as_csv(by_profile: Mapping[str, Standings]) -> str:
    """A line for each profile, method, condition and metric: its mean over `n` seeds, their
    standard deviation, empty for one, and whether the metric was cut short in any of them.
    """
    lines = [
        {
            **{name: getattr(condition, name) for name in CONDITION},
            "row": method.row,
            "title": method.title,
            "upper_bound": method.bound,
            "contract": method.broken,
            "metric": metric,
            "value": values[condition.key],
            "std": method.stds.get(metric, {}).get(condition.key, math.nan),
            "n": method.counts[metric][condition.key],
            "cut_short": condition.key in method.unsettled.get(metric, ()),
        }
        for found in by_profile.values()
        for method in found.methods
        for metric, values in method.values.items()
        for condition in found.conditions
        if condition.key in values
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
        {
            "profile": profile,
            "row": method.row,
            "title": method.title,
            "upper_bound": method.bound,
            "contract": method.broken,
            "mean_rank": ranks[profile].get(method.row, math.nan),
            "sends": " ".join(sorted(method.sends)),
            **{name: method.properties.get(name) for name in properties},
        }
        for profile, method in methods
    ]
    return _text(
        lines,
        ("profile", "row", "title", "upper_bound", "contract", "mean_rank", "sends", *properties),
    )


def _text(lines: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    frame = pd.DataFrame(lines, columns=list(columns)).map(quoted)
    return str(frame.to_csv(index=False, lineterminator="\n"))
