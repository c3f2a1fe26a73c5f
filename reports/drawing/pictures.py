"""Images beside each other: what was private and what an attack made of it, what networks see in
images, and where; of the arrays that cells leave a function for each measure.

All are drawn as a grid of images in RGB. What a kind of picture shows is painted into them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_hex, to_rgb
from matplotlib.patches import Patch
from skimage.segmentation import find_boundaries

from fedtables.datasets import catalogue
from fedtables.datasets.source import SEGMENTS, annotations_of
from fedtables.reports.drawing.figures import (
    ONE_COLUMN,
    TICK,
    TWO_COLUMNS,
    Texts,
    blank,
    filled,
    finish,
    styled,
)
from fedtables.reports.tables.table import Layout, differing_keys, row_title
from fedtables.results.arrays import unpack
from fedtables.results.published import parse_column
from fedtables.results.record import Record

ACROSS = 10
"""Images in a line of the picture of an attack."""
FEW = 4
"""Images in a line from which on it is two columns wide."""
NAMES = 0.7
"""Inches for what stands on the left of a line."""
OKABE_ITO = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7")
"""Okabe and Ito, Color Universal Design, 2008: told apart by all eyes."""
ERRORS = "inferno"
"""Colours of errors."""

Line = tuple[str, Sequence[np.ndarray], Sequence[str]]
"""A line's name, its images (h, w, 3) in [0, 1], and what stands under each, or nothing."""
Arrays = Mapping[str, Mapping[str, np.ndarray]]
"""By name, or a row's key, and by what stands behind a `/`, such as a site."""
LEVEL = 0.5
"""Above which an attention map is coloured, as the caption of FedAD's Figure 3 says."""
THREE = ("#ff0000", "#00ff00", "#0000ff")
"""Colours of three clients (the same caption): red, green and blue."""
CENTRAL = "#ff8c00"
"""Colour of where the central model looks."""
EDGES = {"diversity": "#000000", "consensus": "#ffff00"}
"""Colours of the edges of what local models see together, the last on top."""
FOUND, TRUE = "#ffd400", "#00e5ff"
"""Colours of outlines: of what is found, and of the truth."""
HIGH = 99.5
"""Percentile of all errors of the picture at which the colour scale ends."""


@styled
def image_grid(
    lines: Sequence[Line],
    titles: Sequence[str],
    path: Path,
    about: Layout | Texts,
    handles: Sequence[Patch] = (),
    errors: float = 0.0,
) -> None:
    """A picture with a line of images for each of `lines`, below the `titles` of the columns;
    `errors` is the end of the scale of errors, drawn beside them, if there are any.
    """
    across = max(len(images) for _, images, _ in lines)
    height, width, _ = lines[0][1][0].shape
    whole = ONE_COLUMN if across < FEW else TWO_COLUMNS
    noted = 0.16 if any(notes for *_, notes in lines) else 0.0
    high = (whole - NAMES) / across * height / width + noted
    figure = blank((whole, high * len(lines) + 0.3), 0.015)
    axes = figure.subplots(len(lines), across, squeeze=False)
    for places, (name, images, notes) in zip(axes, lines, strict=True):
        for axis in places[len(images) :]:
            axis.set_visible(False)
        for number, (axis, image) in enumerate(zip(places, images, strict=False)):
            axis.imshow(image, interpolation="none")
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(True)
            axis.set_xlabel(notes[number] if notes else "", labelpad=2, fontsize=TICK)
        named: Any = {"rotation": 0, "ha": "right", "va": "center", "fontsize": TICK}
        places[0].set_ylabel(filled(name, NAMES, TICK), **named)
    for axis, title in zip(axes[0], titles, strict=False):
        axis.set_title(filled(title, (whole - NAMES) / across, TICK), fontsize=TICK)
    if errors:
        scale = ScalarMappable(Normalize(0, errors), ERRORS)
        bar = figure.colorbar(scale, ax=axes, fraction=0.02, pad=0.01, extend="max")
        bar.ax.tick_params(labelsize=TICK)
    finish(figure, about, path, handles)


