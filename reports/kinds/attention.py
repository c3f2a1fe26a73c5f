"""Where local models look in a few test films, what they agree on, and where each row's central
model looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reports.kinds.pictures import Arrays, Pictured, titles_of
from reports.tables.table import Layout
from results.record import Record

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


KIND = Attention()
