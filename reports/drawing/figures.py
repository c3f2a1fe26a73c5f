"""What every picture shares: its size, axes and their limits, title, legend and footnote, and files
as PNG, SVG and PDF.

A picture is as wide as one column of a paper, or as two; its texts are of the size of a caption.
"""

from __future__ import annotations

import base64
import io
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.gridspec import GridSpec, GridSpecFromSubplotSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.textpath import text_to_path
from PIL import Image, ImageChops

from metrics.names import facts
from reports.tables.table import MARK, Layout
from reports.tables.units import Scale
from results.files import write_atomic

ONE_COLUMN, TWO_COLUMNS = 3.5, 7.0
"""Inches of a picture's width."""
UNSEEN = 8
"""Of 255, by which a colour may differ in a picture with a palette."""
MARGIN = 0.55
"""Inches beside the panels, for the name and numbers of a vertical axis."""
TITLE, LABEL, TICK, NOTE = 7.5, 7.0, 6.5, 5.0
"""Sizes of text in points."""
STYLE: Any = {
    # Matplotlib's own first: no picture hangs on the user's settings.
    **{k: v for k, v in matplotlib.rcParamsDefault.items() if not k.startswith("backend")},
    "font.size": LABEL,
    "axes.titlesize": LABEL,
    "axes.labelsize": LABEL,
    "xtick.labelsize": TICK,
    "ytick.labelsize": TICK,
    "legend.fontsize": TICK,
    "axes.linewidth": 0.6,
    "axes.titlepad": 4.0,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "errorbar.capsize": 1.5,
    "pdf.fonttype": 42,
    "svg.hashsalt": "fedtables",
}
"""Of Matplotlib, while a picture is drawn. The salt makes the same plot the same file."""
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

styled = matplotlib.rc_context(STYLE)
"""Draws in `STYLE`, as a decorator, and leaves the style of a notebook alone."""


@dataclass(frozen=True)
class Texts:
    """What stands above and below a picture."""

    title: str = ""
    note: str = ""


def texts_of(layout: Layout, width: float) -> Texts:
    """One line that says which table it is and what of, and everything else as the footnote.

    Of a caption that is wider than the picture, `width` inches, the title has what fits: all but
    what is in brackets, its first clause, or that up to a preposition. Both are empty for a layout
    without (`Layout.plain`).
    """
    if not layout.title:
        return Texts()
    bare = re.sub(r" \([^)]*\)", "", layout.caption)
    clause = re.split("[,;:] ", bare)[0]
    ends = [
        match.start()
        for match in re.finditer(" (?:against|at|by|for|from|in|of|on|to|under|with) ", clause)
    ]
    captions = [layout.caption, bare, clause, *(clause[:end] for end in ends[::-1])]
    titles = [f"{layout.title}. {caption}" for caption in captions]
    title = next((text for text in titles if inches_of(text, TITLE) < width - 0.15), layout.title)
    unlike = [
        f"{facts(m).title} not compared with print: {how}" for m, how in layout.unlike.items()
    ]
    caption = [] if title == titles[0] else [layout.caption]
    return Texts(title, f"{layout.key}: {'; '.join([*caption, *layout.labels, *unlike])}.")


def inches_of(text: str, size: float) -> float:
    """How wide a line of text is."""
    points, *_ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), False)
    return points / 72


def wrapped(text: str, inches: float, size: float) -> str:
    """Text in lines that are no wider, broken at spaces."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and inches_of(longer, size) <= inches:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(lines)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG and, beside it, as SVG and PDF, each in one step."""
    metadata: dict[str, dict[str, Any]] = {
        "svg": {"Date": None},
        "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
        "png": {"Software": None},
    }
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # places are found once, not for each format
    for axis in figure.axes:  # the last digits are those of a solver, which differ from run to run
        left, bottom, width, height = axis.get_position(original=True).bounds
        axis.set_position((round(left, 5), round(bottom, 5), round(width, 5), round(height, 5)))
    for kind, known in metadata.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, dpi=200, metadata=known)
        drawn = buffer.getvalue()
        if kind == "svg":
            drawn = shortened(drawn.decode()).encode()
        elif kind == "png":
            drawn = with_palette(drawn)
        write_atomic(path.with_name(f"{path.name.removesuffix('.png')}.{kind}"), drawn)


