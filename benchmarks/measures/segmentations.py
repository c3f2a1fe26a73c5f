"""FedSA's Figure 3: what the rows of a table see in the same few test images, beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.tables.measure import FittedCell, Measure, Taken, count_in, counted
from metrics.names import is_count
from results.arrays import pack

if TYPE_CHECKING:
    from federation.data import Checkpoint
    from federation.federation import Federation
    from results.record import Measurement

SHOWN = 4
"""Test images in the picture (FedSA, section 4: "We choose four images from the test set")."""


class Segmentations(Measure):
    """The metrics of a few test images, which are drawn (`reports.kinds.segmentations`); of a table
    with one column.
    """

    def take(self, run: FittedCell) -> Taken:
        return Taken(*measure(run.federation, run.fitted))


def measure(
    federation: Federation, fitted: Sequence[Checkpoint]
) -> tuple[tuple[Measurement, ...], str, str]:
    """The mean IoU of the first test images, how it was made, and these images with target and
    prediction, packed.

    Raises ValueError for a task without a class per pixel, and for a method that leaves several
    networks.
    """
    from federation.tasks.segmentation import Segmentation
    from federation.training.loops import predict
    from metrics.running import measured

    if not isinstance(federation.task, Segmentation):
        raise ValueError(
            f"a picture of segmentations needs a class per pixel, and the task is {federation.task}"
        )
    if len(fitted) != 1:
        raise ValueError(
            f"a picture shows what one network predicts, and the method leaves {len(fitted)}"
        )
    test = (
        federation.evaluation.test_set
    )  # hidden from methods, which may not choose anything by it
    images, target = test.images[:SHOWN], test.targets[:SHOWN]
    outputs = predict(federation.networks.module(fitted[0]), images, normalise=federation.normalise)
    values = measured(federation.task.metrics(), outputs, target)
    history = {name: [value] for name, value in values.items()}
    measurements = tuple(
        counted(name, value, [count_in(history, name)])
        for name, value in values.items()
        if not is_count(name)
    )
    maps = {"images": images, "target": target, "predicted": outputs.argmax(dim=1)}
    arrays = {name: tensor.cpu().numpy().astype(np.uint8) for name, tensor in maps.items()}
    return (
        measurements,
        f"of the {len(images)} test images shown, at the end of the run",
        pack(arrays),
    )


MEASURE = Segmentations()
