"""A layout and lines for tests of what is drawn."""

import pandas as pd
from matplotlib.text import Annotation

from fedtables.reports.pages.sheet import Sheet
from fedtables.reports.tables.table import Layout, ShownTable
from fedtables.results.store import COUNTS, CSV_COLUMNS, NUMBERS, parse_value

COLUMNS = tuple(
    f"dataset={d} distribution={k}"
    for d in ("mnist", "cifar10", "cinic10")
    for k in ("iid", "niid1", "niid2", "niid3")
)


def layout(columns=COLUMNS, x_axis="", unit="fraction", key="dlad/table2"):
    return Layout(
        key=key,
        title="Table II",
        caption="Accuracy",
        rows={"a": "Row A", "b": "Row B", "top": "Bound"},
        own="b",
        x_axis=x_axis,
        oracles=frozenset({"top"}),
        columns=columns,
        labels=("profile smoke (reduced)", "1 seed"),
        unit=unit,
    )


def table_of(lines):
    """Lines as a table's CSV gives them."""
    frame = pd.DataFrame(lines, dtype=object) if lines else pd.DataFrame(columns=list(CSV_COLUMNS))
    return frame.where(frame.notna(), None)


def shown(layout, lines, *metrics, **more):
    """A table of lines, as it is drawn."""
    return ShownTable(layout, table_of(lines), (), metrics, **more)


def line(row, column, value, published="", **more):
    difference = f"{float(value) - float(published):.4f}" if published and value else ""
    own = {
        "row": row,
        "column": column,
        "value": value,
        "published": published,
        "difference": difference,
    }
    text = {**dict.fromkeys(CSV_COLUMNS, ""), "metric": "accuracy", "status": "ok", **own, **more}
    return {name: as_read(name, cell) for name, cell in text.items()}


def as_read(name, cell):
    """A cell of a CSV as it is read."""
    if name not in NUMBERS or not isinstance(cell, str):
        return cell
    return parse_value(cell, int if name in COUNTS else float)


def visible(figure):
    """The axes of a figure that are shown."""
    return [axis for axis in figure.axes if axis.get_visible()]


def words(figure):
    """Title and footnote of a figure."""
    return [text.get_text() for text in figure.findobj(Annotation) if text.axes is None]


def page_of(layout, lines, claims=(), records=(), card=()):
    """A table's page in Markdown."""
    table = ShownTable(layout, lines, records, claims=claims)
    return Sheet(layout, "A paper", "", "final", card=card).markdown(table)
