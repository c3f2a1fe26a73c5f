"""How a table is drawn: rows and columns in print order, and the labels that say what its numbers
were made from.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fedtables.benchmarks.running.table_run import TableRun
from fedtables.benchmarks.tables.derived import with_derived
from fedtables.benchmarks.tables.spec import Row
from fedtables.datasets import catalogue
from fedtables.reports.measures.kind import find_kind
from fedtables.reports.tables.budget import unequal_rows
from fedtables.reports.tables.table import Layout
from fedtables.results.published import format_column, parse_column
from fedtables.results.record import Record

BROKEN = "✗"
"""Marks a row whose method breaks the contract."""
FEW = 2
"""The most ways to a number that the labels name. More are left to the table's notes."""


def layout_of(run: TableRun, records: Sequence[Record]) -> Layout:
    """How the table is drawn: rows and columns of which there is a record, in print order, and the
    labels that say what it was made from.
    """
    selection, profile = run.selection, run.selection.profile
    there = {record.row for record in records}
    derived = [rule.column for rule in run.table.derived]
    measured = {record.column for record in with_derived(records, run.table.derived)}
    columns = (format_column(dict(keys)) for keys in (*run.table.columns, *derived))
    rows = {row.key: row for row in run.rows if row.key in there}
    kind = find_kind(run.table.measure)
    public = _data_labels([r.public for r in records])
    private = _data_labels([r.private for r in records])
    moved = f" of {', '.join(run.table.seed_axes)}" if run.table.seed_axes else ""
    layout = Layout(
        key=run.name,
        title=run.table.title,
        caption=run.table.caption,
        rows={key: _marked(row, selection.protocol, records) for key, row in rows.items()},
        oracles=frozenset(row.key for row in run.rows if row.upper_bound),
        own=run.table.rows[-1].key if run.table.own is None else run.table.own,
        x_axis=run.table.x_axis,
        columns=tuple(column for column in columns if column in measured),
        labels=(
            f"profile {profile}" + ("" if profile == "paper" else " (reduced)"),
            _seeds_of(records) + moved,
            f"protocol {selection.protocol}",
            *(f"set {name} = {value}" for name, value in selection.overrides),
            *_scaled(run, records),
            *([selection.execution.label] if selection.execution.label else []),
            *_networks_of(records),
            *_privacy_of(records),
            *_data_labels([d for r in records for d in (r.data, *r.others)]),
            *([f"public data of methods that use any: {' and '.join(public)}"] if public else []),
            *([f"clients' private data: {' and '.join(private)}"] if private else []),
            *(_statistics_of(records) if kind.statistic else []),
        ),
        notes=(*_broken_of(run, records), *_families_of(run, records), *_notes_of(records)),
        unit=run.table.unit,
        methods={key: row.method for key, row in rows.items()},
        chance={
            record.column: 1 / catalogue.source(record.data["used"]).classes
            for record in records
            if record.data
        },
        unlike=kind.unlike(records),
    )
    return replace(layout, unequal=unequal_rows(layout, records))


def _seeds_of(records: Sequence[Record]) -> str:
    """Of how many seeds a cell is: `3 seeds`, `3 to 6 seeds`."""
    cells = {(record.row, record.column, record.seed) for record in records}
    counts = Counter(cell[:2] for cell in cells).values()
    least, most = min(counts, default=0), max(counts, default=0)
    return f"{least} to {most} seeds" if least < most else f"{most} seed{'s' * (most != 1)}"


def _data_labels(resolved: Sequence[Mapping[str, str]]) -> list[str]:
    """`MNIST (real)` and the like, once for every data set asked for."""
    used = {(d["asked"], d["used"]): d for d in resolved if d}
    return [
        catalogue.ResolvedData(d["asked"], d["used"], d["origin"], d["digest"], d["note"]).label
        for d in used.values()
    ]


def _statistics_of(records: Sequence[Record]) -> list[str]:
    """How runs became their numbers. Where cells differ much in it, the table's notes say so by
    column or row, and the labels do not.
    """
    found = list(dict.fromkeys(r.statistic for r in records if r.statistic))
    return found if len(found) <= FEW else []


def _marked(row: Row, protocol: str, records: Sequence[Record]) -> str:
    """A row's title, with another protocol than the table's that it was run under, and marked where
    it breaks the contract. An earlier command may have marked it already.
    """
    own = [record for record in records if record.row == row.key]
    others = sorted({record.protocol for record in own} - {protocol})
    marks = f" [{', '.join(others)}]" if others else ""
    marks += f" {BROKEN}" if any(record.contract for record in own) else ""
    return row.title.removesuffix(marks) + marks


