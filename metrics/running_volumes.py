"""SSIM and PSNR of reconstructed volumes, fed slice by slice."""

from __future__ import annotations

import math

import numpy as np
import torch
from skimage.metrics import peak_signal_noise_ratio, structural_similarity
from torch import Tensor

from metrics.running import RunningMetrics, counts

SIDE = 7
"""Pixels of SSIM's uniform window, as in fastMRI's and FL-MRCM's evaluation (scikit-image's)."""


def volume_quality(volume: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """SSIM, the mean over slices, and PSNR in dB of a volume (d, h, w), the data range being the
    greatest value of the truth, as in FL-MRCM's code; NaN for a truth that is black. Raises
    ValueError for another shape than the truth's, or slices smaller than SSIM's window.
    """
    if volume.shape != truth.shape:
        raise ValueError(f"a volume {volume.shape} is not compared with a truth {truth.shape}")
    if min(volume.shape[1:]) < SIDE:
        raise ValueError(f"SSIM's window has {SIDE} pixels a side, slices {volume.shape[1:]}")
    top = float(truth.max())
    if not top > 0:
        return math.nan, math.nan
    slices = [
        structural_similarity(true, made, data_range=top, win_size=SIDE)
        for made, true in zip(volume, truth, strict=True)
    ]
    return float(np.mean(slices)), float(peak_signal_noise_ratio(truth, volume, data_range=top))


class VolumeQuality(RunningMetrics):
    """`ssim` and `psnr`, means over volumes. A group is a volume, whose slices follow one another;
    without groups each sample is one. What it keeps is the volume that is being fed.
    """

    def __init__(self) -> None:
        self._slices: list[tuple[np.ndarray, np.ndarray]] = []
        self._group: int | None = None
        self._done: set[int] = set()
        self._found: list[tuple[float, float]] = []

    def update(self, outputs: Tensor, targets: Tensor, groups: Tensor | None = None) -> None:
        """Take in slices (n, 1, h, w), their truth and volumes (n,). Raises ValueError for other
        channels, and for a volume whose slices do not follow one another.
        """
        if outputs.shape[1] != 1 or outputs.shape != targets.shape:
            raise ValueError(
                f"slices have one channel and the sides of their truth, not {tuple(outputs.shape)}"
                f" and {tuple(targets.shape)}"
            )
        made, truth = (x[:, 0].detach().float().cpu().numpy() for x in (outputs, targets))
        names = [None] * len(made) if groups is None else groups.tolist()
        for name, one, true in zip(names, made, truth, strict=True):
            if name is None or name != self._group:
                self._close()
                if name in self._done:
                    raise ValueError(f"the slices of volume {name} do not follow one another")
                self._group = name
            self._slices.append((one, true))

    def _close(self) -> None:
        if self._slices:
            volume, truth = (np.stack(part) for part in zip(*self._slices, strict=True))
            self._found.append(volume_quality(volume, truth))
        if self._group is not None:
            self._done.add(self._group)
        self._slices, self._group = [], None

    def compute(self) -> dict[str, float]:
        """Means over volumes that are not black, and counts. Raises ValueError if there is none."""
        self._close()
        found = torch.tensor(self._found, dtype=torch.float64).reshape(-1, 2)
        defined = found[~found.isnan().any(dim=1)]
        if not len(defined):
            raise ValueError(
                "SSIM and PSNR need a volume that is not black everywhere and of which numbers were"
                " made; where training diverged there is none"
            )
        ssim, psnr = defined.mean(dim=0).tolist()
        both = found.sum(dim=1)  # a volume without one of them is left out of both
        return {"ssim": ssim, "psnr": psnr, **counts("ssim", both), **counts("psnr", both)}
