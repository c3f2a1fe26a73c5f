"""What every picture shares: its size, axes and their limits, title, legend and footnote, and files
as PNG, SVG and PDF.

A picture is as wide as one column of a paper, or as two; its texts are of the size of a caption
(`paper.mplstyle`). Matplotlib's constrained layout places the panels. Title, legend and footnote
stand above and below them, and the file is as high as it takes.
"""

import io
import itertools
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from fedtables.metrics.names import facts
from fedtables.reports.tables.table import MARK, Layout
from fedtables.reports.tables.units import Scale
from fedtables.results.files import write_atomic

ONE_COLUMN, TWO_COLUMNS = 3.5, 7.0
"""Inches of a picture's width."""
MARGIN = 0.55
"""Inches beside the panels, for the name and numbers of a vertical axis."""
TITLE, LABEL, TICK, NOTE = 7.5, 7.0, 6.5, 5.0
"""Sizes of text in points."""
WIDE = 0.55
"""Of its height, about how wide a letter is."""
HIGHEST_COMMON, FIRST_REACHED = "highest that every row reaches", "reached for the first time"
"""Labels of the marks in a plot against bandwidth."""
PUBLISHED, CHANCE, UNSETTLED = "published", "chance", "cut short"
"""Labels of printed values, of what guessing gives and of runs that had not settled."""
GUESS: Mapping[str, Any] = {"color": "#444444", "ls": (0, (4, 2)), "lw": 0.7}
"""How chance is drawn."""
SECTION: Mapping[str, Any] = {
    "marker": f"${MARK}$",
    "ls": "none",
    "ms": 5.5,
    "mfc": "black",
    "mec": "black",
    "mew": 0.2,
    "zorder": 4,
    "label": UNSETTLED,
}
"""How a run is marked that was cut short."""
EDGE: Mapping[str, Any] = {**SECTION, "mec": "white", "mew": 1.4, "label": None}
"""What lies below that mark, so that it can be read over a bar and its spread."""
LAST = (CHANCE, UNSETTLED, PUBLISHED, HIGHEST_COMMON, FIRST_REACHED)
"""The end of every legend."""
METADATA: Mapping[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "png": {"Software": None},
}
"""Of files: neither a date nor a version, so that the same plot is the same file."""
EDGE_OF_FILE = 0.04
"""Inches of margin above and below all that is drawn."""

styled = style.context(["default", str(Path(__file__).with_name("paper.mplstyle"))])
"""Draws in the style of pictures, as a decorator, whatever the user's settings, and leaves the
style of a notebook alone."""


@dataclass(frozen=True)
class Texts:
    """What stands above and below a picture."""

    title: str = ""
    note: str = ""


def texts_of(layout: Layout) -> Texts:
    """Which table it is and what of, and everything else as the footnote; both are empty for a
    layout without (`Layout.plain`).
    """
    if not layout.title:
        return Texts()
    unlike = [
        f"{facts(m).title} not compared with print: {how}" for m, how in layout.unlike.items()
    ]
    note = f"{layout.key}: {'; '.join([*layout.labels, *unlike])}."
    return Texts(f"{layout.title}. {layout.caption}", note)


def blank(size: tuple[float, float], gap: float) -> Figure:
    """A figure without axes, of a size in inches, whose panels are `gap` inches apart or more."""
    engine = ConstrainedLayoutEngine(w_pad=gap, h_pad=gap, wspace=0.0, hspace=0.0)
    figure = Figure(figsize=size, layout=engine)
    FigureCanvasAgg(figure)
    return figure


def page(
    blocks: Sequence[int], needs: Sequence[float], height: float, margin: float = MARGIN
) -> tuple[Figure, list[list[Axes]]]:
    """A figure with so many panels of each block, each at least as many inches wide as its block
    `needs` and `height` high, beside a `margin` for the names on a vertical axis.

    Panels of a block stand beside each other in as few lines as they fit in, and a block begins a
    new line; blocks of one panel each stand beside each other.
    """
    if len(blocks) > 1 and max(blocks) == 1:
        figure, [axes] = page([len(blocks)], [max(needs)], height, margin)
        return figure, [[axis] for axis in axes]
    small = len(blocks) == 1 and blocks[0] * needs[0] <= ONE_COLUMN - margin
    width = ONE_COLUMN if small else TWO_COLUMNS
    fewest = [
        math.ceil(count / max(1, int((width - margin) / need)))
        for count, need in zip(blocks, needs, strict=True)
    ]
    figure = blank((width, height * sum(fewest)), 0.03)
    grids = figure.add_gridspec(len(blocks), 1, height_ratios=fewest)
    placed = []
    for number, (count, lines) in enumerate(zip(blocks, fewest, strict=True)):
        across = math.ceil(count / lines)
        places = grids[number].subgridspec(lines, across)
        placed.append([figure.add_subplot(places[divmod(n, across)]) for n in range(count)])
    return figure, placed


