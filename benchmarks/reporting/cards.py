"""Protocol cards: every setting of a paper's tables, where it comes from, and what a profile
reduces.
"""

from collections.abc import Collection

from rich.console import Group
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.defaults import settled
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import Mechanism, Paper, Setting, Table
from fedtables.reports.tables.markup import escaped, markdown_table


def value_text(value: object, separator: str) -> str:
    """A setting's value: one, or one per kind of column."""
    if isinstance(value, dict):
        return separator.join(
            f"{condition or 'else'}: {scalar}" for condition, scalar in value.items()
        )
    return str(value)


def table_settings(table: Table) -> list[str]:
    """What a table sets for itself, whatever the card says: by its columns, in all of them, and in
    rows, a line for each.
    """
    lines = []
    for key, entry in table.axes.items():
        values = dict.fromkeys(column[key] for column in table.columns if key in column)
        if values and entry:
            lines.append(f"columns set {entry}: {', '.join(values)}")
    lines += [f"all columns have {entry} = {value}" for entry, value in table.fixed.items()]
    rows = [
        f"row {row.title} ({row.key}{', offered' if row in table.offered else ''}): "
        + ", ".join(
            [
                *([f"protocol {row.protocol}"] if row.protocol else []),
                *(f"{n} = {v}" for n, v in row.config.items()),
            ]
        )
        for row in (*table.rows, *table.offered)
        if row.config or row.protocol
    ]
    return lines + rows


def settings_of(paper: Paper, table: Table, methods: Collection[str]) -> list[Setting]:
    """The settings that concern a table with rows of these methods: none of other methods or of
    other tables' measures.
    """
    own = {*methods, *registry.find_measure(table.measure).settings}
    others = (registry.methods().keys() | registry.measure_settings()) - own
    return [s for s in paper.settings_of(table) if s.name.partition(".")[0] not in others]


def markdown(
    paper: Paper, table: Table, selection: Selection, methods: Collection[str]
) -> list[str]:
    """The protocol card: every setting of the methods, its source, and what the profile reduces, as
    Markdown.
    """
    profile, protocol, overrides = selection.profile, selection.protocol, dict(selection.overrides)
    lines = [f"{paper.title}. {paper.citation}. Profile {profile}, protocol {protocol}.", ""]
    if selection.execution.label:
        lines += [
            (
                f"Executed as {selection.execution.label}: numbers may differ from the default's by"
                " rounding. Private cells are executed as by default."
            ),
            "",
        ]
    lines += [
        f"Set by hand, except in rows that set it themselves: {name} = {escaped(str(value))}."
        for name, value in overrides.items()
    ]
    lines += [""] if overrides else []
    rows = []
    for setting in map(settled, settings_of(paper, table, methods)):
        here = overrides.get(setting.name, setting.value(profile, protocol))
        shown = escaped(value_text(here, "; "))
        mark = f"**{shown}**" if here != setting.paper else "same"
        texts = (setting.name, value_text(setting.paper, "; "), setting.source, setting.where)
        name, printed, source, where = map(escaped, texts)
        rows.append((name, printed, mark, source, where))
    lines += markdown_table(("setting", "paper", "here", "source", "where"), rows, str)
    if table.mechanism is not None:
        lines += ["", *conventions(table.mechanism)]
    return [
        *lines,
        "",
        *(f"- {escaped(line)}" for line in [*table_settings(table), *paper.notes_on(table)]),
    ]


def conventions(mechanism: Mechanism) -> list[str]:
    """The epsilon of one mechanism under every convention, as Markdown: how much of a privacy axis
    is convention.
    """
    from fedtables.privacy.conventions import readings
    from fedtables.privacy.releases import GaussianSteps

    deltas = (1e-3, 1e-5)
    steps = GaussianSteps(mechanism.noise_multiplier, mechanism.sample_rate, mechanism.steps)
    rows = [
        (
            by_delta[0].adjacency,
            by_delta[0].sampling,
            f"{by_delta[0].name}: {by_delta[0].bound}",
            *(f"{reading.epsilon:.2f}" for reading in by_delta),
        )
        for by_delta in zip(*(readings(steps, delta) for delta in deltas), strict=True)
    ]
    headings = ("adjacency", "sampling", "bound", *(f"delta {delta:g}" for delta in deltas))
    return [
        "Epsilon of the same noise under each convention: noise multiplier"
        f" {mechanism.noise_multiplier:g}, sample rate {mechanism.sample_rate:g},"
        f" {mechanism.steps:,} steps ({mechanism.where}).",
        "",
        *markdown_table(headings, rows),
    ]


def terminal(paper: Paper, shown: Table, profile: str, protocol: str) -> RichTable:
    """The same for a terminal, without rows and notes, of all methods."""
    title = f"Protocol card, profile {profile}"
    table = RichTable(title=title, title_justify="left", padding=(0, 1))
    for heading in ("setting", "paper", profile, "source", "where"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("setting", "source"))
    for setting in map(settled, paper.settings_of(shown)):
        here = setting.value(profile, protocol)
        table.add_row(
            setting.name,
            value_text(setting.paper, "\n"),
            value_text(here, "\n"),
            setting.source,
            setting.where,
        )
    return table


def listed(card: RichTable) -> Group:
    """A card of `terminal` as a list, for a terminal that is too narrow for the table."""
    lines: list[Text | Padding] = [Text(str(card.title), style="bold")]
    headings = [str(column.header) for column in card.columns]
    for name, *rest in zip(*(column.cells for column in card.columns), strict=True):
        lines.append(Text(str(name)))
        for heading, text in zip(headings[1:], rest, strict=True):
            shown = "; ".join(str(text).splitlines())
            lines.append(Padding(Text(f"{heading}: {shown}"), (0, 0, 0, 2)))
    return Group(*lines)


def reduced(
    paper: Paper,
    table: Table,
    profile: str,
    methods: Collection[str],
    by_hand: Collection[str] = (),
) -> str:
    """One line that names the settings which a reduced profile scales down for the methods, but
    for those that were set by hand.
    """
    names = [
        s.name
        for s in settings_of(paper, table, methods)
        if s.is_reduced(profile) and s.name not in by_hand
    ]
    if not names:
        return f"Profile {profile} scales nothing down here."
    return f"Profile {profile} scales down {len(names)} settings: {', '.join(names)}."
