"""A card for each method: what it is, sends, promises and can be set to, as its class says; and
what the league measured of it.
"""

import dataclasses
import inspect
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.registry import MethodEntry
from fedtables.federation.method import Method
from fedtables.metrics.names import AT_COST, facts
from fedtables.reports.measures.exchange import SCORED
from fedtables.reports.tables.markup import code, escaped, markdown_table, render
from fedtables.reports.tables.ranking import complete
from fedtables.reports.tables.standings import (
    ACCURACY,
    Condition,
    Standing,
    Standings,
    fronts,
    ranking,
)
from fedtables.reports.tables.units import PERCENT, scale_of
from fedtables.results.names import printable
from fedtables.results.sourcecode import ROOT


def cards_page(entries: Iterable[MethodEntry], found: Standings | None) -> str:
    """The page of all methods, in the order of their names; `found` are the league's standings."""
    rows = rows_by_method()
    cards = [card(entry, rows.get(entry.name, {}), found) for entry in entries]
    return render("methods.md.jinja", meanings=SCORED.values(), cards=cards)


def rows_by_method() -> dict[str, dict[str, list[str]]]:
    """By method, the tables that have it, and the keys of its rows in each."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, table in registry.all_tables().items():
        for row in table.rows:
            found.setdefault(row.method, {}).setdefault(name, []).append(row.key)
    return found


def card(
    entry: MethodEntry, tables: Mapping[str, list[str]], found: Standings | None
) -> dict[str, Any]:
    """What stands on one card; `tables` are those that have the method, with its rows."""
    method = entry.load()
    place = Path(entry.path)
    source = place.relative_to(ROOT).as_posix() if place.is_relative_to(ROOT) else place.name
    settings = [
        code(f"{entry.name}.{f.name}={f.default}") for f in dataclasses.fields(method) if f.init
    ]
    declared = {
        "file": code(source),
        "leaves a client": ", ".join(sorted(method.sends)) or "nothing",
        "private form": _private(method),
        "labelled validation set": "needed at the server" if needs_validation(method) else "none",
        "settings": ", ".join(settings) or "none",
        "tables": ", ".join(tables) or "none; offered with `--methods +" + entry.name + "`",
    }
    if method.oracle:
        declared["upper bound, knows"] = ", ".join(sorted(method.oracle))
    for former, (name, reason) in registry.aliases().items():
        if name == entry.name:
            declared["former name"] = f"{code(former)}: {escaped(reason)}"
    return {
        "title": printable(method.title) or entry.name,
        "name": entry.name,
        "summary": summary(method),
        "declared": declared,
        "measured": [] if found is None else in_league(found, tables),
    }


def in_league(found: Standings, tables: Mapping[str, list[str]]) -> list[list[str]]:
    """What the league says of each row of a method that it measured."""
    names = {c.table for c in found.conditions}
    mine = {key for name, keys in tables.items() if name in names for key in keys}
    rows = (s for s in found.methods if s.row in mine and len(found.of(s.row, ACCURACY)))
    return [measured(found, standing) for standing in rows]


def summary(method: type[Method]) -> str:
    """The first paragraph of what the class says of itself, on one line."""
    return " ".join((inspect.getdoc(method) or "").split("\n\n")[0].split())


def _private(method: type[Method]) -> str:
    forms = method.protections().items()
    told = (f"{name} (sends {', '.join(sorted(kinds)) or 'nothing'})" for name, kinds in forms)
    return "; ".join(told) or "none"


def needs_validation(method: type[Method]) -> bool:
    """Whether a function of the class asks for the server's validation set by
    `evaluation.require_validation` or `evaluation.validate`.
    """
    functions = inspect.getmembers(method, inspect.isfunction)
    names = (set(function.__code__.co_names) for _, function in functions)
    return any("evaluation" in of and of & {"require_validation", "validate"} for of in names)


def measured(found: Standings, standing: Standing) -> list[str]:
    """The lines of what the league says of a row: how it ranks, what it needs and exchanges, and
    its numbers.
    """
    texts = [*ranks(found, standing.row), *on_fronts(found, standing.row)]
    lines = [
        " ".join([f"**In the league, as {escaped(standing.title)}.**", *(f"{t}." for t in texts)])
    ]
    if standing.properties:
        lines += ["", *needs(standing)]
    return [*lines, "", *numbers(found, standing)]


def ranks(found: Standings, row: str) -> list[str]:
    """Its mean rank, and the conditions in which its own rank is the best and the worst; nothing of
    a row that is not ranked.
    """
    mean = ranking(found)["mean_rank"]
    if row not in mean:
        return []
    frame = complete(found.frame(ACCURACY))
    own = frame.rank(ascending=False, method="min").loc[row].astype(int)
    texts = [f"Mean rank {mean[row]:.2f}, {list(mean).index(row) + 1} of {len(mean)}"]
    extremes = {"best": own.min(), "worst": own.max()}
    if extremes["best"] == extremes["worst"]:
        return [*texts, f"Rank {own.min()} of {len(frame)} in every condition"]
    for name, rank in extremes.items():
        at = [condition for condition in found.ranked if own.get(condition.key) == rank]
        texts.append(f"{name.capitalize()} rank {rank} of {len(frame)}, in {places(at)}")
    return texts


def places(conditions: Iterable[Condition]) -> str:
    """Conditions by table and column: MNIST `distribution=iid public=in|out`."""
    found: dict[str, dict[str, list[str]]] = {}
    for c in conditions:
        found.setdefault(title_of(c.table), {}).setdefault(c.column, []).append(c.public)
    return " and ".join(
        f"{escaped(title)} "
        + ", ".join(code(f"{column} public={'|'.join(of)}") for column, of in columns.items())
        for title, columns in found.items()
    )


def on_fronts(found: Standings, row: str) -> list[str]:
    """The costs on whose Pareto front against accuracy a row is; nothing if it is on none."""
    costs = [facts(cost).title.lower() for cost, rows in fronts(found).items() if row in rows]
    return [f"On the Pareto front of accuracy against {', '.join(costs)}"] if costs else []


def needs(standing: Standing) -> list[str]:
    """A table of a row's properties, each by the beginning of what it means."""
    rows = [
        (re.split("[:;.]", meaning)[0], "yes" if standing.properties[name] else "no")
        for name, meaning in SCORED.items()
        if name in standing.properties
    ]
    return markdown_table(("what it needs and exchanges", ""), rows)