def image_rows(
    rows: Mapping[str, np.ndarray], notes: Mapping[str, Sequence[str]], path: Path, title: str
) -> None:
    """A picture with a line of images for each of `rows`: images (n, c, h, w) in [0, 1] by the
    line's name.

    All lines have the same n; more than `ACROSS` images go on below. `notes` holds, by the name of
    a line, what is written under each of its images.
    """
    count = len(next(iter(rows.values())))
    lines = [
        (
            name,
            [rgb(np.clip(image, 0, 1)) for image in images[start : start + ACROSS]],
            list(notes.get(name, ()))[start : start + ACROSS],
        )
        for start in range(0, count, ACROSS)
        for name, images in rows.items()
    ]
    image_grid(lines, (), path, Texts(title))


def rgb(image: np.ndarray) -> np.ndarray:
    """An image (c, h, w) as (h, w, 3) in [0, 1], bytes too; of other than three channels the first,
    in grey.
    """
    pixels = image.transpose(1, 2, 0) / (255 if image.dtype == np.uint8 else 1)
    return pixels if pixels.shape[2] == 3 else np.repeat(pixels[..., :1], 3, axis=2)


def outlined(pixels: np.ndarray, objects: np.ndarray, colour: str) -> np.ndarray:
    """Pixels (h, w, 3) with the outlines of objects (h, w), numbered from 1: their pixels that have
    another object, or none, beside them.
    """
    border = find_boundaries(objects, mode="inner", connectivity=1)
    return np.where(border[..., None], to_rgb(colour), pixels)


def tinted(film: np.ndarray, active: np.ndarray, colours: Sequence[str]) -> np.ndarray:
    """Pixels (h, w, 3) with areas (m, h, w) tinted, each in a colour; where several meet, in their
    mean.
    """
    tints = np.array([to_rgb(colour) for colour in colours])
    number = active.sum(axis=0)[..., None]
    tint = np.einsum("mhw,mc->hwc", active.astype(float), tints) / np.maximum(number, 1)
    return np.where(number > 0, 0.55 * film + 0.45 * tint, film)


def error_colours(error: np.ndarray, most: float) -> np.ndarray:
    """Errors (h, w) in the colours of the scale that ends at `most`."""
    shown: np.ndarray = colormaps[ERRORS](np.clip(error / most, 0, 1))
    return shown[..., :3]


def class_colours(count: int) -> list[str]:
    """A colour for each class: the eight of Okabe and Ito, or as many hues as it takes."""
    if count <= len(OKABE_ITO):
        return list(OKABE_ITO[:count])
    places = range(count) if count <= 20 else np.linspace(0, 1, count)
    return list(map(to_hex, colormaps["tab20" if count <= 20 else "turbo"](places)))


def titles_of(layout: Layout, arrays: Arrays, places: Sequence[str] = ("",)) -> dict[str, str]:
    """Titles, by key, of the rows that made something of each of `places`."""
    return {
        row: row_title(layout, row)
        for row in layout.rows
        if set(places) <= arrays.get(row, {}).keys()
    }


