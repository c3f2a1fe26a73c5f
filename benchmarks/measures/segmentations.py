"""FedSA's Figure 3: what the rows of a table see in the same few test images, beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import save

from datasets import catalogue
from datasets.annotations import SEGMENTS, annotations_of
from results.arrays import pack, unpack
from results.record import OK, Measurement, Record

if TYPE_CHECKING:
    from federation.federation import Checkpoint, Federation

SHOWN = 4
"""Test images in the picture (FedSA, section 4: "We choose four images from the test set")."""
IMAGES, TARGET, PREDICTED = "images", "target", "predicted"


def measure(
    federation: Federation, fitted: Sequence[Checkpoint]
) -> tuple[tuple[Measurement, ...], str, str]:
    """The mean IoU of the first test images, how it was made, and these images with target and
    prediction, packed.

    Raises ValueError for a task without a class per pixel, and for a method that leaves several
    networks.
    """
    from federation.tasks import Segmentation
    from federation.training import predict  # torch: whoever draws the picture has no use for it
    from metrics.running import measured

    if not isinstance(federation.task, Segmentation):
        raise ValueError(
            f"a picture of segmentations needs a class per pixel, and the task is {federation.task}"
        )
    if len(fitted) != 1:
        raise ValueError(
            f"a picture shows what one network predicts, and the method leaves {len(fitted)}"
        )
    test = federation._test  # hidden from methods, which may not choose anything by it
    images, target = test.images[:SHOWN], test.targets[:SHOWN]
    outputs = predict(federation.module(fitted[0]), images, normalise=federation.normalise)
    values = measured(federation.task.metrics(), outputs, target)
    found = tuple(Measurement(name, value) for name, value in values.items())
    maps = {IMAGES: images, TARGET: target, PREDICTED: outputs.argmax(dim=1)}
    arrays = {name: tensor.cpu().numpy().astype(np.uint8) for name, tensor in maps.items()}
    return found, f"of the {len(images)} test images shown, at the end of the run", pack(arrays)


def shown_seed(records: Sequence[Record]) -> int | None:
    """The seed whose images are drawn, the lowest that there is; None if no cell has any."""
    return min(
        (record.seed for record in records if record.status == OK and record.arrays), default=None
    )


def collected(records: Sequence[Record]) -> bytes:
    """The file that `reports.drawing.pictures.draw_segmentations` reads, of one seed; empty if no
    cell has images.

    All rows of a seed were shown the same images: they are drawn from the partition axis.
    """
    seed = shown_seed(records)
    found: dict[str, np.ndarray] = {}
    for record in records:
        if record.seed == seed and record.status == OK:
            arrays = unpack(record.arrays)
            found |= {IMAGES: arrays[IMAGES], TARGET: arrays[TARGET], record.row: arrays[PREDICTED]}
    return save(found) if found else b""


def class_names(data: catalogue.ResolvedData) -> list[str]:
    """Names of the classes of a pixel: what the one annotation of that kind means."""
    (segments,) = (
        about
        for about in annotations_of(catalogue.source(data.used)).values()
        if about.kind == SEGMENTS
    )
    return segments.meaning.split(", ")


def told(records: Sequence[Record]) -> list[str]:
    """What a reader of the numbers must know."""
    seed = shown_seed(records)
    if seed is None:
        return []
    drawn = f"the picture is of seed {seed}" if len({record.seed for record in records}) > 1 else ""
    return [
        "; ".join(
            filter(
                None,
                [
                    (
                        "the numbers are of the test images in the picture alone, not of the whole"
                        " test set"
                    ),
                    drawn,
                ],
            )
        )
    ]
