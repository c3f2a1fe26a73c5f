"""DP-SGD for a client's training (Abadi et al. 2016), through Opacus."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch import nn

from fedtables.federation.costs import active_meter
from fedtables.federation.data import TrainingSet, fetch
from fedtables.federation.samples import see
from fedtables.federation.training.inputs import Inputs
from fedtables.federation.training.plan import Batch, DivergedError, Training
from fedtables.privacy.releases import GaussianSteps


class MixingLayerError(Exception):
    """A layer of a network mixes the samples of a batch: none has a gradient of its own."""


@dataclass(frozen=True)
class PrivateSteps:
    """What DP-SGD adds to a training plan."""

    noise_multiplier: float
    """Standard deviation of the noise on a step's summed gradient, over `clip_norm`."""
    sample_rate: float
    """Probability of each sample to take part in a step (Poisson sampling)."""
    steps: int
    """Steps to take; fewer than the plan's where the budget ends before it."""
    clip_norm: float

    @property
    def steps_per_epoch(self) -> int:
        """Steps that see each sample once on average."""
        return math.ceil(1 / self.sample_rate)

    @property
    def release(self) -> GaussianSteps:
        """What the accountant is told."""
        return GaussianSteps(self.noise_multiplier, self.sample_rate, self.steps)


def check_separable(model: nn.Module, network: str) -> None:
    """Raise MixingLayerError if `model` has BatchNorm."""
    if any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules()):
        raise MixingLayerError(
            f"{network} has BatchNorm, which mixes the samples of a batch, so DP-SGD cannot clip"
            f" them one by one, and there is no {network}-gn with GroupNorm in models/networks;"
            " name another network, or add that one"
        )


def train_privately(
    model: nn.Module,
    samples: TrainingSet,
    training: Training,
    private: PrivateSteps,
    inputs: Inputs,
    noise: torch.Generator | None,
    after_epoch: Callable[[int], None] | None = None,
) -> None:
    """Train `model` in place on samples without weights, as they are stored, by `private.steps`
    steps of the plan's optimiser.

    A step draws every sample with the sample rate, clips the gradient of each sample's loss, sums,
    adds Gaussian noise, which `noise` draws, and divides by the expected batch size. An epoch is as
    many steps as see each sample once on average; the last may be short. The gradient of a penalty
    is added as it is, so it is shown an empty batch.
    """
    plan, penalty, images = training.plan, training.penalty, samples.images
    per_epoch = private.steps_per_epoch
    meter = active_meter()
    if meter is not None:
        passes = private.steps * private.sample_rate
        meter.book_training(model, images, passes, plan.batch_size)
        meter.book_looks(-(-private.steps // per_epoch), after_epoch)
        return
    if inputs.generator is None or noise is None:
        raise ValueError(
            "private training needs a generator of the shuffling axis and one of the noise axis"
        )
    inner = plan.make_optimizer(model.parameters(), fused=False)
    schedule = plan.make_schedule(inner)
    optimizer = DPOptimizer(
        inner,
        noise_multiplier=private.noise_multiplier,
        max_grad_norm=private.clip_norm,
        expected_batch_size=max(1, round(private.sample_rate * len(images))),
        generator=noise,
    )
    model.train()
    wrapped = GradSampleModule(model, loss_reduction="sum")
    parameters = [p for p in model.parameters() if p.requires_grad]
    empty = torch.empty(0, device=inputs.generator.device)
    nothing = Batch(empty, empty, empty)
    try:
        for step in range(1, private.steps + 1):
            draws = torch.rand(len(images), generator=inputs.generator, device=empty.device)
            batch = (draws < private.sample_rate).nonzero().squeeze(1)
            see(len(batch))
            optimizer.zero_grad(set_to_none=True)
            if len(batch):
                drawn = fetch(images, batch), fetch(samples.targets, batch)
                seen, wanted = inputs.pairs(*drawn)
                with warnings.catch_warnings():  # its hooks fire without a gradient of the images
                    warnings.filterwarnings("ignore", message="Full backward hook is firing")
                    training.loss(wrapped(seen), wanted).sum().backward()
            else:  # nobody was drawn: the step is noise alone, as it has to be
                for parameter in parameters:
                    parameter.grad_sample = parameter.new_zeros((0, *parameter.shape))  # type: ignore[attr-defined]
            optimizer.pre_step()
            if penalty is not None:
                further = torch.autograd.grad(penalty(model, nothing), parameters)
                for parameter, gradient in zip(parameters, further, strict=True):
                    assert parameter.grad is not None
                    parameter.grad = parameter.grad + gradient
            inner.step()
            if step % per_epoch == 0 or step == private.steps:
                if not all(bool(p.isfinite().all()) for p in parameters):
                    raise DivergedError(
                        f"a weight is no longer a number after step {step} of DP-SGD; lower lr (now"
                        f" {plan.lr:g})"
                    )
                schedule.step()
                if after_epoch is not None:
                    after_epoch(-(-step // per_epoch))
                    model.train()
    finally:
        wrapped.remove_hooks()
        for parameter in parameters:  # Opacus hangs its sums on the parameters
            for name in ("grad_sample", "summed_grad"):
                if hasattr(parameter, name):
                    delattr(parameter, name)
