"""Metrics of classification."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import torch


def accuracy(scores: torch.Tensor, labels: torch.Tensor) -> float:
    """Share of samples whose highest score, of (n, classes), is at the label (n,); a fraction in [0, 1]."""
    if len(labels) == 0:
        raise ValueError("the accuracy of no samples is undefined")
    return int((scores.argmax(dim=1) == labels).sum()) / len(labels)


def median_of_last(history: Sequence[float], epochs: int) -> float:
    """Median over the last `epochs` values (all of them if there are fewer): DLAD, section V-D, with epochs = 10."""
    return statistics.median(history[-epochs:])
