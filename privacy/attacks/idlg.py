"""Improved Deep Leakage from Gradients (Zhao, Mopuri and Bilen 2020): the label first, read off the
gradient's sign.

The cross entropy's gradient by a score is its probability, less one for the true class: negative
there and nowhere else. The bias of the last layer has just this gradient. With the label known,
L-BFGS moves the image alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privacy.attacks.matching import ReconstructedImages, best_of, checked, match_shared, noise
from privacy.attacks.threat import ThreatModel


def leaked_label(shared: Sequence[Tensor], classes: int, threat: ThreatModel) -> int:
    """The label of the one image behind `shared`, a tensor by each parameter, of a model that ends
    in a linear layer.

    By the sign of its bias's gradient. Without a bias, by the sign of its weights' sum per class,
    as in the released code; this asks that the layer's inputs are none negative, as they are after
    ReLU and sigmoid.

    Raises ValueError for several images or local steps, another last layer, and where not one class
    alone has the sign.
    """
    if threat.images != 1 or threat.local_steps != 1:
        raise ValueError(
            f"iDLG reads the label off the gradient of one image and one step, not {threat}"
        )
    last = shared[-1]
    if last.ndim not in (1, 2) or len(last) != classes:
        raise ValueError(
            f"iDLG needs a model that ends in a linear layer of {classes} classes, not in"
            f" {tuple(last.shape)}"
        )
    slope = last if last.ndim == 1 else last.sum(dim=1)
    if threat.shares == "update":
        slope = -slope
    if int((slope < 0).sum()) != 1:
        raise ValueError(
            "iDLG needs one class alone with a negative gradient: is this of one image, with a"
            " label that is certain?"
        )
    return int(slope.argmin())


def improved_deep_leakage(
    model: nn.Module,
    shared: Sequence[Tensor],
    image_shape: tuple[int, int, int],
    classes: int,
    threat: ThreatModel,
    *,
    generator: torch.Generator,
    iterations: int = 300,
    restarts: int = 1,
    line_search: bool = True,
) -> ReconstructedImages:
    """Attack `shared`, what a client sends under `threat`, which must be of one image and one step;
    else as `deep_leakage`.

    `iterations` are those of the released code; L-BFGS is `deep_leakage`'s.

    Raises ValueError as `leaked_label` and `deep_leakage` do, FloatingPointError if no start had a
    finite distance.
    """
    shared = checked(model, shared, image_shape, classes, iterations, restarts)
    label = torch.tensor([leaked_label(shared, classes, threat)], device=shared[0].device)
    labels = F.one_hot(label, classes).to(shared[0])

    def start() -> ReconstructedImages:
        images = noise((1, *image_shape), shared[0], generator)
        return match_shared(
            model, shared, threat, images, lambda: labels, (images,), iterations, line_search
        )

    return best_of(start, restarts)
