"""Images beside each other, as PNG: what was private and what an attack made of it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from reports.plots import plt, save

ACROSS = 10
"""Images in a line of the picture."""


def image_rows(rows: Mapping[str, np.ndarray], notes: Mapping[str, Sequence[str]], path: Path, title: str) -> None:
    """A picture with a line of images for each of `rows`: images (n, c, h, w) in [0, 1] by the line's name.

    All lines have the same n; more than `ACROSS` images go on below. `notes` holds, by the name of a line, what is written
    under each of its images.
    """
    count = len(next(iter(rows.values())))
    blocks = -(-count // ACROSS)
    across = min(count, ACROSS)
    figure, axes = plt.subplots(blocks * len(rows), across, figsize=(0.95 * across + 1.2, 1.2 * blocks * len(rows)), squeeze=False)
    for position, axis in enumerate(axes.flat):
        line, column = divmod(position, across)
        block, row = divmod(line, len(rows))
        name = list(rows)[row]
        index = block * ACROSS + column
        axis.set_xticks([])
        axis.set_yticks([])
        if index >= count:
            axis.set_visible(False)
            continue
        image = np.clip(rows[name][index].transpose(1, 2, 0), 0, 1)
        axis.imshow(image.squeeze(2) if image.shape[2] == 1 else image, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        if name in notes:
            axis.set_xlabel(notes[name][index], fontsize=7, labelpad=2)
        if column == 0:
            axis.set_ylabel(name, fontsize=8, rotation=0, ha="right", va="center")
    figure.tight_layout(pad=0.3)
    width = max(40, int(figure.get_size_inches()[0] / 0.075))  # a character of this size is about 0.07 inches wide
    figure.text(0.5, 1.0, "\n".join(textwrap.wrap(title, width)), ha="center", va="bottom", fontsize=9)
    save(figure, path)
