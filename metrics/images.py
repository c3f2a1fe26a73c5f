"""How near images and volumes come to the true ones: PSNR, SSIM, and which of a batch is which."""

import itertools
import math

import torch
from scipy.optimize import linear_sum_assignment
from skimage.metrics import structural_similarity
from torch import Tensor

from fedtables.metrics.running import RunningMetrics, counts

SIGMA = 1.5
"""Standard deviation of SSIM's Gaussian window in pixels."""
WINDOW = 11
"""Its side in pixels; images must be no smaller, for smaller windows make other numbers. Both: Wang
et al., "Image Quality Assessment: From Error Visibility to Structural Similarity" (2004)."""


def psnr(images: Tensor, truth: Tensor) -> Tensor:
    """Peak signal-to-noise ratio in dB of each image (n, c, h, w) in [0, 1], of shape (n,): 10
    log10(1 / mean square error over channels and pixels). Images that equal the truth have
    infinity. Raises ValueError for images of another shape or type than the truth.
    """
    _check(images, truth)
    return 10 * torch.log10(1 / (images - truth).square().mean(dim=(1, 2, 3)))


def ssim(images: Tensor, truth: Tensor) -> Tensor:
    """Structural similarity of each image, by scikit-image (Wang et al. 2004, Gaussian window).

    Args:
        images: (n, c, h, w) in [0, 1].
        truth: of the same shape and type.

    Returns:
        (n,), at most 1.

    Raises:
        ValueError: shapes or types differ, or images are smaller than the window.
    """
    _check(images, truth)
    if min(images.shape[2:]) < WINDOW:
        raise ValueError(
            f"SSIM's window has {WINDOW} x {WINDOW} pixels, more than images"
            f" {tuple(images.shape[2:])} have; use PSNR"
        )
    pairs = zip(images.detach().cpu().numpy(), truth.detach().cpu().numpy(), strict=True)
    how = {"sigma": SIGMA, "gaussian_weights": True, "use_sample_covariance": False}
    values = [structural_similarity(a, b, channel_axis=0, data_range=1.0, **how) for a, b in pairs]
    return images.new_tensor(values)


def match(images: Tensor, truth: Tensor) -> Tensor:
    """Rows (n,) such that `images[rows]` lies nearest to `truth`: the assignment, one to one, of
    the least sum of squared errors. Raises ValueError for images of another shape or type.
    """
    _check(images, truth)
    errors = torch.cdist(
        truth.flatten(1), images.flatten(1), compute_mode="donot_use_mm_for_euclid_dist"
    ).square()
    return torch.from_numpy(linear_sum_assignment(errors.cpu().numpy())[1]).to(images.device)


def _check(images: Tensor, truth: Tensor) -> None:
    floats = images.is_floating_point() and images.dtype == truth.dtype  # bytes wrap around
    if images.ndim != 4 or images.shape != truth.shape or 0 in images.shape or not floats:
        raise ValueError(
            "expected images (n, c, h, w) and the truth alike, of one float type, not"
            f" {tuple(images.shape)} of {images.dtype} and {tuple(truth.shape)} of {truth.dtype}"
        )


SIDE = 7
"""Pixels of SSIM's uniform window, as in fastMRI's and FL-MRCM's evaluation (scikit-image's)."""
AT_ONCE = {"cpu": 2, "cuda": 64}
"""Slices that are compared at once. On a CPU more leave a core's cache."""


def similarity(slices: Tensor, truth: Tensor, top: float) -> Tensor:
    """SSIM of each slice (n, h, w), (n,) in float64 on its device, for values up to `top`: that of
    scikit-image with its uniform window and variances of samples, which takes slice by slice.
    """
    x, y = slices.double(), truth.double()

    def mean(maps: Tensor) -> Tensor:
        """Of each window."""
        columns = maps.unfold(-2, SIDE, 1).sum(dim=-1)
        return columns.unfold(-1, SIDE, 1).sum(dim=-1) / SIDE**2

    sample, (c1, c2) = SIDE**2 / (SIDE**2 - 1), ((0.01 * top) ** 2, (0.03 * top) ** 2)
    mean_x, mean_y = mean(x), mean(y)
    variances = sample * (mean(x * x) - mean_x**2 + mean(y * y) - mean_y**2)
    covariance = sample * (mean(x * y) - mean_x * mean_y)
    brightness = (2 * mean_x * mean_y + c1) / (mean_x**2 + mean_y**2 + c1)
    return (brightness * (2 * covariance + c2) / (variances + c2)).mean(dim=(1, 2))


