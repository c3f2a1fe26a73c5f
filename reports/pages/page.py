"""One HTML page of all tables in a folder of results: `fedtables reports build`.

It reads what `reproduce` wrote and nothing else, and needs no network: style, script and pictures
lie in the page. Only the files that it offers for download lie beside it.
"""

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import pandas as pd
from markdown_it import MarkdownIt
from markupsafe import Markup

from fedtables.reports.pages.measured import (
    KINDS,
    TO_CLOSE,
    coverage,
    printed_numbers,
    standing,
    to_close,
    verdict_kind,
)
from fedtables.reports.pages.result_files import Result
from fedtables.reports.pages.sheet import commit_of
from fedtables.reports.tables.budget import HEADINGS, budget_rows, range_text
from fedtables.reports.tables.markup import render
from fedtables.reports.tables.notes import legend, unequal_notes
from fedtables.reports.tables.table import (
    Block,
    Layout,
    Panel,
    block_title,
    blocks,
    marked_title,
    measured_text,
    printed_rows,
    printed_text,
)
from fedtables.results import published
from fedtables.results.files import ResultsError
from fedtables.results.record import OK, Record
from fedtables.results.store import Line

COPIED = ("csv", "md", "claims.csv", "svg", "png", "pdf", "run.toml")
"""Files of a table that lie beside the page too."""
COSTS = {
    "MB up": ("bytes_up", 1e6, 3),
    "MB down": ("bytes_down", 1e6, 3),
    "ε spent": ("epsilon", 1, 2),
}
"""What rows cost, by heading: a column of the CSV, its unit and digits; shown where any row has
some."""
STEPS = (0.02, 0.1, 0.3)
"""Differences from print, as shares of a metric's range, at which the colour of a cell grows
stronger."""


EMPTY = {"text": "", "published": "", "difference": "", "step": 0, "best": False, "failed": ""}
"""A cell of which nothing is known."""


def cell_of(block: Block, line: Line | None, best: bool) -> dict[str, Any]:
    """How a line is shown, in the block's unit: measured, with its spread, or `failed` and why;
    published; the difference, and by how many `STEPS` it colours the cell, negative where ours is
    worse.
    """
    if line is None:
        return {**EMPTY, "text": "–"}
    scale = block.scale
    printed = printed_text(line, scale)
    if line["status"] != OK:
        return {**EMPTY, "text": "failed", "published": printed, "failed": line["status"]}
    difference, step = line["difference"] or "", 0
    if isinstance(line["difference"], float):
        number, printed_value = line["difference"], abs(line["published"]) or 1.0
        # What is counted has no tolerance; it is coloured by its share of the printed number.
        distance = abs(number) / (scale.allowance(1.0, printed_value) or printed_value)
        # A number without better or worse is not coloured.
        sign = scale.sign if number >= 0 else -scale.sign
        step = sign * sum(distance > limit for limit in STEPS)
        difference = f"{number:+.{scale.digits}f}"
    shown = {"text": measured_text(line, scale), "published": printed, "difference": difference}
    return {**EMPTY, **shown, "step": step, "best": best}


def spread_of(values: Sequence[float | None], unit: float, digits: int) -> str:
    """Numbers of a row's columns as one text, a range where they differ."""
    numbers = [value for value in values if value is not None]
    return range_text(numbers, unit, digits) if numbers else "–"


def panel_rows(layout: Layout, block: Block, panel: Panel) -> list[dict[str, Any]]:
    """The rows that a panel has anything of, each with its cells, the bytes it sent and the epsilon
    it spent.
    """
    rows = []
    for row, cells in printed_rows(layout, block, panel):
        if not any(line for line, _ in cells):
            continue
        measured = [line for line, _ in cells if line is not None and line["status"] == OK]
        rows.append(
            {
                "title": marked_title(layout, row),
                "own": row == layout.own and block.scale.sign != 0,
                "cells": [cell_of(block, line, best) for line, best in cells],
                "costs": {
                    head: spread_of([line[name] for line in measured], unit, digits)
                    for head, (name, unit, digits) in COSTS.items()
                },
            }
        )
    return rows


def tables_of(result: Result) -> list[dict[str, Any]]:
    """What is drawn of a table: one entry per metric and panel, with those costs that any of its
    rows has.
    """
    layout, tables = result.sheet.layout, []
    for block in blocks(layout, result.sheet.shown(result.lines)):
        for panel in block.panels:
            rows = panel_rows(layout, block, panel)
            # Bytes of both ways stand together.
            there = {h[:2] for h in COSTS if any(row["costs"][h].strip("0.–") for row in rows)}
            costs = [head for head in COSTS if head[:2] in there]
            tables.append(
                {
                    "title": "; ".join(filter(None, (block_title(block), panel.title))),
                    "columns": list(panel.columns.values()),
                    "rows": rows,
                    "costs": costs,
                }
            )
    return tables


