"""Images beside each other, as PNG: what was private and what an attack made of it; what networks
see in images, and where.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from reports.drawing.figures import (
    ONE_COLUMN,
    TICK,
    TITLE,
    TWO_COLUMNS,
    Texts,
    blank,
    finish,
    inches_of,
    styled,
)
from reports.tables.table import Layout
from results.files import ResultsError

ACROSS = 10
"""Images in a line of the picture."""
FEW = 5
"""Images in a line from which on it is two columns wide."""
NAMES = 0.7
"""Inches for what stands on the left of a line."""
IMAGES, TARGET = "images", "target"
"""Names, in a file of segmentations, of what is no row of the table."""
UNLABELLED = 255
"""The class of pixels that have none."""


@styled
def image_rows(
    rows: Mapping[str, np.ndarray], notes: Mapping[str, Sequence[str]], path: Path, title: str
) -> None:
    """A picture with a line of images for each of `rows`: images (n, c, h, w) in [0, 1] by the
    line's name.

    All lines have the same n; more than `ACROSS` images go on below. `notes` holds, by the name of
    a line, what is written under each of its images.
    """
    count = len(next(iter(rows.values())))
    blocks = -(-count // ACROSS)
    across = min(count, ACROSS)
    figure, axes = _grid(blocks * len(rows), across, 1.0 + 0.25 * bool(notes))
    for position, axis in enumerate(axes.flat):
        line, column = divmod(position, across)
        block, row = divmod(line, len(rows))
        name = list(rows)[row]
        index = block * ACROSS + column
        if index >= count:
            axis.set_visible(False)
            continue
        _show(axis, np.clip(rows[name][index], 0, 1), 1)
        if name in notes:
            axis.set_xlabel(notes[name][index], labelpad=2)
        if column == 0:
            axis.set_ylabel(name, rotation=0, ha="right", va="center")
    fits = inches_of(title, TITLE) < figure.get_figwidth() - 0.15
    finish(figure, [], Texts(title) if fits else Texts(title.partition(", ")[0], title), path)


def _grid(down: int, across: int, shape: float) -> tuple[Figure, np.ndarray]:
    """Places of images, each `shape` times as high as it is wide."""
    width = ONE_COLUMN if across < FEW else TWO_COLUMNS
    size = (width, (width - NAMES) / across * shape * down + 0.3)
    figure = blank(size, 0.015)
    axes = figure.subplots(down, across, squeeze=False)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(True)
    return figure, axes


def _show(axis: Axes, image: np.ndarray, most: float) -> None:
    """An image (c, h, w) of values from 0 to `most`."""
    shown = image.transpose(1, 2, 0)
    shown = shown.squeeze(2) if shown.shape[2] == 1 else shown
    axis.imshow(shown, cmap="gray", vmin=0, vmax=most, interpolation="none")


@styled
def draw_segmentations(
    source: Path, path: Path, rows: Mapping[str, str], classes: Sequence[str], about: Layout
) -> None:
    """A picture with a line per test image: the image, its true classes, and what each of `rows`
    (title by key) predicts.

    `source` is a safetensors file of `images` uint8 (n, 3 or 1, h, w) and, with values below the
    number of `classes` or 255 for none, `target` uint8 (n, h, w) and an array of that shape under
    the key of each row; rows that it lacks are left out. The legend names the classes that occur.
    Raises ResultsError for a file that holds something else.
    """
    arrays = read_segmentations(source, len(classes))
    columns = {"input": arrays.pop(IMAGES), "ground truth": arrays.pop(TARGET)}
    columns |= {rows[key]: arrays[key] for key in rows if key in arrays}
    count, height, width = columns["ground truth"].shape
    colours = ListedColormap([*class_colours(len(classes)), "white"])
    figure, axes = _grid(count, len(columns), height / width)
    for column, (name, pictures) in enumerate(columns.items()):
        for axis, picture in zip(axes[:, column], pictures, strict=True):
            if picture.ndim == 3:
                _show(axis, picture, 255)
            else:
                # The last colour, which is that of no class, comes after all others.
                shown = np.minimum(picture, len(classes))
                axis.imshow(
                    shown, cmap=colours, vmin=-0.5, vmax=len(classes) + 0.5, interpolation="none"
                )
        axes[0][column].set_title("\n".join(textwrap.wrap(name, 16)), fontsize=TICK)
    present = sorted(
        {
            int(value)
            for name, maps in columns.items()
            if name != "input"
            for value in np.unique(maps)
        }
    )
    names = {value: "not labelled" if value == UNLABELLED else classes[value] for value in present}
    handles = [
        Patch(facecolor=colours(min(value, len(classes))), edgecolor="black", lw=0.4, label=name)
        for value, name in names.items()
    ]
    finish(figure, [], about, path, handles)


def read_segmentations(source: Path, classes: int) -> dict[str, np.ndarray]:
    """The arrays of a file as `draw_segmentations` wants it. Raises ResultsError if it is not
    one.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(source)
        images, target = arrays[IMAGES], arrays[TARGET]
    except (OSError, SafetensorError, KeyError) as error:
        raise ResultsError(
            f"cannot read {source}: {error}; regenerate the table with `python -m benchmarks"
            " reproduce`"
        ) from error
    maps = {name: array for name, array in arrays.items() if name != IMAGES}
    wrong = [name for name, array in maps.items() if array.shape != target.shape]
    wrong += [
        name
        for name, array in maps.items()
        if not ((array < classes) | (array == UNLABELLED)).all()
    ]
    n, height, width = target.shape if target.ndim == 3 else (0, 0, 0)
    wrong += [IMAGES] if images.shape not in ((n, 3, height, width), (n, 1, height, width)) else []
    wrong += [name for name, array in arrays.items() if array.dtype != np.uint8]
    if wrong or not target.size:
        what = ", ".join(dict.fromkeys(wrong)) or TARGET
        raise ResultsError(
            f"{source} does not hold images with segmentations of {classes} classes: {what} does"
            " not fit"
        )
    return arrays


