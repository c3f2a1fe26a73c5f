"""Where local models look in a few test films, what they agree on, and where each row's central
model looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from reports.kinds.kind import Kind, Regenerated
from reports.kinds.pictures import row_titles, with_arrays
from results.arrays import unpack
from results.record import Record


class Attention(Kind):
    """A picture with a line per film, beside the numbers."""

    def arrays(self, records: Sequence[Record]) -> bytes:
        """The file that `reports.drawing.pictures.draw_attention` reads, of one seed.

        All rows of a seed have the same films and local models; each has a central map under its
        own key.
        """
        together: dict[str, np.ndarray] = {}
        for record in with_arrays(records):
            maps = unpack(record.arrays)
            together |= {record.row: maps.pop("central"), **maps}
        return save(together) if together else b""

    def remarks(self, table: Regenerated) -> list[str]:
        drawn = with_arrays(table.records)
        if not drawn:
            return []
        several = len({record.seed for record in table.records}) > 1
        which = (
            "the picture shows 4 films at most, each of another finding, where the most local"
            " models look anywhere"
        )
        return [which + (f", of seed {drawn[0].seed}" if several else "")]

    def draw(self, table: Regenerated, path: Path) -> None:
        from reports.drawing import pictures

        if drawn := with_arrays(table.records):
            names, rows = finding_names(drawn[0].config), row_titles(table.layout)
            pictures.draw_attention(table.arrays, path, rows, names, table.layout)


def finding_names(config: Mapping[str, Any]) -> list[str]:
    """Names of the findings that a file counts, in its order: those of the sites, each once."""
    sites = str(config["data.name"]).split("+")
    return list(
        dict.fromkeys(
            finding for site in sites for finding in str(config[f"findings.{site}"]).split("+")
        )
    )


KIND = Attention()