def numbers(found: Standings, standing: Standing) -> list[str]:
    """A table of a row's numbers: a line for each metric that it has, but for accuracy at equal
    bytes and time, and a column for each table of the league.
    """
    keys: dict[str, list[str]] = {}
    accuracy = found.of(standing.row, ACCURACY)
    for condition in dict.fromkeys((*found.ranked, *found.conditions)):
        if condition.key in accuracy.index:
            keys.setdefault(condition.table, []).append(condition.key)
    rows = [["conditions", *(str(len(of)) for of in keys.values())]]
    for metric in found.metrics:
        at = AT_COST.fullmatch(metric)
        values = found.of(standing.row, metric)["value"]
        if len(values) and not (at and at["limit"]):
            ranges = [_range(metric, values[values.index.isin(of)]) for of in keys.values()]
            rows.append([scale_of(metric, PERCENT).title, *ranges])
    if cut_short := found.cut_short(standing.row, ACCURACY):
        short = [len(cut_short.intersection(of)) for of in keys.values()]
        rows.append(["conditions in which it was cut short", *map(str, short)])
    return markdown_table(("", *map(title_of, keys)), rows)


def title_of(table: str) -> str:
    """The title of a table of the league; its key if there is no spec of it."""
    known = registry.all_tables().get(table)
    return table if known is None else known.title


def _range(metric: str, values: pd.Series) -> str:
    """`80.1 to 97.7`, or the one number that there is; a dash for none."""
    ends = (_number(metric, value) for value in (values.min(), values.max()))
    return " to ".join(dict.fromkeys(ends)) if len(values) else "–"


def _number(metric: str, value: float) -> str:
    """One decimal of a share in percent, three significant digits of anything else."""
    if facts(metric).share:
        return f"{value:.1f}"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