def shortened(svg: str) -> str:
    """An SVG with places to a hundredth of a point, where Matplotlib writes six digits, and images
    in it as small as PNG has them.
    """

    def in_place(place: re.Match[str]) -> str:
        return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", place[0])

    def in_it(image: re.Match[str]) -> str:
        return base64.b64encode(repacked(base64.b64decode(image[0]))).decode()

    svg = re.sub(r'(?<= (?:d|x|y)=")[^"]*|translate\([^)]*\)', in_place, svg)
    return re.sub(r'(?<=data:image/png;base64,)[^"]*', in_it, svg)


def with_palette(png: bytes) -> bytes:
    """An opaque picture in 256 colours, if no channel of any pixel so moves by more than `UNSEEN`,
    as in charts, whose further colours smooth edges; else `repacked`.
    """
    given = Image.open(io.BytesIO(png), formats=["PNG"])
    image = given.convert("RGB")
    of_few = image.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    moved: Any = ImageChops.difference(image, of_few.convert("RGB")).getextrema()
    if not _is_opaque(given) or max(most for _, most in moved) > UNSEEN:
        return repacked(png)
    return _packed(of_few, given)


def repacked(png: bytes) -> bytes:
    """The same pixels in a smaller PNG if there is one; an opaque image has no alpha there."""
    given = Image.open(io.BytesIO(png), formats=["PNG"])
    image = given.convert("RGB") if given.mode == "RGBA" and _is_opaque(given) else given
    return min(png, _packed(image, given), key=len)


def _is_opaque(image: Image.Image) -> bool:
    return image.mode != "RGBA" or image.getchannel("A").getextrema() == (255, 255)


def _packed(image: Image.Image, given: Image.Image) -> bytes:
    """As PNG, as large on paper as the `given` one."""
    buffer = io.BytesIO()
    size = {"dpi": given.info["dpi"]} if "dpi" in given.info else {}
    image.save(buffer, "PNG", optimize=True, **size)
    return buffer.getvalue()


def mark_unsettled(axis: Axes, x: Any, y: Any) -> None:
    """Marks of runs that were cut short; none where a place is not a number."""
    if np.isfinite(x).any() and np.isfinite(y).any():
        axis.plot(x, y, **EDGE)
        axis.plot(x, y, **SECTION)


def note(axis: Axes, x: Any, y: Any, texts: Sequence[str], rotation: float = 0) -> None:
    """Texts beside places, to the right of them or, turned, above them; none where one is empty."""
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": TICK - 1}
    if rotation:
        style |= {"xytext": (0, 4), "ha": "center", "va": "bottom", "rotation": rotation}
    else:
        style |= {"xytext": (4, 0), "ha": "left", "va": "center"}
    for at_x, at_y, text in zip(x, y, texts, strict=True):
        if text and np.isfinite((at_x, at_y)).all():
            axis.annotate(text, (at_x, at_y), **style)


def number_or_nan(text: str) -> float:
    """The number in a field of a CSV; not a number for an empty one."""
    return float(text) if text else math.nan


def blank(size: tuple[float, float], gap: float) -> Figure:
    """A figure without axes, of a size in inches, whose panels are `gap` inches apart or more."""
    engine = ConstrainedLayoutEngine(w_pad=gap, h_pad=gap, wspace=0.0, hspace=0.0)
    figure = Figure(figsize=size, layout=engine)
    FigureCanvasAgg(figure)
    return figure


def page(
    needs: Sequence[Sequence[float]], height: float, margin: float = MARGIN
) -> tuple[Figure, list[list[Axes]]]:
    """A figure with the panels of every block, each at least as many inches wide as it `needs`,
    beside a `margin` for the names on a vertical axis.

    Panels of a block stand beside each other in as few lines as they fit in, `height` inches each,
    and a block begins a new line; blocks of one panel each stand beside each other.
    """
    groups = [[need for (need,) in needs]] if max(map(len, needs)) == 1 else needs
    small = len(groups) == 1 and sum(groups[0]) <= ONE_COLUMN - margin
    width = ONE_COLUMN if small else TWO_COLUMNS
    lines = [line for group in groups for line in _lines(group, width - margin)]
    figure = blank((width, height * len(lines)), 0.03)
    rows = GridSpec(len(lines), 1, figure=figure)
    widest = max(map(sum, lines))
    placed: list[Axes] = []
    for number, line in enumerate(lines):
        rest = widest - sum(line)  # so that an inch is as much in every line
        ratios = [*line, rest] if rest > 0.05 * widest else line
        places = GridSpecFromSubplotSpec(
            1, len(ratios), subplot_spec=rows[number], width_ratios=ratios
        )
        placed += [figure.add_subplot(places[0, column]) for column in range(len(line))]
    flat = iter(placed)
    return figure, [list(itertools.islice(flat, len(block))) for block in needs]


