"""The page of all methods that were run on equal terms: sort, filter, and what it would pick."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from fedtables.metrics.names import (
    CLIENT_FLOPS,
    CLIENT_SECONDS,
    CORRUPTED,
    FLOOR,
    LOWER,
    MEGABYTES_DOWN,
    MEGABYTES_UP,
    MEMORY,
    ROUNDS,
    SERVER_FLOPS,
    WEAKEST,
    facts,
)
from fedtables.reports.drawing.figures import Texts
from fedtables.reports.drawing.palette import Look, looks
from fedtables.reports.drawing.plots_ranking import Plane, front_plot, parallel_plot, rank_plot
from fedtables.reports.measures.exchange import SCORED
from fedtables.reports.pages.page import data_uri
from fedtables.reports.tables.markup import render
from fedtables.reports.tables.ranking import critical_difference
from fedtables.reports.tables.standings import (
    ACCURACY,
    AT_EPSILON,
    BOTH_WAYS,
    EPSILON,
    Standings,
    at_epsilon,
    planes,
    ranking,
)
from fedtables.reports.tables.standings_files import as_json
from fedtables.reports.tables.units import PERCENT, scale_of

COSTS = {
    BOTH_WAYS: "MB sent, both ways",
    CLIENT_FLOPS: "work of clients (TFLOP)",
    EPSILON: "epsilon (differential privacy)",
}
"""Axes of the fronts."""
AXES = {
    ACCURACY: "accuracy",
    WEAKEST: "weakest clients",
    CORRUPTED: "corrupted images",
    MEGABYTES_UP: "MB up",
    MEGABYTES_DOWN: "MB down",
    CLIENT_FLOPS: "work of clients",
    SERVER_FLOPS: "work of server",
    MEMORY: "memory",
    CLIENT_SECONDS: "time of clients",
}
"""Of the parallel plot, before accuracy under differential privacy, as it names them."""
THREE_DIGITS = {"maximumSignificantDigits": 3}
"""How the page writes what is no share."""


def column_of(metric: str) -> dict[str, Any]:
    """How a metric is headed, written and sorted on the page: decimals of a share in percent, three
    significant digits of anything else (`format`, as `Number.toLocaleString` takes it).
    """
    known, scale = facts(metric), scale_of(metric, PERCENT)
    decimals = {"minimumFractionDigits": scale.digits, "maximumFractionDigits": scale.digits}
    return {
        "name": metric,
        "title": scale.title,
        "format": decimals if known.share else THREE_DIGITS,
        "better": known.better,
        "share": known.share,
    }


def nemenyi_quantiles(most: int) -> list[float]:
    """By number of methods, from 0, the quantile of Nemenyi's test at 5 %."""
    # Over k (k + 1) / 6 conditions a critical difference would be the quantile itself.
    return [0.0, 0.0] + [
        critical_difference(k, 1) / math.sqrt(k * (k + 1) / 6) for k in range(2, most + 1)
    ]


def render_leaderboard(by_profile: Mapping[str, Standings]) -> str:
    """The whole page; it needs no network, and of other files only its own downloads."""
    every = by_profile.values()
    metrics = list(dict.fromkeys(metric for found in every for metric in found.metrics))
    columns = [column_of(metric) for metric in metrics]
    ranked = {
        name
        for found in every
        for method in found.methods
        if method.ranked
        for name in found.of(method.row)["metric"]
    }
    profiles = {profile: _data(found) for profile, found in by_profile.items()}
    data = {"profiles": profiles, "columns": columns}
    return render(
        "leaderboard.html.jinja",
        # As JSON in a page: no text may end the element that holds it.
        data=Markup(json.dumps(data, allow_nan=False).replace("<", "\\u003c")),
        # The page opens with what is ranked.
        conditions=[c for found in every for c in (*found.ranked, *found.conditions)],
        columns=columns,
        ranked=ranked - {ROUNDS},
        at_epsilon=any(metric.startswith(AT_EPSILON) for metric in metrics),
        leakage=any(metric in FLOOR.values() for metric in metrics),
        meanings=SCORED,
        pictures=[
            (profile, title, data_uri(svg, "image/svg+xml"))
            for profile, found in by_profile.items()
            for title, svg in pictures(found)
        ],
    )


def _data(found: Standings) -> dict[str, Any]:
    """What the page's script needs of the standings."""
    told = as_json(found)
    methods = [{n: v for n, v in m.items() if n not in ("std", "n")} for m in told["methods"]]
    quantiles = nemenyi_quantiles(len(found.methods))
    return {"conditions": told["conditions"], "methods": methods, "quantiles": quantiles}


