"""Attacks on gradients and updates, by name: Deep Leakage from Gradients (`dlg`), its improved form
(`idlg`) and Inverting Gradients (`inverting`).

DLG (Zhu, Liu and Han 2019), Algorithm 1: L-BFGS moves dummy images and dummy labels until their
gradient is the shared one; an update of several local steps is unrolled. L-BFGS's settings are
those of the released code, except for tolerances and the line search: that code has none, and
reaches less. Of 40 starts on ten MNIST digits 40 succeeded with it, 25 without.

iDLG (Zhao, Mopuri and Bilen 2020) reads the label first. The cross entropy's gradient by a score is
its probability, less one for the true class: negative there and nowhere else. The bias of the last
layer has just this gradient. With the label known, L-BFGS moves the image alone.

Inverting Gradients (Geiping, Bauermeister, Dröge and Moeller 2020): Adam, on the sign of its
gradient, minimises one minus the cosine plus the total variation, within the range of images. It
needs no smooth network: it is the attack for ReLU. It takes labels as known, as the paper does.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedtables.privacy.attacks.matching import (
    Message,
    ReconstructedImages,
    Search,
    best_of,
    descend,
    noise,
)
from fedtables.privacy.attacks.threat import ThreatModel, share, squared_norm
from fedtables.results.names import check_known

Kind = Literal["dlg", "idlg", "inverting"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ITERATIONS = {"dlg": 300, "idlg": 300, "inverting": 4800}
"""By default: those of each attack's released code."""


DECAY_AT = (3 / 8, 5 / 8, 7 / 8)
"""Shares of Inverting Gradients' iterations at which the learning rate falls by ten."""


@dataclass(frozen=True)
class Attack:
    """An attack, what its victim shares, and the work that is put into it."""

    kind: Kind = "dlg"
    """`dlg`, `idlg` or `inverting` (Inverting Gradients)."""
    threat: ThreatModel = field(default_factory=ThreatModel)
    """What the client shares, and how it came about."""
    iterations: int = 300
    """Of the optimiser. DLG's released code: 300 of L-BFGS; Inverting Gradients': 4,800 of Adam."""
    restarts: int = 1
    """Starts at most; the next one follows only where none succeeded."""

    def __post_init__(self) -> None:
        check_known(self, kind=KINDS)
        if self.iterations < 1 or self.restarts < 1:
            raise ValueError(f"iterations and restarts must be at least 1: {self}")

    def messages(self, images: int) -> range:
        """The first image of every message. Raises ValueError where messages are not whole."""
        if images < 1 or images % self.threat.batch_size:
            raise ValueError(f"{images} images are not whole messages of {self.threat.batch_size}")
        return range(0, images, self.threat.batch_size)


def double(model: nn.Module) -> nn.Module:
    """A copy of `model` in float64; in float32 on MPS, which has no double precision."""
    duplicate = copy.deepcopy(model)
    return duplicate if next(duplicate.parameters()).device.type == "mps" else duplicate.double()


def reconstruct(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    classes: int,
    attack: Attack,
    bounds: tuple[Tensor, Tensor],
    generator: torch.Generator,
) -> ReconstructedImages:
    """Attack what a client shares of `inputs` (n, c, h, w), as `model` takes them, and `targets`
    (n,). The client computes in the precision of `model`, the attacker in float64. DLG finds the
    labels, iDLG reads them off; for Inverting Gradients they are read off where that can be done,
    else known. `bounds` (c, 1, 1) are black and white. Raises ValueError for what an attack cannot
    do, FloatingPointError if no start had a finite distance.
    """
    threat, attacked = attack.threat, double(model)
    like = next(attacked.parameters())
    shared = [tensor.to(like) for tensor in share(model, inputs, targets, threat)]
    message = Message(attacked, shared, tuple(inputs.shape[1:]), classes, threat)
    search = Search(generator, attack.iterations, attack.restarts)
    if attack.kind == "dlg":
        return deep_leakage(message, search)
    single = threat.batch_size == threat.local_steps == 1
    labels = leaked_label(message) if attack.kind == "idlg" or single else targets
    if attack.kind == "idlg":
        return deep_leakage(message, search, labels)
    return invert_gradients(message, search, labels, bounds)


