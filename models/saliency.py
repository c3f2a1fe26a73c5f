"""Saliency maps: which parts of an image a network's representation, or its decision, depends on.

Networks follow timm's convention: `forward_features` gives a map (n, c, h, w), `forward_head` the outputs.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from models.cut import decode, encode


def input_gradient(model: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """|d r / d x| of the encoder's map r for normalised inputs x (n, c, h, w), in evaluation mode; (n, c, h, w).

    FedSA's Eq. 1 (Xie et al. 2022), by one forward and one backward pass: the gradient of the sum of the map's entries.
    The magnitude is Simonyan et al.'s (2014) definition of a saliency map.
    """
    was_training = model.training
    model.eval()
    inputs = inputs.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(encode(model, inputs).sum(), inputs)
    model.train(was_training)
    return gradient.abs()


def grad_cam(model: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """Grad-CAM of the class with the highest score, at the encoder's map, for normalised inputs; (n, h, w) in [0, 1].

    Selvaraju et al. 2017, Eq. 1 and 2: the map's channels weighted by the mean gradient of the score, rectified; then scaled
    to [0, 1] image by image, and to the inputs' size. A map without positive evidence is 0 everywhere. Where outputs are
    maps (n, classes, h, w) a class's score is its mean over the pixels.
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        features = encode(model, inputs)
    features = features.detach().requires_grad_()
    outputs = decode(model, features)
    scores = outputs if outputs.ndim == 2 else outputs.flatten(2).mean(dim=2)
    (gradient,) = torch.autograd.grad(scores.max(dim=1).values.sum(), features)
    model.train(was_training)
    cam = (gradient.mean(dim=(2, 3), keepdim=True) * features).sum(dim=1, keepdim=True).relu().detach()
    cam = F.interpolate(unit_scaled(cam.flatten(1)).view_as(cam), size=inputs.shape[-2:], mode="bilinear", align_corners=False)
    return cam[:, 0]


def unit_scaled(values: torch.Tensor) -> torch.Tensor:
    """Rows (n, m) scaled to [0, 1] by their own least and greatest values; rows of equal values become 0."""
    least, most = values.amin(dim=-1, keepdim=True), values.amax(dim=-1, keepdim=True)
    return (values - least) / (most - least).clamp_min(torch.finfo(values.dtype).tiny)