def pictures(found: Standings) -> list[tuple[str, bytes]]:
    """The page's pictures as SVG, those of which there is anything to draw, each with its title."""
    with TemporaryDirectory() as folder:
        paths = {title: Path(folder) / f"{number}.svg" for number, title in enumerate(DRAWN)}
        for title, path in paths.items():
            DRAWN[title](found, path.with_suffix(".png"), about(found))
        return [(title, path.read_bytes()) for title, path in paths.items() if path.exists()]


def about(found: Standings) -> str:
    """Of what the numbers in a picture are."""
    where = ", ".join(dict.fromkeys(f"{c.profile} {c.table}" for c in found.ranked))
    numbers = sorted({found.seeds[c.key] for c in found.ranked if c.key in found.seeds})
    each = f"seeds: {', '.join(map(str, numbers))}"
    return f"{where}: means over {len(found.ranked)} conditions ({each})"


def draw_ranks(found: Standings, path: Path, about: str) -> None:
    """Draw mean ranks into `path`; nothing of fewer than two methods that were run in every
    condition.
    """
    ranks = ranking(found)
    titles = _titles(found)
    by_title = {titles[row]: rank for row, rank in ranks["mean_rank"].items()}
    if len(by_title) > 1:
        apart = ranks["critical_difference"] or math.inf
        rank_plot(by_title, apart, path, Texts(note=f"{about}."))


def draw_fronts(found: Standings, path: Path, about: str) -> None:
    """Draw accuracy against each cost (`planes`) into `path`; nothing where no method has both."""
    drawn = []
    for cost, places in planes(found).items():
        ticks = sorted({spot.cost for spot in places}) if cost == EPSILON else ()
        drawn.append(Plane("", COSTS[cost], "Accuracy (%)", places, ticks))
    note = f"{about}; hollow: cut short in one of them or more."
    if any(plane.ticks for plane in drawn):
        note += " Accuracy at an epsilon: in those conditions in which all have it."
    if drawn:
        front_plot(drawn, _titles(found), _looks(found), path, Texts(note=note))


def draw_axes(found: Standings, path: Path, about: str) -> None:
    """Draw each method on every axis into `path`: `AXES`, and accuracy at the largest epsilon of
    those that most methods have; nothing where no axis has a value.
    """
    means = {name: found.means(metric) for metric, name in AXES.items() if metric in found.metrics}
    lower = {name: facts(metric).better == LOWER for metric, name in AXES.items()}
    private = at_epsilon(found)
    if private:
        epsilon = max(private, key=lambda epsilon: (len(private[epsilon]), float(epsilon)))
        means[f"at epsilon {epsilon}"] = private[epsilon]
    scaled = pd.DataFrame(
        {
            name: share_of_best(values, lower=lower.get(name, False))
            for name, values in means.items()
            if len(values)
        }
    )
    if scaled.empty:
        return
    titles, styles = _titles(found), _looks(found)
    rows = [m.row for m in found.methods if m.ranked and m.row in scaled.index]
    values = scaled.loc[rows].to_numpy(float).tolist()
    parallel_plot(
        dict(zip((titles[row] for row in rows), values, strict=True)),
        {titles[row]: styles[row] for row in rows},
        [str(name) for name in scaled],
        path,
        Texts(note=f"{about}; costs by their logarithm, the least as the best."),
    )


DRAWN: Mapping[str, Callable[[Standings, Path, str], None]] = {
    "Mean ranks of accuracy. Overlapping bars: the data do not separate these methods": draw_ranks,
    "Accuracy against cost. The line joins methods that no other beats in both": draw_fronts,
    "Each method on every axis, from the worst method to the best; the others in grey": draw_axes,
}
"""The page's pictures by title."""


def _titles(found: Standings) -> dict[str, str]:
    return {method.row: method.title for method in found.methods}


def _looks(found: Standings) -> dict[str, Look]:
    methods = {method.row: method.method for method in found.methods}
    return looks(methods, methods, {method.row for method in found.methods if method.bound})


def share_of_best(values: pd.Series, *, lower: bool) -> pd.Series:
    """Values as shares of the way from the worst of all to the best; costs by their logarithm,
    where what costs nothing is the best.
    """
    if lower:
        positive = values[values > 0]
        values = -np.log(values.clip(lower=float(positive.min()) / 2 if len(positive) else 1.0))
    span = values.max() - values.min()
    return (values - values.min()) / span if span > 0 else values * 0 + 1
