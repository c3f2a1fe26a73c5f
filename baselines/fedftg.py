"""FedFTG: fine-tuning global model via data-free knowledge distillation for non-IID federated
learning (Zhang et al., CVPR 2022).

FedAvg, in which a generator at the server looks for images of given labels where the average and
the clients' models differ. The average is fine-tuned to agree with them there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from fedtables.baselines.fedgen import diversity_loss
from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.shared import datafree
from fedtables.federation.shared.averaging import class_count_weights
from fedtables.federation.tasks.base import check_single_label
from fedtables.methods.fedavg import FedAvg, Round, State
from fedtables.results.numbers import Count, Positive


def drawn_labels(counts: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Labels (n,), frequent as in counts (clients, classes) (Eq. 9), of numbers (n,) in [0, 1)."""
    shares = counts.sum(dim=0).long().cumsum(dim=0)
    return (uniform[:, None] >= shares / shares[-1]).sum(dim=1)


def discrepancy(student: torch.Tensor, teachers: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    """L_md (): mean of sum_k alpha_k^y KL(p_k || p_S) (Eq. 4), of logits (n, classes), logits
    (clients, n, classes) and shares alpha (clients, n).
    """
    apart = torch.stack([datafree.divergence(student, teacher) for teacher in teachers])
    return (alpha * apart).sum(dim=0).mean()


def fidelity_loss(
    teachers: torch.Tensor, labels: torch.Tensor, alpha: torch.Tensor
) -> torch.Tensor:
    """L_cls (): mean of sum_k alpha_k^y CE(z_k, y) (Eq. 5), of the same and labels (n,)."""
    errors = [nn.functional.cross_entropy(logits, labels, reduction="none") for logits in teachers]
    return (alpha * torch.stack(errors)).sum(dim=0).mean()


@dataclass(frozen=True)
class FedFTG(FedAvg):
    """Algorithm 1. The released code has a generator's step per client, and L1 there for KL."""

    title = "FedFTG"
    sends = frozenset({"parameters", "labels"})
    quick: ClassVar[Mapping[str, Any]] = {**FedAvg.quick, "iterations": 5, "width": 16}

    iterations: Count = 10
    """I, iterations in a round (paper)."""
    student_steps: Count = 5
    """I_d, steps of the average in an iteration, after one of the generator (paper)."""
    generated: Count = 50
    """Images in a step (paper)."""
    generator_lr: Positive = 0.01
    """Learning rate of Adam for the generator (paper)."""
    student_lr: Positive = 0.1
    """Learning rate of SGD for the average (paper)."""
    student_weight_decay: float = 1e-3
    """Weight decay of that SGD (paper)."""
    decay: float = 0.998
    """Factor of both rates from round to round (paper)."""
    fidelity: float = 1.0
    """lambda_cls, the weight of L_cls (paper)."""
    diversity: float = 1.0
    """lambda_dis, the weight of L_dis (paper)."""
    latent: Count = 100
    """Dimension of z, which is standard normal (paper, CIFAR-10)."""
    width: Count = 64
    """Channels of the generator's last layer but one (assumed)."""

    def server_state(self, federation: Federation, model: nn.Module) -> dict[str, Any]:
        check_single_label(federation.task)
        inputs = self.latent + federation.task.outputs  # z, and the label as zeros and a one
        generator = datafree.image_generator(federation, inputs, self.width)
        optimizer = torch.optim.Adam(generator.parameters(), self.generator_lr)
        return {"generator": generator, "optimizer": optimizer, "counts": federation.label_counts()}

    def aggregate(self, this: Round, states: Iterator[State]) -> None:
        networks, outputs = this.federation.networks, this.federation.task.outputs
        teachers = list[nn.Module]()

        def received() -> Iterator[State]:
            for state in states:
                sent = Checkpoint(networks.server, outputs, state, "client", "")
                teachers.append(networks.module(sent).requires_grad_(False))
                yield state

        super().aggregate(this, received())
        self.fine_tune(this, teachers)

    def fine_tune(self, this: Round, teachers: list[nn.Module]) -> None:
        """The generator goes up L_md of the average, which goes down it, in turn."""
        federation, model, rate = this.federation, this.model, self.decay ** (this.number - 1)
        generator, optimizer = this.server["generator"], this.server["optimizer"]
        optimizer.param_groups[0]["lr"] = rate * self.generator_lr
        lr, weight_decay = rate * self.student_lr, self.student_weight_decay
        descent = torch.optim.SGD(model.parameters(), lr, weight_decay=weight_decay)
        counts = this.server["counts"][[client.index for client in this.clients]]
        shares = class_count_weights(counts)
        stream = federation.streams.shuffling("fedftg", this.number)
        for _ in federation.steps(self.iterations, name=f"{len(teachers)} teachers"):
            labels = drawn_labels(counts, stream.uniform(self.generated))
            z, alpha = stream.normal(self.generated, self.latent), shares[:, labels]
            of_class = labels[:, None] == torch.arange(counts.shape[1], device=z.device)
            inputs = torch.cat([z, of_class.to(z)], dim=1)
            with datafree.frozen(model):
                images = federation.forward(generator.train(), inputs)
                known = datafree.answers(federation, teachers, seen := federation.normalise(images))
                loss = -discrepancy(federation.forward(model, seen), known, alpha)
                loss += self.fidelity * fidelity_loss(known, labels, alpha)
                loss += self.diversity * diversity_loss(z, images.flatten(1))
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                seen = federation.normalise(federation.forward(generator.eval(), inputs))
                known = datafree.answers(federation, teachers, seen)
            model.train()
            for _ in range(self.student_steps):
                descent.zero_grad(set_to_none=True)
                discrepancy(federation.forward(model, seen), known, alpha).backward()
                descent.step()
        federation.networks.check_finite(model, generator)