def squared_distance(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    """Squared Euclidean distance over all tensors, a scalar."""
    return torch.stack(
        [F.mse_loss(a, b, reduction="sum") for a, b in zip(first, second, strict=True)]
    ).sum()


def leaked_label(message: Message) -> Tensor:
    """The label (1,) of the one image behind a message of a model that ends in a linear layer, by
    the sign of its bias's gradient. Without a bias it is by its weights' sum per class, as in the
    released code, where the layer's inputs are none negative. Raises ValueError for several images
    or local steps, another last layer, and where not one class alone has the sign.
    """
    threat, last = message.threat, message.shared[-1]
    if threat.batch_size != 1 or threat.local_steps != 1:
        raise ValueError(
            f"iDLG reads the label off the gradient of one image and one step, not {threat}"
        )
    if last.ndim not in (1, 2) or len(last) != message.classes:
        raise ValueError(
            f"iDLG needs a model that ends in a linear layer of {message.classes} classes, not in"
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
    return slope.argmin(keepdim=True)


def deep_leakage(
    message: Message, search: Search, labels: Tensor | None = None
) -> ReconstructedImages:
    """Find the images behind a message, and their labels (n,) where they are not given. The model
    must be twice differentiable. Raises FloatingPointError if no start had a finite distance.
    """
    shared, threat = message.shared, message.threat
    norm = squared_norm(shared)

    def distance_of(images: Tensor, labels: Tensor) -> Tensor:
        dummy = share(message.model, images, labels, threat, create_graph=True)
        return squared_distance(dummy, shared) / norm

    def start() -> ReconstructedImages:
        images = noise(threat.batch_size, message.image_shape, shared[0], search)
        if labels is not None:
            known = F.one_hot(labels, message.classes).to(images)
            return descend(distance_of, images, lambda: known, (images,), search.iterations)
        logits = noise(threat.batch_size, (message.classes,), shared[0], search)
        return descend(
            distance_of, images, lambda: logits.softmax(dim=1), (images, logits), search.iterations
        )

    return best_of(start, search.restarts)


def cosine_distance(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    """One minus the cosine of all tensors as one vector; not a number if one is zero."""
    product = torch.stack([(a * b).sum() for a, b in zip(first, second, strict=True)]).sum()
    return 1 - product / (squared_norm(first).sqrt() * squared_norm(second).sqrt())


def total_variation(images: Tensor) -> Tensor:
    """Mean absolute difference of pixels beside each other, plus that above each other."""
    across = (images[..., 1:] - images[..., :-1]).abs().mean()
    down = (images[..., 1:, :] - images[..., :-1, :]).abs().mean()
    return across + down


def invert_gradients(
    message: Message,
    search: Search,
    labels: Tensor,
    bounds: tuple[float | Tensor, float | Tensor] = (0.0, 1.0),
    lr: float = 0.1,
    tv: float = 0.1,
) -> ReconstructedImages:
    """Find the images behind a message, whose classes are `labels` (n,). Images are clamped to
    `bounds`, the darkest and brightest pixel, numbers or (c, 1, 1), after each step. `lr` is that
    of the released code's baseline; `tv`, the weight of the total variation, is that of the
    authors' later `breaching`. Of all starts that of the least cosine distance is returned, at its
    last image, as released. Raises FloatingPointError if no start had a finite distance.
    """
    shared, threat = message.shared, message.threat
    low, high = (torch.as_tensor(bound).to(shared[0]) for bound in bounds)

    def distance_of(images: Tensor, create_graph: bool = False) -> Tensor:
        return cosine_distance(share(message.model, images, labels, threat, create_graph), shared)

    def start() -> ReconstructedImages:
        images = noise(threat.batch_size, message.image_shape, shared[0], search).requires_grad_()
        optimiser = torch.optim.Adam([images], lr=lr)
        milestones = [max(1, int(search.iterations * part)) for part in DECAY_AT]
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, milestones, gamma=0.1)
        for _ in range(search.iterations):
            objective = distance_of(images, create_graph=True) + tv * total_variation(images)
            if not objective.isfinite():
                break
            (gradient,) = torch.autograd.grad(objective, images)
            images.grad = gradient.sign()
            optimiser.step()
            schedule.step()
            with torch.no_grad():
                images.clamp_(low, high)
        found = images.detach()
        known = F.one_hot(labels, message.classes).to(found)
        return ReconstructedImages(found, known, float(distance_of(found)))

    return best_of(start, search.restarts)
