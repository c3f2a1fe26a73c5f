"""A card for each method: what it is, sends, promises and can be set to, as its class says; and
what the league measured of it.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from benchmarks.tables import registry
from benchmarks.tables.registry import MethodEntry
from federation.method import Method
from metrics.names import CLIENT_FLOPS, MEGABYTES_DOWN, MEGABYTES_UP
from reports.tables.markup import code, escaped
from reports.tables.standings import ACCURACY, AT_EPSILON, Standings, ranking
from results.sourcecode import ROOT

HEAD = """# Methods

A card for each method and baseline, written by `python -m benchmarks cards` from its class and,
below the table, from what [the league](league.md) measured of it. What leaves a client is what the
method declares, and the ledger of every run is checked against it; a private form is a mechanism
under which its guarantee holds. In the league a method without public images stands in every
condition of its partition, with public images and without; ranks are over the conditions in which
networks are alike, ranges over all. Cut short: accuracy had not settled when the run ended."""


def cards_page(entries: Iterable[MethodEntry], found: Standings | None) -> str:
    """The page of all methods, in the order of their names; `found` are the league's standings."""
    rows = rows_by_method()
    parts = [HEAD]
    for entry in entries:
        parts += ["", *card(entry, rows.get(entry.name, {}), found)]
    return "\n".join(parts) + "\n"


def rows_by_method() -> dict[str, dict[str, list[str]]]:
    """By method, the tables that have it, and the keys of its rows in each."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, table in registry.all_tables().items():
        for row in table.rows if table is not None else ():
            found.setdefault(row.method, {}).setdefault(name, []).append(row.key)
    return found


def card(entry: MethodEntry, tables: Mapping[str, list[str]], found: Standings | None) -> list[str]:
    """The lines of one card; `tables` are those that have the method, with its rows."""
    method = entry.load()
    place = Path(entry.path)
    source = place.relative_to(ROOT).as_posix() if place.is_relative_to(ROOT) else place.name
    facts = {
        "file": code(source),
        "leaves a client": ", ".join(sorted(method.sends)) or "nothing",
        "private form": _private(method),
        "settings": _settings(entry.name, method),
        "tables": ", ".join(tables) or "none; offered with `--methods +" + entry.name + "`",
    }
    if method.oracle:
        facts["upper bound, knows"] = ", ".join(sorted(method.oracle))
    lines = [
        f"## {escaped(method.title or entry.name)}: {code(entry.name)}",
        "",
        escaped(summary(method)),
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {text} |" for name, text in facts.items()),
    ]
    if found is not None:
        in_league = {c.table for c in found.conditions}
        mine = {key for name, keys in tables.items() if name in in_league for key in keys}
        for standing in found.methods:
            if standing.row in mine and standing.values.get(ACCURACY):
                lines += ["", measured(found, standing.row)]
    return lines


def summary(method: type[Method]) -> str:
    """The first paragraph of what the class says of itself, on one line."""
    return " ".join((inspect.getdoc(method) or "").split("\n\n")[0].split())


def _private(method: type[Method]) -> str:
    forms = {
        mechanism: ", ".join(sorted(kinds)) or "nothing"
        for mechanism, kinds in method.protections().items()
    }
    return "; ".join(f"{name} (sends {kinds})" for name, kinds in forms.items()) or "none"


def _settings(name: str, method: type[Method]) -> str:
    texts = [code(f"{name}.{f.name}={f.default}") for f in dataclasses.fields(method)]
    return ", ".join(texts) or "none"


def measured(found: Standings, row: str) -> str:
    """What the league says of a row: its rank, its numbers over all conditions, and where it is the
    best and the worst.
    """
    standing = next(method for method in found.methods if method.row == row)
    accuracy = pd.Series(standing.values[ACCURACY])
    texts = [
        f"accuracy {accuracy.min():.1f} to {accuracy.max():.1f} % over {len(accuracy)} conditions"
    ]
    ranks = ranking(found)["mean_rank"]
    if row in ranks:
        place = list(ranks).index(row) + 1
        texts.insert(0, f"mean rank {ranks[row]:.2f}, {place} of {len(ranks)}")
    for metric, what in ((MEGABYTES_UP, "MB up"), (MEGABYTES_DOWN, "MB down")):
        if values := standing.values.get(metric):
            texts.append(f"{max(values.values()):.1f} {what} at most")
    if values := standing.values.get(CLIENT_FLOPS):
        texts.append(f"{max(values.values()):.3g} TFLOP at clients at most")
    private = {
        name.removeprefix(AT_EPSILON): max(values.values())
        for name, values in standing.values.items()
        if name.startswith(AT_EPSILON) and values
    }
    if private:
        numbers = ", ".join(f"{value:.1f} % at {epsilon}" for epsilon, value in private.items())
        texts.append(f"best of its conditions by epsilon: {numbers}")
    frame = found.frame(ACCURACY).dropna(axis="columns", how="all")
    if row in frame.index:
        for what, extreme in (("best in", frame.idxmax()), ("worst in", frame.idxmin())):
            if at := [str(key) for key, name in extreme.items() if name == row]:
                texts.append(f"{what} {', '.join(map(code, at))}")
    if standing.cut_short:
        texts.append(f"accuracy cut short in {len(standing.cut_short)} conditions")
    return f"In the league, as {escaped(standing.title)}: {'; '.join(texts)}."
