"""What an attack made of a client or message, and its files: a CSV, a JSON that says how it was
made, and a picture.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedtables.reports.drawing.pictures import image_rows
from fedtables.results.files import canonical_json, write_atomic
from fedtables.results.store import write_csv


@dataclass(frozen=True)
class Outcome:
    """Of one client or message, as can cross between processes."""

    lines: Sequence[Mapping[str, str]]
    """Of the CSV, one for each image."""
    pictures: Mapping[str, np.ndarray]
    """By what they are, images (n, c, h, w) in [0, 1], one for each line."""


def write_files(
    base: Path,
    title: str,
    outcomes: Sequence[Outcome],
    about: Mapping[str, Any],
    noted: Mapping[str, str],
) -> list[Path]:
    """Write the three, `base` with their suffixes; `noted` are columns of dB under pictures."""
    csv, record, png = (
        base.with_name(f"{base.name}.{suffix}") for suffix in ("csv", "json", "png")
    )
    lines = [line for outcome in outcomes for line in outcome.lines]
    pictures = {
        name: np.concatenate([outcome.pictures[name] for outcome in outcomes])
        for name in outcomes[0].pictures
    }
    notes = {
        name: [f"{float(line[column]):.1f} dB" for line in lines] for name, column in noted.items()
    }
    write_csv(csv, lines, tuple(lines[0]))
    write_atomic(record, canonical_json(about) + "\n")
    image_rows(pictures, notes, png, title)
    return [csv, record, png]
