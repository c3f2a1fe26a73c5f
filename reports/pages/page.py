"""One HTML page of all tables in a folder of results: `python -m reports build`.

It reads what `reproduce` wrote and nothing else, and needs no network: style, script and pictures
lie in the page. Only the files that it offers for download lie beside it.
"""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pandas as pd
from markdown_it import MarkdownIt
from markupsafe import Markup
from PIL import Image

from reports.pages.claim_counts import KINDS, standing, verdict_kind
from reports.pages.measured import coverage, printed_numbers
from reports.pages.result_files import Result
from reports.pages.sheet import changed
from reports.tables.budget import HEADINGS, budget_rows, range_text
from reports.tables.html import TEMPLATES, render
from reports.tables.notes import legend, unequal_notes
from reports.tables.table import (
    Block,
    Layout,
    Panel,
    block_title,
    blocks,
    is_number,
    marked_title,
    measured_text,
    printed_rows,
)
from results import published
from results.files import ResultsError
from results.record import OK, Record
from results.store import Line

COPIED = ("csv", "md", "claims.csv", "svg", "png", "pdf")
"""Files of a table that lie beside the page too."""
COLOURS = 128
"""Of a chart in the page: its own few, and what smooths their edges."""
STEPS = (0.02, 0.1, 0.3)
"""Differences from print, as shares of a metric's range, at which the colour of a cell grows
stronger."""


@dataclass(frozen=True)
class ShownCell:
    """One cell as it is shown."""

    text: str
    """Measured, with its spread; or `failed`, or a dash."""
    published: str
    difference: str
    step: int
    """How far from print: 0 near or not comparable, up to 3; negative where ours is worse."""
    best: bool
    failed: str
    """Why it failed."""
    value: str
    """What it is sorted by; empty for none."""


def cell_of(block: Block, line: Line | None, best: bool) -> ShownCell:
    """How a line is shown, in the block's unit."""
    if line is None:
        return ShownCell("–", "", "", 0, False, "", "")
    scale = block.scale
    printed = scale.text(line["published"]) + (
        f" ± {scale.text(line['published_std'])}" if line["published_std"] else ""
    )
    if line["status"] != OK:
        return ShownCell("failed", printed, "", 0, False, line["status"], "")
    difference, step = line["difference"], 0
    if difference and is_number(difference):
        printed_value = abs(float(line["published"])) or 1.0
        # What is counted has no tolerance; it is coloured by its share of the printed number.
        distance = abs(float(difference)) / (scale.allowance(1.0, printed_value) or printed_value)
        # A number without better or worse is not coloured.
        step = (
            scale.sign
            * (1 if float(difference) >= 0 else -1)
            * sum(distance > limit for limit in STEPS)
        )
        difference = f"{float(difference):+.{scale.digits}f}"
    value = line["value"] if is_number(line["value"]) else ""
    return ShownCell(measured_text(line, scale), printed, difference, step, best, "", value)


def spread_of(texts: Sequence[str], unit: float, digits: int) -> tuple[str, str]:
    """Numbers of a row's columns as one text, a range where they differ, and what it is sorted
    by.
    """
    numbers = [float(text) for text in texts if text]
    if not numbers:
        return "–", ""
    return range_text(numbers, unit, digits), str(max(numbers) / unit)


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
                "up": spread_of([line["bytes_up"] for line in measured], 1e6, 3),
                "down": spread_of([line["bytes_down"] for line in measured], 1e6, 3),
                "epsilon": spread_of([line["epsilon"] for line in measured], 1, 2),
            }
        )
    return rows


def tables_of(result: Result) -> list[dict[str, Any]]:
    """What is drawn of a table: one entry per metric and panel."""
    layout, tables = result.sheet.layout, []
    shown = blocks(layout, result.sheet.shown(result.lines))
    for block in shown:
        for panel in block.panels:
            rows = panel_rows(layout, block, panel)
            title = "; ".join(filter(None, (block_title(block), panel.title)))
            private, sends = (
                any(row["epsilon"][1] for row in rows),
                any(float(row["up"][1] or 0) for row in rows),
            )
            heads = list(panel.columns.values())
            tables.append(
                {"title": title, "columns": heads, "rows": rows, "private": private, "sends": sends}
            )
    return tables