def class_colours(count: int) -> list[str]:
    """A colour for each class: the eight of Okabe and Ito, which are told apart by all eyes, or as
    many hues as it takes.
    """
    if count <= len(OKABE_ITO):
        return list(OKABE_ITO[:count])
    from matplotlib.colors import to_hex

    wheel = [to_hex(colormaps["tab20"](place)) for place in range(20)]
    rest = [
        to_hex(colormaps["hsv"](place / max(1, count - 20))) for place in range(max(0, count - 20))
    ]
    return [*wheel, *rest][:count]


OKABE_ITO = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7")
"""Okabe and Ito, Color Universal Design, 2008."""


FINDING, LOCAL, CONSENSUS, DIVERSITY = "finding", "local", "consensus", "diversity"
"""Names, in a file of attention maps, of what is no row of the table."""
LEVEL = 0.5
"""Above which an attention map is coloured, as the caption of FedAD's Figure 3 says."""
THREE = ("#ff0000", "#00ff00", "#0000ff")
"""Colours of three clients (the same caption): red, green and blue."""


@styled
def draw_attention(
    source: Path, path: Path, rows: Mapping[str, str], findings: Sequence[str], about: Layout
) -> None:
    """A picture with a line per film: the film, where local models look in it, and where each of
    `rows` (title by key) does.

    `source` is a safetensors file of uint8 arrays: `images` (n, 1, h, w); `finding` (n,), a place
    in `findings`; `local` (n, clients, h, w), `consensus`, `diversity` and, under the key of each
    row, maps (n, h, w) of 0 to 255. A client's map is coloured above one half; the edges of
    consensus and diversity are yellow and black. Rows that the file lacks are left out. Raises
    ResultsError for a file that holds something else.
    """
    arrays = read_attention(source, len(findings))
    films = arrays[IMAGES]
    local = arrays[LOCAL] / 255 > LEVEL
    count, clients, height, width = local.shape
    colours = THREE[:clients] if clients <= len(THREE) else class_colours(clients)
    columns = {"film": None, "local models": local}
    columns |= {rows[key]: arrays[key][:, None] / 255 > LEVEL for key in rows if key in arrays}
    figure, axes = _grid(count, len(columns), height / width)
    for column, (name, maps) in enumerate(columns.items()):
        for axis, film, place in zip(axes[:, column], films, range(count), strict=True):
            if maps is None:
                _show(axis, film, 255)
                continue
            shown = coloured(
                film[0], maps[place], colours if name == "local models" else (CENTRAL,)
            )
            axis.imshow(shown, interpolation="none")
            for edge, which in (("black", DIVERSITY), ("yellow", CONSENSUS)):
                level = arrays[which][place] / 255
                if level.min() < LEVEL < level.max():
                    axis.contour(level, [LEVEL], colors=edge, linewidths=0.8)
        axes[0][column].set_title("\n".join(textwrap.wrap(name, 16)), fontsize=TICK)
    for axis, number in zip(axes[:, 0], arrays[FINDING], strict=True):
        axis.set_ylabel(
            findings[number].replace("-", "\n"), fontsize=TICK, rotation=0, ha="right", va="center"
        )
    handles = [Patch(facecolor=colour, label=f"client {k}") for k, colour in enumerate(colours, 1)]
    handles += [Patch(facecolor=CENTRAL, label="central model")]
    handles += [
        Patch(facecolor="none", edgecolor=e, label=n)
        for e, n in (("#d4b400", "consensus"), ("black", "diversity"))
    ]
    finish(figure, [], about, path, handles)


