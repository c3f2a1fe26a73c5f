"""Measuring a network on labelled data, batch by batch: the outputs of a whole test set are never
held.
"""

from __future__ import annotations

import torch
from torch import nn

from federation.costs import active_meter
from federation.tasks.base import Task
from federation.tasks.multi_label import placed
from federation.training.inputs import Normalisation
from federation.training.loops import predictions
from federation.windows import Window


def evaluate(
    model: nn.Module,
    images: torch.Tensor,
    targets: torch.Tensor,
    groups: torch.Tensor | None = None,
    *,
    task: Task,
    normalise: Normalisation,
    trained_for: Task | None = None,
    window: Window | None = None,
) -> dict[str, float]:
    """Metrics of `task` by name on stored `images` (n, c, *sides) with targets (n, ...), of a
    network that was trained for it, or for `trained_for`; none while planning.

    A `window` goes over images that are larger than the network takes. `groups` (n,) adds metrics
    by group (`metrics.running`). Raises ValueError where the metrics are undefined, as without any
    image.
    """
    meter = active_meter()
    if meter is not None:
        meter.book_prediction(model, images if window is None else window.seen(images))
        return {}
    running = task.metrics()
    start = 0
    for outputs in predictions(model, images, normalise=normalise, window=window):
        part = slice(start, start + len(outputs))
        start = part.stop
        batch_groups = None if groups is None else groups[part]
        running.update(placed(outputs, trained_for, task), targets[part], batch_groups)
        del outputs  # before the next are made
    return running.compute()
