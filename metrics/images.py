"""How near images come to the true ones: PSNR, SSIM, and which of a batch is which."""

from __future__ import annotations

import torch
from scipy.optimize import linear_sum_assignment
from skimage.metrics import structural_similarity
from torch import Tensor

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
    """Structural similarity of each image (n, c, h, w) in [0, 1], of shape (n,), at most 1: Wang et
    al. 2004, in a Gaussian window (`WINDOW`, `SIGMA`) around each pixel for which it lies inside
    the image, averaged over these and over channels, by scikit-image. Raises ValueError for images
    of another shape or type than the truth, or smaller than the window.
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