def volume_quality(volume: Tensor, truth: Tensor) -> tuple[float, float]:
    """SSIM, the mean over slices, and PSNR in dB of a volume (d, h, w), the data range being the
    greatest value of the truth, as in FL-MRCM's code; NaN for a truth that is black. Raises
    ValueError for another shape than the truth's, or slices smaller than SSIM's window.
    """
    if volume.shape != truth.shape:
        shapes = f"{tuple(volume.shape)} is not compared with a truth {tuple(truth.shape)}"
        raise ValueError(f"a volume {shapes}")
    if min(volume.shape[1:]) < SIDE:
        raise ValueError(
            f"SSIM's window has {SIDE} pixels a side, slices {tuple(volume.shape[1:])}"
        )
    top = float(truth.max())
    if not top > 0:
        return math.nan, math.nan
    size = AT_ONCE["cpu" if volume.device.type == "cpu" else "cuda"]
    pairs = zip(volume.split(size), truth.split(size), strict=True)
    ssim = torch.cat([similarity(made, true, top) for made, true in pairs]).mean()
    error = (volume.double() - truth.double()).square().mean()
    return float(ssim), float(10 * torch.log10(top**2 / error))


class VolumeQuality(RunningMetrics):
    """`ssim` and `psnr`, means over volumes. A group is a volume, whose slices follow one another;
    without groups each sample is one. What it keeps is the volume that is being fed.
    """

    def __init__(self) -> None:
        self._slices: list[tuple[Tensor, Tensor]] = []
        self._volume = -1
        self._numbers = itertools.count()
        self._found: dict[int, tuple[float, float]] = {}

    def update(self, outputs: Tensor, targets: Tensor, groups: Tensor | None = None) -> None:
        """Take in slices (n, 1, h, w), their truth and volumes (n,). Raises ValueError for other
        channels, and for a volume whose slices do not follow one another.
        """
        if outputs.shape[1] != 1 or outputs.shape != targets.shape:
            raise ValueError(
                f"slices have one channel and the sides of their truth, not {tuple(outputs.shape)}"
                f" and {tuple(targets.shape)}"
            )
        made, truth = (x[:, 0].detach().float() for x in (outputs, targets))
        names = itertools.islice(self._numbers, len(made)) if groups is None else groups.tolist()
        for name, one, true in zip(names, made, truth, strict=True):
            if name != self._volume:
                self._close()
                if name in self._found:
                    raise ValueError(f"the slices of volume {name} do not follow one another")
                self._volume = name
            self._slices.append((one, true))

    def _close(self) -> None:
        if self._slices:
            volume, truth = (torch.stack(part) for part in zip(*self._slices, strict=True))
            self._found[self._volume] = volume_quality(volume, truth)
        self._slices, self._volume = [], -1

    def compute(self) -> dict[str, float]:
        """Means over volumes that are not black, and counts. Raises ValueError if there is none."""
        self._close()
        found = torch.tensor([*self._found.values()], dtype=torch.float64).reshape(-1, 2)
        both = found.sum(dim=1)  # a volume without one of them is left out of both
        defined = found[~both.isnan()]
        if not len(defined):
            raise ValueError(
                "SSIM and PSNR need a volume that is not black everywhere and of which numbers were"
                " made; where training diverged there is none"
            )
        ssim, psnr = defined.mean(dim=0).tolist()
        return {"ssim": ssim, "psnr": psnr, **counts("ssim", both), **counts("psnr", both)}
