"""What a client shares that an attacker sees: one function, for the client's own images and for the
attacker's dummies, so that no factor, step or mode of batch normalisation can differ between them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

from fedtables.results.names import check_known

Shares = Literal["gradient", "update"]
BatchNorm = Literal["train", "eval"]


@dataclass(frozen=True)
class ThreatModel:
    """What the attacker knows of how a client made what it shares; of labels each attack says what
    it takes. Raises ValueError for settings that contradict each other.
    """

    shares: Shares = "gradient"
    """`gradient` of the mean cross entropy (federated SGD), or `update`: the change of the weights
    by local training (federated averaging)."""
    batch_size: int = 1
    """The client's images, all of which every local step sees."""
    local_steps: int = 1
    """Steps of plain SGD behind an update; 1 for a gradient."""
    local_lr: float = 1e-4
    """Learning rate of these steps. Default of Inverting Gradients' released code."""
    batch_norm: BatchNorm = "eval"
    """Batch normalisation by running statistics (`eval`), which stay as they are, or by the batch's
    own (`train`). All else, such as dropout, is always in evaluation mode. `eval` in Inverting
    Gradients' released code."""

    def __post_init__(self) -> None:
        check_known(self, shares=get_args(Shares), batch_norm=get_args(BatchNorm))
        if self.batch_size < 1 or self.local_steps < 1 or not self.local_lr > 0:
            raise ValueError(
                f"batch_size and local_steps must be at least 1 and local_lr positive: {self}"
            )
        if self.shares == "gradient" and self.local_steps > 1:
            raise ValueError(
                f"a shared gradient is of one step; several steps make an update: {self}"
            )


@contextmanager
def _evaluating(model: nn.Module, batch_norm: BatchNorm) -> Iterator[None]:
    """`model` in evaluation mode, with batch normalisation's own mode; afterwards as it was."""
    modes = {module: module.training for module in model.modules()}
    try:
        for module in modes:
            module.training = batch_norm == "train" and isinstance(module, _BatchNorm)
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def share(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    threat: ThreatModel,
    create_graph: bool = False,
) -> tuple[Tensor, ...]:
    """What a client sends that holds `images` (n, c, h, w), n being the threat model's batch size:
    a tensor per parameter, in their order. `labels` are classes (n,) or probabilities (n, classes).
    A gradient is that of the mean cross entropy; an update is the weights after SGD minus those
    before. Batch normalisation's buffers are not shared. With `create_graph` the result can be
    differentiated by images and labels. The model stays as it is. Raises ValueError for another
    number of images or labels.
    """
    if len(images) != threat.batch_size or len(labels) != threat.batch_size:
        raise ValueError(
            f"{len(images)} images and {len(labels)} labels, where the threat model has"
            f" {threat.batch_size} of each"
        )
    start = {name: weight.detach().requires_grad_() for name, weight in model.named_parameters()}
    buffers = {name: buffer.detach().clone() for name, buffer in model.named_buffers()}

    def gradient(weights: dict[str, Tensor]) -> tuple[Tensor, ...]:
        # By slices a gradient is contiguous, as L-BFGS needs it, where channels come last too.
        scores = functional_call(model, {**weights, **buffers}, (images[:],))
        loss = F.cross_entropy(scores, labels[:])
        return torch.autograd.grad(
            loss, tuple(weights.values()), create_graph=create_graph, materialize_grads=True
        )

    with _evaluating(model, threat.batch_norm):
        gradients = gradient(start)
        if threat.shares == "gradient":
            return gradients
        change = [-threat.local_lr * g for g in gradients]
        for _ in range(1, threat.local_steps):
            weights = {
                name: weight + moved
                for (name, weight), moved in zip(start.items(), change, strict=True)
            }
            change = [
                moved - threat.local_lr * g
                for moved, g in zip(change, gradient(weights), strict=True)
            ]
    return tuple(change if create_graph else (moved.detach() for moved in change))


def squared_norm(shared: Sequence[Tensor]) -> Tensor:
    """Sum of squares over all tensors, a scalar."""
    return torch.stack([tensor.square().sum() for tensor in shared]).sum()