def provenance(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Where a table's numbers come from: commits, dates, machines, packages, data."""
    machines = [record.machine for record in records if record.status == OK]
    days = sorted({record.finished[:10] for record in records if record.finished})
    entries = {
        "commit": [
            m.get("commit", "")[:12] + (" with changes" if changed(m) else "") for m in machines
        ],
        "computed": [" to ".join(dict.fromkeys((days[0], days[-1])))] if days else [],
        "machine": [
            f"{m.get('hardware')}, {m.get('device')}, {m.get('threads')} threads per worker"
            for m in machines
        ],
        "packages": [
            ", ".join(
                [
                    f"python {m.get('python')}",
                    *(f"{name} {v}" for name, v in m.get("packages", {}).items()),
                ]
            )
            for m in machines
        ],
        "data": [
            f"{d['used']} ({d['origin']}), SHA-256 {d['digest'][:16]}…"
            for r in records
            for d in (r.data, r.public, r.private, *r.others)
            if d.get("digest")
        ],
        "time": (
            [f"{sum(record.seconds for record in records):,.0f} s in {len(records)} cells"]
            if records
            else []
        ),
    }
    return [
        (name, text)
        for name, texts in entries.items()
        for text in dict.fromkeys(filter(None, texts))
    ]


def data_uri(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def picture_of(result: Result) -> str:
    """The plot as a data URI; empty without a plot."""
    if result.file("png").exists():
        return data_uri(*as_webp(result.file("png").read_bytes()))
    if result.file("svg").exists():
        return data_uri(result.file("svg").read_bytes(), "image/svg+xml")
    return ""


def as_webp(png: bytes) -> tuple[bytes, str]:
    """A picture for the page, and its media type: as WebP, where that is smaller. A chart loses
    nothing but some of its colours; what is smaller as photographs are, such as images, is
    compressed as these. One that is no picture stays as it is.
    """
    try:
        image = Image.open(io.BytesIO(png)).convert("RGB")
    except (OSError, ValueError, SyntaxError):
        return png, "image/png"
    few = image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    shown = [(png, "image/png")]
    for drawn, lossless, quality in ((few.convert("RGB"), True, 25), (image, False, 80)):
        buffer = io.BytesIO()
        drawn.save(buffer, "WEBP", lossless=lossless, quality=quality, method=3)
        shown.append((buffer.getvalue(), "image/webp"))
    return min(shown, key=lambda kind: len(kind[0]))


def section_of(result: Result) -> dict[str, Any]:
    """Everything that the page shows of a table."""
    sheet, layout = result.sheet, result.sheet.layout
    unknown = set(result.lines["row"]) - set(layout.rows)
    if unknown or set(result.lines["profile"]) != {result.profile}:
        what = (
            f"rows {', '.join(sorted(unknown))} that its layout.json lacks"
            if unknown
            else f"another profile than {result.profile}"
        )
        raise ResultsError(
            f"{result.file('csv')} has {what}; regenerate the table with `python -m benchmarks"
            " reproduce`"
        )
    shown = sheet.shown(result.lines)
    kinds = Counter(verdict_kind(claim["verdict"]) for claim in result.claims)
    stem = f"{result.paper}-{result.name}-{result.profile}"
    there = [suffix for suffix in COPIED if result.file(suffix).exists()]
    place = quote(f"{result.profile}/{result.paper}/{result.name}")
    downloads = [(suffix, f"{stem}.{suffix}", f"{place}.{suffix}") for suffix in (*there, "tex")]
    return {
        "anchor": result.anchor,
        "key": layout.key,
        "title": layout.title,
        "caption": layout.caption,
        "labels": layout.labels,
        "profile": result.profile,
        "paper": sheet.paper,
        "citation": sheet.citation,
        "origins": _named(result.lines, "origin"),
        "public": _named(result.lines, "public_origin"),
        "private": _named(result.lines, "private_origin"),
        "protocols": _named(result.lines, "protocol"),
        "seeds": int(result.lines["seeds"].str.split().map(len).max()),
        "moved": next(
            (
                " of " + label.partition(" of ")[2]
                for label in layout.labels
                if "seed" in label and " of " in label
            ),
            "",
        ),
        "text": " ".join(
            [
                layout.key,
                layout.title,
                layout.caption,
                sheet.paper,
                *layout.labels,
                *layout.rows.values(),
                *layout.columns,
            ]
            + [claim["claim"] for claim in result.claims]
        ),
        "tables": tables_of(result),
        "budget": budget_rows(layout, result.records),
        "unequal": unequal_notes(layout),
        "told": sheet.told,
        "notes": legend(layout, shown),
        "claims": [{**claim, "kind": verdict_kind(claim["verdict"])} for claim in result.claims],
        "kinds": kinds,
        "card": Markup(
            MarkdownIt("commonmark", {"html": False}).enable("table").render("\n".join(sheet.card))
        ),
        "provenance": [
            *([("command", sheet.command)] if sheet.command else []),
            *provenance(result.records),
        ],
        "picture": picture_of(result),
        "downloads": downloads,
        "failed": int((result.lines["status"] != OK).sum()),
        "measured": int((shown["status"] == OK).sum()),
        "compared": int((shown["difference"] != "").sum()),
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
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
        ) as error:  # what no reader of a part has noticed
            raise ResultsError(
                f"the files {result.base}.* are damaged ({error}); regenerate the table"
            ) from error
    style, script = (
        Markup((TEMPLATES / name).read_text(encoding="utf-8")) for name in ("page.css", "page.js")
    )
    return render(
        "page.html.jinja",
        sections=sections,
        standing=standing(
            (result.profile, result.paper, result.anchor, claim)
            for result in results
            for claim in result.claims
            if result.as_published
        ),
        claim_kinds=KINDS,
        coverage=coverage(sections),
        missing=missing_tables(results),
        leaderboard=leaderboard,
        style=style,
        script=script,
        steps=[f"{100 * s:g} %" for s in STEPS],
        budget_headings=HEADINGS,
        profiles=list(dict.fromkeys(s["profile"] for s in sections)),
        papers=list(dict.fromkeys(s["key"].split("/")[0] for s in sections)),
        origins=sorted(
            {origin for s in sections for origin in s["origins"] + s["public"] + s["private"]}
        ),
    )