def _privacy_of(records: Sequence[Record]) -> list[str]:
    """The accountant of private runs."""
    accounts = [r.privacy for r in records if r.epsilon is not None]
    told = (
        f"epsilon at delta {p['delta']:g} by the {p['accountant']} accountant" for p in accounts
    )
    return list(dict.fromkeys(told))


def _notes_of(records: Sequence[Record]) -> tuple[str, ...]:
    """What private runs note, and by which conventions they count, with the rows that do."""
    notes: dict[str, dict[str, None]] = {}
    for record in records:
        for note in record.privacy.get("notes", ()):
            notes.setdefault(note, {})[record.row] = None
        if record.epsilon is not None:
            p = record.privacy
            unit = f" ({p['unit']})" if "unit" in p else ""  # as older records do not say
            convention = (
                f"epsilon: {p['adjacency']}{unit}; sampling: {p['sampling']}; public:"
                f" {p['public']}; trust: {p['trust']}"
            )
            notes.setdefault(convention, {})[record.row] = None
    return tuple(f"{', '.join(rows)}: {note}" for note, rows in notes.items())


def _unmarked(title: str) -> str:
    """A row's title without the mark that an earlier command may have put behind it."""
    return title.removesuffix(f" {BROKEN}")


def _broken_of(run: TableRun, records: Sequence[Record]) -> tuple[str, ...]:
    """What rows are not ranked for breaking the contract, and how they do."""
    titles = {row.key: _unmarked(row.title) for row in run.rows}
    broken = {titles[r.row]: r.contract for r in records if r.contract}
    return tuple(
        f"{BROKEN} {title} breaks the contract and is not ranked: {'; '.join(findings)}"
        for title, findings in broken.items()
    )


def _families_of(run: TableRun, records: Sequence[Record]) -> tuple[str, ...]:
    """By what the rows are trained whose methods the paper does not name."""
    rounds = {r.row: r.config.get(f"{r.lineage[0]}.rounds") for r in records if r.lineage}
    titles = {row.key: row.title for row in run.rows}
    notes = {}
    for r in records:
        if not r.lineage or r.lineage[0] in run.paper.methods:
            continue
        known = next((name for name in r.lineage if name in run.paper.methods), None)
        if known is not None:
            notes[r.row] = (
                f"{titles[r.row]} derives from {known} and has the paper's settings of it"
            )
            continue
        notes[r.row] = (
            f"{titles[r.row]} belongs to no method of the paper: its local and server plans are the"
            " table's, its other settings its own"
        )
        if (own := rounds[r.row]) is not None:
            counts = {row: count for row, count in rounds.items() if count not in (None, own)}
            others = ", ".join(f"{titles[row]} {n}" for row, n in counts.items() if row in titles)
            notes[r.row] += f", with rounds = {own}" + (f" ({others})" if others else "")
    return tuple(notes.values())


def _networks_of(records: Sequence[Record]) -> list[str]:
    """`resnet is cnn` where the profile replaces a network that the rows name."""
    networks: dict[str, set[str]] = {}
    for config in (record.config for record in records):
        clients = str(config.get("network.client", "")).split("+")
        for part in (*clients, str(config.get("network.server", ""))):
            networks.setdefault(part, set()).add(str(config.get(f"network.{part}", part)))
    return [
        f"{role} is {' or '.join(sorted(names))}"
        for role, names in networks.items()
        if names != {role}
    ]


def _scaled(run: TableRun, records: Sequence[Record]) -> list[str]:
    """What the sizes that columns name are here, where a profile scales them or the set that stands
    in is too small.
    """
    notes = []
    for key, entry in run.table.scaled.items():
        named = {
            parse_column(record.column).get(key, ""): str(_public_size(record, entry))
            for record in records
        }
        sizes = {size: used for size, used in named.items() if size.isdigit() and size != used}
        if sizes:
            notes.append(
                f"{key} {', '.join(sizes)} {'is' if len(sizes) == 1 else 'are'}"
                f" {', '.join(sizes.values())} here ({entry})"
            )
    return notes


def _public_size(record: Record, entry: str) -> int:
    """Public images that a cell asks for with a limit, or as many as its set has."""
    there = catalogue.source(str(record.public["used"])).sizes["train"] if record.public else 0
    return min((size for size in (int(record.config[entry]), there) if size), default=0)