def provenance(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Where a table's numbers come from: commits, dates, machines, packages, data."""
    machines = [record.machine for record in records if record.status == OK]
    packages = [{"python": m.get("python"), **m.get("packages", {})} for m in machines]
    days = sorted({record.finished[:10] for record in records if record.finished})
    seconds = sum(record.seconds for record in records)
    told = {
        "commit": map(commit_of, machines),
        "computed": [" to ".join(dict.fromkeys((days[0], days[-1])))] if days else [],
        "machine": (
            f"{m.get('hardware')}, {m.get('device')}, {m.get('threads')} threads per worker"
            for m in machines
        ),
        "packages": (", ".join(f"{n} {version}" for n, version in of.items()) for of in packages),
        "data": (
            f"{d['used']} ({d['origin']}), SHA-256 {d['digest'][:16]}…"
            for r in records
            for d in (r.data, r.public, r.private, *r.others)
            if d.get("digest")
        ),
        "time": [f"{seconds:,.0f} s in {len(records)} cells"] if records else [],
    }
    return [(name, text) for name, texts in told.items() for text in dict.fromkeys(texts)]


def data_uri(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def picture_of(result: Result) -> str:
    """The plot as a data URI; empty without a plot."""
    for suffix, kind in (("png", "image/png"), ("svg", "image/svg+xml")):
        if result.file(suffix).exists():
            return data_uri(result.file(suffix).read_bytes(), kind)
    return ""


def section_of(result: Result) -> dict[str, Any]:
    """Everything that the page shows of a table."""
    sheet, layout, lines = result.sheet, result.sheet.layout, result.lines
    unknown = set(lines["row"]) - set(layout.rows)
    if unknown or set(lines["profile"]) != {result.profile}:
        rows = f"rows {', '.join(sorted(unknown))} that its layout.json lacks"
        what = rows if unknown else f"another profile than {result.profile}"
        raise ResultsError(
            f"{result.file('csv')} has {what}; regenerate the table with `fedtables reproduce`"
        )
    shown = sheet.shown(lines)
    stem = f"{result.paper}-{result.name}-{result.profile}"
    place = quote(f"{result.profile}/{result.paper}/{result.name}")
    there = [suffix for suffix in COPIED if result.file(suffix).exists()]
    card = MarkdownIt("commonmark", {"html": False}).enable("table").render("\n".join(sheet.card))
    command = [("command", sheet.command)] if sheet.command else []
    return {
        "result": result,
        "sheet": sheet,
        "layout": layout,
        "origins": _named(lines, "origin"),
        "public": _named(lines, "public_origin"),
        "private": _named(lines, "private_origin"),
        "protocols": _named(lines, "protocol"),
        "seeds": layout.seeds,
        "tables": tables_of(result),
        "budget": budget_rows(layout, result.records),
        "unequal": unequal_notes(layout),
        "notes": legend(layout, shown),
        "claims": [{**claim, "kind": verdict_kind(claim["verdict"])} for claim in result.claims],
        "kinds": Counter(verdict_kind(claim["verdict"]) for claim in result.claims),
        "card": Markup(card),
        "provenance": [*command, *provenance(result.records)],
        "picture": picture_of(result),
        "downloads": [(s, f"{stem}.{s}", f"{place}.{s}") for s in (*there, "tex")],
        "failed": int((lines["status"] != OK).sum()),
        "measured": int((shown["status"] == OK).sum()),
        "compared": int(shown["difference"].notna().sum()),
        "printed": printed_numbers(layout.key),
    }


def _named(lines: pd.DataFrame, name: str) -> list[str]:
    """What a column of the CSV names, each once; nothing where the CSV is older than the column."""
    return [text for text in lines[name].unique() if text] if name in lines else []


def missing_tables(results: Sequence[Result]) -> Mapping[str, list[str]]:
    """Published tables by paper that the results hold in no profile."""
    there = {(result.paper, result.name.split(".")[0]) for result in results}
    every = {paper: published.tables(paper) for paper in published.papers()}
    missing = {p: [table for table in every[p] if (p, table) not in there] for p in every}
    return {paper: tables for paper, tables in missing.items() if tables}


def render_page(results: Sequence[Result], *, leaderboard: bool = False) -> str:
    """The whole page; it links to that of the leaderboard where there is one beside it."""
    sections = []
    for result in results:
        try:
            sections.append(section_of(result))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            # What no reader of a part has noticed.
            raise ResultsError(
                f"the files {result.base}.* are damaged ({error}); regenerate the table"
            ) from error
    return render(
        "page.html.jinja",
        sections=sections,
        standing=standing(results),
        claim_kinds=KINDS,
        to_close=to_close,
        to_close_title=TO_CLOSE,
        coverage=coverage(sections),
        missing=missing_tables(results),
        leaderboard=leaderboard,
        steps=[f"{100 * s:g} %" for s in STEPS],
        budget_headings=HEADINGS,
    )
