"""The page of all methods that were run on equal terms: sort, filter, and what it would pick."""

from __future__ import annotations

import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from metrics.names import (
    CLIENT_FLOPS,
    CORRUPTED,
    LOWER,
    MEGABYTES_DOWN,
    MEGABYTES_UP,
    ROUNDS,
    SERVER_FLOPS,
    WEAKEST,
    facts,
)
from reports.drawing.figures import Texts
from reports.drawing.palette import looks
from reports.drawing.plots_ranking import Plane, Point, front_plot, parallel_plot, rank_plot
from reports.pages.page import data_uri
from reports.tables.html import TEMPLATES, render
from reports.tables.ranking import critical_difference
from reports.tables.standings import (
    ACCURACY,
    AT_EPSILON,
    MEGABYTES,
    SECONDS,
    Standings,
    as_json,
    costs,
    ranking,
)
from reports.tables.table import Layout
from reports.tables.units import PERCENT, scale_of

PROPERTIES = (
    ("distillation", "public images"),
    ("networks-differ", "networks may differ"),
    ("privacy", "outputs alone leave"),
    ("asynchronous", "asynchronous"),
)
"""Columns of properties, with their headings."""
DEMANDS = (
    ("distillation", "no", "no public images"),
    ("networks-differ", "yes", "networks may differ"),
    ("privacy", "yes", "nothing but outputs leaves a client"),
    ("asynchronous", "yes", "asynchronous"),
)
"""What a user may demand: a property, the value it must have, and how it is called."""
EQUAL = {
    **{f"{ACCURACY}-at-{limit}-mb": f"Accuracy at {limit} MB (%)" for limit in MEGABYTES},
    **{f"{ACCURACY}-at-{limit}-s": f"Accuracy at {limit} s (%)" for limit in SECONDS},
}
"""Metrics that are read off histories, by title."""
CONDITIONS = (
    ("profile", "profile", True),
    ("table", "data", True),
    ("column", "partition", True),
    ("networks", "networks", False),
    ("public", "public images", True),
)
"""What a condition is chosen by, how it is called, and whether methods are ranked over all of its
values together: not over networks, since few methods can have mixed ones.
"""
COSTS = {"megabytes": "MB sent, both ways", CLIENT_FLOPS: "work of clients (TFLOP)"}
"""Axes of the fronts."""
AXES = (
    ACCURACY,
    WEAKEST,
    CORRUPTED,
    MEGABYTES_UP,
    MEGABYTES_DOWN,
    CLIENT_FLOPS,
    SERVER_FLOPS,
)
"""Of the parallel plot."""


def column_of(metric: str) -> dict[str, Any]:
    """How a metric is headed, rounded and sorted on the page: decimals of a share in percent, three
    significant digits of anything else.
    """
    if metric in EQUAL or metric.startswith(AT_EPSILON):
        title = EQUAL.get(metric) or f"Accuracy at epsilon {metric.removeprefix(AT_EPSILON)} (%)"
        return {"name": metric, "title": title, "digits": 2, "better": "higher", "share": True}
    scale = scale_of(metric, PERCENT)
    return {
        "name": metric,
        "title": scale.title,
        "digits": 2 if facts(metric).share else 0,  # none: three significant ones
        "better": facts(metric).better,
        "share": facts(metric).share,
    }


def nemenyi_quantiles(most: int) -> list[float]:
    """By number of methods, from 0, the quantile of Nemenyi's test at 5 %."""
    # Over k (k + 1) / 6 conditions a critical difference would be the quantile itself.
    return [0.0, 0.0] + [
        critical_difference(k, 1) / math.sqrt(k * (k + 1) / 6) for k in range(2, most + 1)
    ]


