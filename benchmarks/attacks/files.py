"""Files of an attack: a CSV, a JSON that says how it was made, and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reports.drawing.pictures import image_rows
from results.files import canonical_json, write_atomic
from results.store import write_csv


def write_files(
    base: Path,
    title: str,
    lines: Sequence[Mapping[str, str]],
    about: Mapping[str, Any],
    pictures: Mapping[str, np.ndarray],
    notes: Mapping[str, Sequence[str]],
) -> list[Path]:
    """Write the three beside each other, `base` with their suffixes."""
    csv, record, png = (
        base.with_name(f"{base.name}.{suffix}") for suffix in ("csv", "json", "png")
    )
    write_csv(csv, lines, tuple(lines[0]))
    write_atomic(record, canonical_json(about) + "\n")
    image_rows(pictures, notes, png, title)
    return [csv, record, png]
