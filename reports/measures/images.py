"""Tables whose cells leave arrays that a picture is drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from datasets import catalogue
from datasets.source import SEGMENTS, annotations_of
from reports.measures.kind import Kind
from reports.tables.table import Layout, ShownTable, differing_keys, row_title
from results.arrays import unpack
from results.published import parse_column
from results.record import OK, Record

Arrays = Mapping[str, Mapping[str, np.ndarray]]
"""By name, or a row's key, and by what stands behind a `/`, such as a site."""


class Pictured(Kind):
    """A picture of the arrays of one seed, beside the numbers."""

    made: str = "predicted"
    """The name of what a row's own cell makes, in its arrays."""
    which: str = ""
    """What the picture shows, in words; empty for nothing to say."""
    of_seed: str = ","
    """What stands between that and the seed."""

    def remarks(self, table: ShownTable) -> list[str]:
        drawn = with_arrays(table.records)
        if not drawn or not self.which:
            return []
        several = len({record.seed for record in table.records}) > 1
        return [self.which + (f"{self.of_seed} of seed {drawn[0].seed}" if several else "")]

    def draw(self, table: ShownTable, path: Path) -> None:
        if drawn := with_arrays(table.records):
            self.picture(arrays_of(drawn, self.made), table.layout, path, drawn)

    def picture(self, arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
        """Draw the arrays of the records `drawn` into the PNG `path`."""
        raise NotImplementedError


def with_arrays(records: Sequence[Record]) -> list[Record]:
    """The records that are drawn, those of the lowest seed that has any arrays: of every row of it
    that has not failed.
    """
    having = [record for record in records if record.status == OK and record.arrays]
    first = min((record.seed for record in having), default=None)
    return [record for record in having if record.seed == first]


def arrays_of(drawn: Sequence[Record], made: str) -> dict[str, dict[str, np.ndarray]]:
    """The arrays of all records together: what is `made` under the row's key, the rest, which all
    rows of a seed share, under its name.
    """
    found: dict[str, dict[str, np.ndarray]] = {}
    for record in drawn:
        for name, array in unpack(record.arrays).items():
            kind, _, place = name.partition("/")
            found.setdefault(record.row if kind == made else kind, {}).setdefault(place, array)
    return found


def titles_of(layout: Layout, arrays: Arrays, places: Sequence[str] = ("",)) -> dict[str, str]:
    """Titles, by key, of the rows that made something of each of `places`."""
    return {
        row: row_title(layout, row)
        for row in layout.rows
        if set(places) <= arrays.get(row, {}).keys()
    }


LEVEL = 0.5
"""Above which an attention map is coloured, as the caption of FedAD's Figure 3 says."""
THREE = ("#ff0000", "#00ff00", "#0000ff")
"""Colours of three clients (the same caption): red, green and blue."""
CENTRAL = "#ff8c00"
"""Colour of where the central model looks."""
EDGES = {"diversity": "#000000", "consensus": "#ffff00"}
"""Colours of the edges of what local models see together, the last on top."""


class Attention(Pictured):
    """A picture with a line per film, beside the numbers. A client's map is coloured above one
    half.
    """

    made = "central"
    which = (
        "the picture shows 4 films at most, each of another finding, where the most local"
        " models look anywhere"
    )

    def picture(self, arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
        from matplotlib.patches import Patch

        from reports.drawing.pictures import class_colours, image_grid

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
    from reports.drawing.pictures import outlined, rgb, tinted

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


class Classes(Pictured):
    """Classes by client, a panel for the first division of each row."""

    made = "counts"

    def picture(self, arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
        from reports.drawing.plots_clients import partition_plot

        named = {title: arrays[row][""] for row, title in layout.rows.items() if row in arrays}
        partition_plot(named, path, layout)


FOUND, TRUE = "#ffd400", "#00e5ff"
"""Colours of outlines: of what is found, and of the truth."""


class Contours(Pictured):
    """A picture with a line per site, and a table of numbers on all test samples."""

    statistic = True
    which = "the picture shows the middle of the test image of each site that has most labelled"

    def picture(self, arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
        from reports.drawing.pictures import image_grid, outlined, rgb

        sites = sorted(arrays["image"])
        titles = titles_of(layout, arrays, sites)
        lines = []
        for site in sites:
            image = rgb(arrays["image"][site])
            found = [outlined(image, arrays[row][site], FOUND) for row in titles]
            truth = outlined(image, arrays["target"][site], TRUE)
            lines.append((site, [image, *found, truth], ()))
        image_grid(lines, ["input", *titles.values(), "ground truth"], path, layout)


HIGH = 99.5
"""Percentile of all errors of the picture at which the colour scale ends."""


class ErrorMaps(Pictured):
    """A picture with a line per column of the table, and a table of numbers on all subjects."""

    statistic = True
    which = (
        "the picture shows the middle slice of each site's first test subject; below each"
        " reconstruction is the mean of its absolute error on that slice"
    )

    def picture(self, arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
        from reports.drawing.pictures import error_colours, image_grid, rgb

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


class Segmentations(Pictured):
    """A picture with a line per test image. All rows of a seed were shown the same images."""

    which = "the numbers are of the test images in the picture alone, not of the whole test set"
    of_seed = "; the picture is"

    def picture(self, arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
        from matplotlib.colors import to_rgb
        from matplotlib.patches import Patch

        from reports.drawing.pictures import class_colours, image_grid, rgb

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


class Synthesis(Pictured):
    """A picture with a line per client."""

    statistic = True
    made = "made"

    def picture(self, arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
        from reports.drawing.pictures import image_grid, outlined, rgb

        clients = sorted(arrays["image"])
        titles = titles_of(layout, arrays, clients)
        lines = []
        for client in clients:
            objects = arrays["target"][client]
            label_map = outlined(rgb((objects > 0)[None].astype(float)), objects, "#000000")
            made = [rgb(arrays[row][client]) for row in titles]
            lines.append((client, [label_map, *made, rgb(arrays["image"][client])], ()))
        image_grid(lines, ["label map", *titles.values(), "real"], path, layout)


KINDS = {
    "attention": Attention(),
    "classes": Classes(),
    "contours": Contours(),
    "error-maps": ErrorMaps(),
    "segmentations": Segmentations(),
    "synthesis": Synthesis(),
}