CENTRAL = "#ff8c00"
"""Colour of where the central model looks."""


def coloured(film: np.ndarray, active: np.ndarray, colours: Sequence[str]) -> np.ndarray:
    """A grey film uint8 (h, w) with areas (m, h, w) tinted, each in a colour; where several meet,
    in their mean. RGB in [0, 1].
    """
    from matplotlib.colors import to_rgb

    grey = np.repeat(film[..., None] / 255, 3, axis=2)
    tints = np.array([to_rgb(colour) for colour in colours])
    number = active.sum(axis=0)[..., None]
    tint = np.einsum("mhw,mc->hwc", active.astype(float), tints) / np.maximum(number, 1)
    return np.where(number > 0, 0.55 * grey + 0.45 * tint, grey)


def read_attention(source: Path, findings: int) -> dict[str, np.ndarray]:
    """The arrays of a file as `draw_attention` wants it. Raises ResultsError if it is not one."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(source)
        images, local, finding = arrays[IMAGES], arrays[LOCAL], arrays[FINDING]
        maps = {
            name: array for name, array in arrays.items() if name not in (IMAGES, LOCAL, FINDING)
        }
        maps[CONSENSUS], maps[DIVERSITY]
    except (OSError, SafetensorError, KeyError) as error:
        raise ResultsError(
            f"cannot read {source}: {error}; regenerate the table with `python -m benchmarks"
            " reproduce`"
        ) from error
    n, height, width = (images.shape[0], *images.shape[2:]) if images.ndim == 4 else (0, 0, 0)
    wrong = [IMAGES] if images.shape != (n, 1, height, width) else []
    wrong += [LOCAL] if local.ndim != 4 or local.shape != (n, local.shape[1], height, width) else []
    wrong += [FINDING] if finding.shape != (n,) or not (finding < findings).all() else []
    wrong += [name for name, array in maps.items() if array.shape != (n, height, width)]
    wrong += [name for name, array in arrays.items() if array.dtype != np.uint8]
    if wrong or not n:
        what = ", ".join(dict.fromkeys(wrong)) or IMAGES
        raise ResultsError(
            f"{source} does not hold films with attention maps of {findings} findings: {what} does"
            " not fit"
        )
    return arrays