def attention(arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
    """A line per film. A client's map is coloured above one half."""
    names, titles = finding_names(drawn[0].config), titles_of(layout, arrays)
    clients = arrays["local"][""].shape[1]
    colours = THREE[:clients] if clients <= len(THREE) else class_colours(clients)
    lines = [
        (names[finding].replace("-", " "), _films(arrays, titles, number, colours), ())
        for number, finding in enumerate(arrays["finding"][""])
    ]
    handles = [Patch(color=colour, label=f"client {k}") for k, colour in enumerate(colours, 1)]
    handles += [Patch(color=CENTRAL, label="central model")]
    handles += [
        Patch(facecolor="none", edgecolor=edge, label=name)
        for name, edge in (("consensus", "#d4b400"), ("diversity", "black"))
    ]
    image_grid(lines, ["film", "local models", *titles.values()], path, layout, handles)


def _films(
    arrays: Arrays, titles: Mapping[str, str], number: int, colours: Sequence[str]
) -> list[np.ndarray]:
    """A film, where local models look in it, and where each row's central model does."""

    def seen(key: str) -> np.ndarray:
        active: np.ndarray = arrays[key][""][number] / 255 > LEVEL
        return active

    film = rgb(arrays["images"][""][number])
    shown = [tinted(film, seen("local"), colours)]
    shown += [tinted(film, seen(row)[None], [CENTRAL]) for row in titles]
    for name, edge in EDGES.items():
        shown = [outlined(image, seen(name).astype(int), edge) for image in shown]
    return [film, *shown]


def finding_names(config: Mapping[str, Any]) -> list[str]:
    """Names of the findings that a file counts, in its order: those of the sites, each once."""
    sites = str(config["data.name"]).split("+")
    return list(
        dict.fromkeys(
            finding for site in sites for finding in str(config[f"findings.{site}"]).split("+")
        )
    )


def contours(arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
    """A line per site."""
    sites = sorted(arrays["image"])
    titles = titles_of(layout, arrays, sites)
    lines = []
    for site in sites:
        image = rgb(arrays["image"][site])
        found = [outlined(image, arrays[row][site], FOUND) for row in titles]
        truth = outlined(image, arrays["target"][site], TRUE)
        lines.append((site, [image, *found, truth], ()))
    image_grid(lines, ["input", *titles.values(), "ground truth"], path, layout)


def error_maps(arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
    """A line per column of the table."""
    slices = by_column(drawn)
    columns = [column for column in layout.columns if column in slices["image"]]
    keys = differing_keys(columns)
    titles = {"image": "input", **titles_of(layout, slices, columns)}
    truths = slices["target"]
    apart = {(key, c): abs(slices[key][c] - truths[c]) for key in titles for c in columns}
    most = float(np.percentile(np.concatenate([*map(np.ravel, apart.values())]), HIGH)) or 1.0
    lines = []
    for column in columns:
        bright = float(truths[column].max()) or 1.0
        images, notes = [rgb(np.clip(truths[column][None] / bright, 0, 1))], [""]
        for key in titles:
            images.append(rgb(np.clip(slices[key][column][None] / bright, 0, 1)))
            images.append(error_colours(apart[key, column], most))
            notes += ["", f"{apart[key, column].mean():.4f}"]
        name = " ".join(v for key, v in parse_column(column).items() if key in keys)
        lines.append((name or column, images, notes))
    heads = ["truth", *(text for title in titles.values() for text in (title, "error"))]
    image_grid(lines, heads, path, layout, errors=most)


def by_column(drawn: Sequence[Record]) -> dict[str, dict[str, np.ndarray]]:
    """`image`, `target` and what each row predicts, by the table's column."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for record in drawn:
        for name, array in unpack(record.arrays).items():
            kind = name.partition("/")[0]
            found.setdefault(record.row if kind == "predicted" else kind, {})[record.column] = array
    return found


def segmentations(arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
    """A line per test image. All rows of a seed were shown the same images."""
    classes, titles = class_names(drawn[0].data["used"]), titles_of(layout, arrays)
    colours = [*class_colours(len(classes)), "#ffffff"]
    palette = np.array([to_rgb(colour) for colour in colours])
    # The last colour, which is that of no class, comes after all others.
    maps = [np.minimum(arrays[key][""], len(classes)) for key in ("target", *titles)]
    lines = [
        ("", [rgb(image), *(palette[shown[number]] for shown in maps)], ())
        for number, image in enumerate(arrays["images"][""])
    ]
    names = [*classes, "not labelled"]
    handles = [
        Patch(facecolor=colours[value], edgecolor="black", lw=0.4, label=names[value])
        for value in sorted({int(value) for shown in maps for value in np.unique(shown)})
    ]
    heads = ["input", "ground truth", *titles.values()]
    image_grid(lines, heads, path, layout, handles)


def class_names(used: str) -> list[str]:
    """Names of the classes of a pixel of the data set `used`: what its one annotation of that kind
    means.
    """
    (segments,) = (
        about for about in annotations_of(catalogue.source(used)).values() if about.kind == SEGMENTS
    )
    return segments.meaning.split(", ")


def synthesis(arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
    """A line per client."""
    clients = sorted(arrays["image"])
    titles = titles_of(layout, arrays, clients)
    lines = []
    for client in clients:
        objects = arrays["target"][client]
        label_map = outlined(rgb((objects > 0)[None].astype(float)), objects, "#000000")
        made = [rgb(arrays[row][client]) for row in titles]
        lines.append((client, [label_map, *made, rgb(arrays["image"][client])], ()))
    image_grid(lines, ["label map", *titles.values(), "real"], path, layout)