def limits(values: Iterable[float], bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Ends of an axis: from zero through the metric's bounds, or less of them where the values do
    not reach that far.

    Values that lie close together and far from zero get an axis of their own, which does not begin
    there.
    """
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return bounds or (0, 1)
    low, high = min(finite), max(finite)
    bottom, top = min(low, bounds[0] if bounds else 0), max(high, bounds[1] if bounds else 0)
    if 0 < high - low < min(0.1 * (top - bottom), (low - bottom) / 3):
        margin = (high - low) / 4
        return low - margin, (
            min(high + margin, top + 0.02 * (top - bottom)) if bounds else high + margin
        )
    below = 0.03 * (top - bottom) if bounds and bottom < bounds[0] else 0
    if bounds is None or high < bottom + 0.6 * (top - bottom):
        top = high + 0.06 * (high - bottom) or 1
    return bottom - below, top + (0.02 * (top - bottom) if bounds else 0)


def vertical_axis(axis: Axes, span: tuple[float, float], title: str, named: bool) -> None:
    """Ends and grid of a vertical axis; its title where it is `named` or stands on the left."""
    axis.set_ylim(*span)
    axis.grid(axis="y")
    place = axis.get_subplotspec()
    if named or (place is not None and place.is_first_col()):
        axis.set_ylabel(title)
    else:
        axis.tick_params(labelleft=False)


def chance_of(layout: Layout, scale: Scale, column: str) -> float:
    """What guessing gives of a metric in a column, which may have keys of its own behind the
    table's; not a number where that is not known.
    """
    if scale.chance is not None:
        return scale.chance
    if not scale.of_classes or scale.bounds is None:
        return math.nan
    shares = (s for c, s in layout.chance.items() if f"{column} ".startswith(f"{c} "))
    return next(shares, math.nan) * scale.bounds[1]


def spread_bars(values: Any) -> np.ndarray | None:
    """Spreads as lengths of error bars, none where nothing has one."""
    return None if np.isnan(values).all() else np.nan_to_num(values)


def filled(text: str, inches: float, size: float) -> str:
    """Text in lines that are about so wide, at most, in letters of a size in points."""
    return textwrap.fill(text, max(8, int(72 * inches / (WIDE * size))))


def finish(
    figure: Figure, about: Layout | Texts, path: Path, handles: Sequence[Artist] = ()
) -> None:
    """Write a figure with a title above, and below a legend, of all that its axes label and of
    `handles`, and the footnote.
    """
    labelled: dict[str, Artist] = {str(handle.get_label()): handle for handle in handles}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            labelled.setdefault(label, handle)
    for mark in LAST:
        if mark in labelled:
            labelled[mark] = labelled.pop(mark)
    texts = about if isinstance(about, Texts) else texts_of(about)
    width = figure.get_figwidth()
    title, note = filled(texts.title, width, TITLE), filled(texts.note, width, NOTE)
    # The footnote hangs from the legend, or from the picture, whatever their heights.
    over: Any = _legend(figure, labelled) if labelled else figure.transFigure
    above: Any = {"ha": "center", "va": "bottom", "fontsize": TITLE, "xytext": (0, 4)}
    below: Any = {"ha": "left", "va": "top", "color": "#555555", "fontsize": NOTE}
    hung = (
        (title, (0.5, 1.0), figure.transFigure, above),
        (note, (0.01, 0.0), (figure.transFigure, over), {**below, "xytext": (0, -3)}),
    )
    for text, place, of, look in hung:
        if text:
            gap: Any = {"xycoords": of, "textcoords": "offset points"}
            figure.add_artist(Annotation(text, place, **gap, **look))
    save(figure, path)


def _legend(figure: Figure, labelled: Mapping[str, Artist]) -> Artist:
    """The legend below a figure in as many columns as fit, rows of equal length."""
    for rows in itertools.count(1):
        across = math.ceil(len(labelled) / rows)
        place: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "ncols": across}
        legend = figure.legend(list(labelled.values()), list(labelled), **place)
        if legend.get_window_extent().width <= figure.bbox.width or across == 1:
            return legend
        legend.remove()
    raise AssertionError


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG and, beside it, as SVG and PDF, each in one step: as wide as it is, and
    as high as all that stands on it.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # places are found once, not for each format
    for axis in figure.axes:  # the last digits are those of a solver, which differ from run to run
        places = [round(place, 5) for place in axis.get_position(original=True).bounds]
        axis.set_position((places[0], places[1], places[2], places[3]))
    drawn = figure.get_tightbbox()
    low, high = round(drawn.y0 - EDGE_OF_FILE, 2), round(drawn.y1 + EDGE_OF_FILE, 2)
    box = Bbox([[0, low], [figure.get_figwidth(), high]])
    for kind, known in METADATA.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, dpi=200, metadata=known, bbox_inches=box)
        write_atomic(path.with_name(f"{path.name.removesuffix('.png')}.{kind}"), buffer.getvalue())