def inches_wide(axis: Axes, margin: float = MARGIN) -> float:
    """About how wide a panel of a `page` is."""
    place = axis.get_subplotspec()
    assert place is not None
    ratios: Any = place.get_gridspec().get_width_ratios()
    whole = float(axis.get_figure(root=True).get_size_inches()[0]) - margin  # type: ignore[union-attr]
    return 0.95 * whole * float(ratios[place.colspan.start] / sum(ratios))


def _lines(needs: Sequence[float], width: float) -> list[list[float]]:
    """Widths in lines of at most `width`, as few as there can be, and about as long as each
    other.
    """

    def packed(most: float) -> list[list[float]]:
        lines: list[list[float]] = [[]]
        for need in needs:
            if lines[-1] and sum(lines[-1]) + need > most:
                lines.append([])
            lines[-1].append(need)
        return lines

    fewest = len(packed(width))
    # The narrowest width that takes no more lines.
    widths = np.linspace(sum(needs) / fewest, width, 40) if fewest > 1 else [width]
    return next((lines for most in widths if len(lines := packed(most)) == fewest), packed(width))


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


def finish(
    figure: Figure,
    axes: Sequence[Axes],
    about: Layout | Texts,
    path: Path,
    handles: Sequence[Artist] = (),
) -> None:
    """Write a figure with a title above, and below a legend, of all that its axes label and of
    `handles`, and the footnote.

    The panels keep their height: the figure grows by what stands around them.
    """
    labelled: dict[str, Artist] = {str(handle.get_label()): handle for handle in handles}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            labelled.setdefault(label, handle)
    for mark in LAST:
        if mark in labelled:
            labelled[mark] = labelled.pop(mark)
    width, height = figure.get_size_inches()
    texts = about if isinstance(about, Texts) else texts_of(about, width)
    note = wrapped(texts.note, 0.96 * width, NOTE)
    above = 0.2 if texts.title else 0.0
    note_height = (0.04 + 1.25 * NOTE / 72 * len(note.splitlines())) if note else 0.0
    legend, legend_height = _legend(figure, labelled) if labelled else (None, 0.0)
    below = note_height + legend_height + 0.02
    whole = height + above + below
    figure.set_size_inches(width, whole)
    engine: Any = figure.get_layout_engine()
    if engine is not None:
        engine.set(rect=(0.0, below / whole, 1.0, height / whole))
    if texts.title:
        figure.text(0.5, 1 - 0.04 / whole, texts.title, ha="center", va="top", fontsize=TITLE)
    if note:
        look: dict[str, Any] = {"ha": "left", "va": "bottom", "color": "#555555", "fontsize": NOTE}
        figure.text(0.05 / width, 0.03 / whole, note, linespacing=1.2, **look)
    if legend is not None:
        legend.set_bbox_to_anchor((0.5, note_height / whole), transform=figure.transFigure)
    save(figure, path)


def _legend(figure: Figure, labelled: Mapping[str, Artist]) -> tuple[Any, float]:
    """The legend in as many columns as fit, rows of equal length; and its height in inches."""
    width = figure.get_size_inches()[0] * figure.dpi
    renderer: Any = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    for rows in range(1, len(labelled) + 1):
        legend = figure.legend(
            list(labelled.values()),
            list(labelled),
            loc="lower center",
            frameon=False,
            ncol=-(-len(labelled) // rows),
            borderaxespad=0.2,
            columnspacing=1.2,
            handlelength=1.6,
            handletextpad=0.5,
            labelspacing=0.3,
        )
        legend.set_in_layout(False)
        extent = legend.get_window_extent(renderer)
        if extent.width <= width or rows == len(labelled):
            break
        legend.remove()
    return legend, extent.height / figure.dpi + 0.03


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


def spread_bars(values: np.ndarray) -> np.ndarray | None:
    """Spreads as lengths of error bars, none where nothing has one."""
    return None if np.isnan(values).all() else np.nan_to_num(values)