def render_leaderboard(found: Standings) -> str:
    """The whole page; it needs no network, and of other files only its own downloads."""
    columns = [column_of(metric) for metric in found.metrics]
    ranked = {name for m in found.methods if not m.bound for name in m.values}
    order = (*found.ranked, *found.conditions)  # the page opens with what is ranked
    data = {
        **as_json(found),
        "columns": columns,
        "quantiles": nemenyi_quantiles(len(found.methods)),
    }
    style, script = (
        Markup((TEMPLATES / name).read_text(encoding="utf-8"))
        for name in ("page.css", "leaderboard.js")
    )
    return render(
        "leaderboard.html.jinja",
        style=style,
        script=script,
        # As JSON in a page: no text may end the element that holds it.
        data=Markup(json.dumps(data, allow_nan=False).replace("<", "\\u003c")),
        selects=[
            (name, title, together, list(dict.fromkeys(getattr(c, name) for c in order)))
            for name, title, together in CONDITIONS
        ],
        columns=columns,
        ranked_by=[
            column
            for column in columns
            if column["better"] and column["name"] in ranked and column["name"] != ROUNDS
        ],
        at_epsilon=any(metric.startswith(AT_EPSILON) for metric in found.metrics),
        properties=PROPERTIES,
        demands=DEMANDS,
        pictures=[(title, data_uri(svg, "image/svg+xml")) for title, svg in pictures(found)],
    )


def pictures(found: Standings) -> list[tuple[str, bytes]]:
    """The page's pictures as SVG, each with its title."""
    drawn = []
    with TemporaryDirectory() as folder:
        for title, path in draw(found, Path(folder)).items():
            drawn.append((title, path.with_suffix(".svg").read_bytes()))
    return drawn


def draw(found: Standings, folder: Path) -> dict[str, Path]:
    """Draw `ranks.png`, `fronts.png` and `axes.png`, also as SVG and PDF, into a folder; returns
    each with its title. Ranks need two methods that were run in every condition.
    """
    ranks, drawn = ranking(found), {}
    titles = {m.row: m.title for m in found.methods}
    shown = [m for m in found.methods if not m.bound]
    styles = looks(
        Layout(
            key="",
            title="",
            caption="",
            rows={m.row: m.title for m in shown},
            oracles=frozenset(),
            own="",
            x_axis="",
            columns=(),
            labels=(),
        )
    )
    where = ", ".join(dict.fromkeys(f"{c.profile} {c.table}" for c in found.ranked))
    numbers = sorted({found.seeds[c.key] for c in found.ranked if c.key in found.seeds})
    each = f"seeds: {', '.join(map(str, numbers))}"
    means_of = f"means over {len(found.ranked)} conditions ({each})"
    about = Texts(note=f"{where}: {means_of}; hollow: cut short in one of them or more.")
    if len(ranks["mean_rank"]) > 1:
        by_title = {titles[row]: rank for row, rank in ranks["mean_rank"].items()}
        path = folder / "ranks.png"
        rank_plot(by_title, ranks["critical_difference"] or math.inf, path, about)
        drawn["Mean ranks of accuracy; a bar joins methods that are not told apart"] = path
    means = {metric: found.means(metric) for metric in found.metrics}
    short = {m.row for m in shown if m.cut_short}
    planes = [
        Plane(
            "",
            COSTS[cost],
            "Accuracy (%)",
            tuple(
                Point(m.title, styles[m.row], values[m.row], means[ACCURACY][m.row], m.row in short)
                for m in shown
                if m.row in values and m.row in means[ACCURACY]
            ),
        )
        for cost, values in costs(found).items()
    ]
    if planes:
        front_plot(planes, folder / "fronts.png", about)
        title = "Accuracy against what it costs; the line joins methods that nothing beats"
        drawn[title] = folder / "fronts.png"
    scaled = {
        name: share_of_best(means[name], lower=facts(name).better == LOWER)
        for name in AXES
        if name in means and len(means[name])
    }
    if scaled:
        parallel_plot(
            {m.title: [float(scaled[name].get(m.row, math.nan)) for name in scaled] for m in shown},
            {m.title: styles[m.row] for m in shown},
            [facts(name).title.replace(" ", "\n", 1) for name in scaled],
            folder / "axes.png",
            about,
        )
        drawn["Each method on every axis, from the worst of all to the best"] = folder / "axes.png"
    return drawn


def share_of_best(values: pd.Series, *, lower: bool) -> pd.Series:
    """Values as shares of the way from the worst of all to the best; costs by their logarithm,
    where what costs nothing is the best.
    """
    if lower:
        positive = values[values > 0]
        values = -np.log(values.clip(lower=float(positive.min()) / 2 if len(positive) else 1.0))
    span = values.max() - values.min()
    return (values - values.min()) / span if span > 0 else values * 0 + 1
