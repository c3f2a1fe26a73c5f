"""Images that the rows of a table make of the same label maps, beside the real ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.kinds.pictures import Arrays, Pictured, titles_of
from reports.tables.table import Layout
from results.record import Record


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


KIND = Synthesis()
