"""Distillation without data at a server: a generator makes images for the networks that clients
have uploaded.

What DENSE (Zhang et al. 2022), Co-Boosting (Dai et al. 2024) and FedFTG (Zhang et al. 2022) share.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from fedtables.federation.federation import Federation
from fedtables.federation.tasks.base import check_single_label
from fedtables.federation.training.loops import forward_pass
from fedtables.models.generative import Generator
from fedtables.results.numbers import Count, Positive


def uploaded_networks(federation: Federation) -> list[nn.Module]:
    """The clients' own networks, trained and uploaded once, and frozen; networks may differ.

    Clients without samples send nothing. Raises ValueError for a task without one class per image,
    and where no client holds samples.
    """
    check_single_label(federation.task)
    trained = federation.local_models()
    uploads = [federation.upload(c, trained[c.index]) for c in federation.clients if c.size]
    if not uploads:
        raise ValueError("no client holds samples, so the server gets no network to learn from")
    return [federation.networks.module(one).requires_grad_(False) for one in uploads]


def answers(
    federation: Federation,
    networks: Sequence[nn.Module],
    inputs: torch.Tensor,
    *,
    measured: bool = False,
) -> torch.Tensor:
    """Logits (networks, n, classes) of inputs (n, c, h, w). If `measured`, passes that call the
    hooks of `measured_statistics`, which compiled code would not.
    """
    execution = federation.networks.execution
    eager = forward_pass(execution, federation.networks.device, full_batch=False)
    one = eager if measured and execution.compiled else federation.forward
    return torch.stack([one(network, inputs) for network in networks])


def divergence(
    student: torch.Tensor, teacher: torch.Tensor, temperature: float = 1.0
) -> torch.Tensor:
    """T^2 KL(teacher || student) per sample, (n,), of logits (n, classes) over T."""
    log_p = (teacher / temperature).log_softmax(dim=1)
    log_q = (student / temperature).log_softmax(dim=1)
    return temperature**2 * F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(dim=1)


def image_generator(
    federation: Federation, inputs: int, width: int, *names: object, small: bool = False
) -> Generator:
    """A generator from `inputs` numbers to images in [0, 1] of the federation's size, its weights
    from the stream `names`; `small` ones as DCGAN draws them (Radford et al. 2016).
    """
    channels, size, _ = federation.networks.image_shape

    def build() -> Generator:
        generator = Generator(inputs, size, channels, width)
        return generator.apply(_draw_small) if small else generator

    return federation.networks.new_module(build, "generator", *names)


def _draw_small(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Conv2d | nn.BatchNorm2d):
        nn.init.normal_(module.weight, float(isinstance(module, nn.BatchNorm2d)), 0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


@contextlib.contextmanager
def frozen(network: nn.Module) -> Iterator[None]:
    """Inside, `network` is in evaluation mode, and its weights get no gradients."""
    was_training = network.training
    learning = [weight for weight in network.parameters() if weight.requires_grad]
    network.eval().requires_grad_(False)
    try:
        yield
    finally:
        network.train(was_training)
        for weight in learning:
            weight.requires_grad_(True)


def statistics_distance(maps: torch.Tensor, layer: nn.BatchNorm2d) -> torch.Tensor:
    """|mu(x) - mu_kl|_2 + |sigma^2(x) - sigma^2_kl|_2 () of a layer's input maps (n, c, h, w), a
    summand of L_BN (DENSE, Eq. 3); variances are biased (released code).
    """
    assert layer.running_mean is not None
    assert layer.running_var is not None
    mean, variance = maps.mean(dim=(0, 2, 3)), maps.var(dim=(0, 2, 3), unbiased=False)
    return (mean - layer.running_mean).norm() + (variance - layer.running_var).norm()


@contextlib.contextmanager
def measured_statistics(networks: Sequence[nn.Module]) -> Iterator[list[torch.Tensor]]:
    """Inside, each pass of the networks adds the `statistics_distance` of every BatchNorm layer to
    the list.
    """
    distances: list[torch.Tensor] = []

    def measure(layer: nn.BatchNorm2d, inputs: tuple[torch.Tensor], _: torch.Tensor) -> None:
        distances.append(statistics_distance(inputs[0].float(), layer))

    layers = [m for network in networks for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
    hooks = [m.register_forward_hook(measure) for m in layers if m.track_running_stats]
    try:
        yield distances
    finally:
        for hook in hooks:
            hook.remove()


class Pool:
    """What a server has made so far: tensors by name, of as many rows. A snapshot keeps them."""

    def __init__(self, device: torch.device):
        self._device = device
        self._kept: dict[str, torch.Tensor] = {}

    def add(self, **rows: torch.Tensor) -> None:
        """Put rows (n, ...) of every name behind those that are there."""
        self._kept = {
            name: torch.cat([self._kept[name], new]) if self._kept else new
            for name, new in rows.items()
        }

    def __getitem__(self, name: str) -> torch.Tensor:
        return self._kept[name]

    def batches(
        self, federation: Federation, name: str, epoch: int, size: int
    ) -> Iterator[torch.Tensor]:
        """Positions (size,) of one pass in random order, from the stream `name` of `epoch`. All
        batches are whole: the pool holds a multiple of `size`.
        """
        if not self._kept:
            return
        rows = len(next(iter(self._kept.values())))
        order = federation.streams.shuffling(name, epoch).shuffled(rows)
        for step in federation.steps(rows // size, name=name):
            yield order[step * size : (step + 1) * size]

    def state_dict(self) -> dict[str, torch.Tensor]:
        """All rows, for snapshots."""
        return dict(self._kept)

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        self._kept = {name: rows.to(self._device) for name, rows in state.items()}


QUICK: Mapping[str, float] = {
    "epochs": 24,
    "batch_size": 16,
    "generator_steps": 5,
    "generator_lr": 0.01,
    "width": 16,
    "local.epochs": 20,
}
"""Settings with which a student learns something of it in seconds."""


@dataclass(frozen=True)
class Synthesis:
    """Making a batch of images in every epoch, by a generator that begins anew."""

    epochs: Count = 200
    """Epochs of the server (paper)."""
    batch_size: Count = 128
    """Images that an epoch makes, and in a step of the student (paper)."""
    generator_steps: Count = 30
    """Steps of the generator in an epoch (paper)."""
    generator_lr: Positive = 1e-3
    """Learning rate of Adam for the generator and its latents (paper)."""
    latent: Count = 256
    """Dimension of a latent, which is standard normal (released code)."""
    width: Count = 64
    """Channels of the generator's last layer but one (released code)."""
    lr: Positive = 0.01
    """Learning rate of the student's SGD (paper)."""
    momentum: float = 0.9
    """Momentum of the student's SGD (paper)."""

    def synthesise(
        self,
        federation: Federation,
        loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
        epoch: int,
        clip_norm: float = math.inf,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Images (batch_size, c, h, w) in [0, 1] and labels (batch_size,), drawn from all classes:
        images are those of the step with the least `loss` () of network inputs and labels, which
        generator and latents go down.

        As in the released codes the generator has new, small weights in each epoch, latents are
        trained too, and Adam has betas 0.5 and 0.999. Gradients of the weights are clipped.
        """
        generator = image_generator(federation, self.latent, self.width, epoch, small=True).train()
        weights = list(generator.parameters())
        draws = federation.streams.shuffling("latents and labels", epoch)
        latents = draws.normal(self.batch_size, self.latent).requires_grad_()
        labels = draws.choose(federation.task.outputs, self.batch_size)
        optimizer = torch.optim.Adam([*weights, latents], self.generator_lr, betas=(0.5, 0.999))
        least = torch.full((), math.inf, device=latents.device)
        best = latents.new_zeros(self.batch_size, *federation.networks.image_shape)
        for _ in federation.steps(self.generator_steps, name="generator"):
            images = federation.forward(generator, latents)
            objective = loss(federation.normalise(images), labels)
            is_less = objective.detach() < least
            least = torch.where(is_less, objective.detach(), least)
            best = torch.where(is_less, images.detach(), best)
            optimizer.zero_grad(set_to_none=True)
            objective.backward()
            if clip_norm < math.inf:
                nn.utils.clip_grad_norm_(weights, clip_norm)
            optimizer.step()
        federation.networks.check_finite(generator)
        return best, labels
