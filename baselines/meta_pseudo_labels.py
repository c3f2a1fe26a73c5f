"""Meta Pseudo Labels (Pham et al., CVPR 2021): a teacher that learns to label from how its student
does on labelled images.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from fedtables.federation.augmentation import RandAugment
from fedtables.federation.data import Checkpoint, fetch
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.seeds import Stream
from fedtables.federation.shared.learner import learn_probe
from fedtables.federation.shared.views import (
    labelled_set,
    strong_view,
    training_steps,
    update_ema,
    weak_view,
)
from fedtables.federation.training.plan import TrainingPlan
from fedtables.results.numbers import Count, Positive, Share


def draw_labels(logits: torch.Tensor, stream: Stream) -> torch.Tensor:
    """Hard labels (n, ...) drawn from softmax(logits) (n, classes, ...), by Gumbel noise."""
    return (logits.detach() - (-stream.uniform(*logits.shape).log()).log()).argmax(dim=1)


def feedback(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """h of Algorithm 1, from the student's labelled loss before its step on pseudo-labels and after
    it: before - after.

    h = eta grad L(theta').grad L_u(theta) where the step is theta' = theta - eta grad L_u(theta);
    to first order about theta', L(theta) = L(theta') + h. So it is positive if the step helped, and
    the teacher, which descends h times its cross-entropy with the drawn labels, then makes them
    likelier. Both released codes (google-research/meta_pseudo_labels and kekmodel/MPL-pytorch) take
    after - before.
    """
    return (before - after).detach()


def consistency_loss(
    weak: torch.Tensor, strong: torch.Tensor, temperature: float, threshold: float
) -> torch.Tensor:
    """UDA's term: cross-entropy of strong views' logits against sharpened probabilities of weak
    views, where confident.

    Both (n, classes, ...); the mean is over all images (or pixels), also those that count nothing.
    """
    probabilities = (weak.detach() / temperature).softmax(dim=1)
    sure = probabilities.amax(dim=1) >= threshold
    return (F.cross_entropy(strong, probabilities, reduction="none") * sure).mean()


def schedule(step: int, steps: int, wait: int, ramp: int) -> float:
    """Factor of a learning rate: 0 for `wait` steps, up to 1 in `ramp`, half a cosine to 0."""
    if step < wait:
        return 0.0
    if step < wait + ramp:
        return (step + 1 - wait) / ramp
    return 0.5 * (1 + math.cos(math.pi * (step - wait - ramp) / (steps - wait - ramp)))


@dataclass(frozen=True)
class MetaPseudoLabels(Method):
    """Algorithm 1 of Pham et al. 2021 with UDA: the student sees pseudo-labels alone, and is
    fine-tuned on labels at the end.

    Nothing leaves a client: the server trains two networks, which start from the same weights, on
    what it holds. The teacher draws hard labels from its probabilities for weak views, the student
    learns them on strong views of the same images, and the teacher is graded on the weak views by
    these labels: `feedback` times its cross-entropy with them. Google's code labels and grades the
    strong views that the student learns, with probabilities for labels; kekmodel's takes the arg
    max, for the student of weak views, and grades that of strong ones. As in both, the feedback is
    a difference of two labelled losses; its sign is the algorithm's (see `feedback`), and Google's
    baseline, the running mean of it, is left out. Defaults are those of kekmodel/MPL-pytorch,
    without its dropout and label smoothing.
    """

    title = "Meta Pseudo Labels"
    quick: ClassVar[Mapping[str, Any]] = {
        "steps": 240,
        "interval": 120,
        "batch_size": 16,
        "mu": 2,
        "lr": 0.1,
        "unlabelled_weight": 1.0,
        "ramp": 10,
        "student_wait": 5,
        "ema_decay": 0.8,
    }

    steps: Count = 300_000
    """Steps of teacher and student."""
    interval: Count = 1_000
    """Steps in a round: between two measurements, and two snapshots."""
    batch_size: Count = 128
    """Labelled images in a step."""
    mu: Count = 7
    """Unlabelled images in a step per labelled one."""
    lr: Positive = 0.05
    """Of SGD with Nesterov momentum, of both networks; a half cosine to 0."""
    momentum: Share = 0.9
    """Of SGD."""
    weight_decay: float = 5e-4
    """Of all parameters (kekmodel's leaves BatchNorm's out)."""
    student_wait: int = 3_000
    """Steps before the student begins to learn."""
    temperature: Positive = 0.7
    """That sharpens the teacher's probabilities in UDA's term."""
    threshold: Share = 0.6
    """Confidence from which a weak view counts in UDA's term."""
    unlabelled_weight: float = 8.0
    """Of UDA's term, at last."""
    ramp: int = 5_000
    """Steps over which that weight grows from 0, and the teacher's learning rate; the student's,
    after its wait."""
    ema_decay: Share = 0.995
    """Decay of the moving average of the student's weights, which is evaluated and fine-tuned."""
    operations: int = 2
    """N of RandAugment, for strong views."""
    magnitude: float = 10.0
    """M of RandAugment on its scale up to 10 (kekmodel's 16 is past the end of it)."""
    cutout: Share = 0.5
    """Side of the strong views' cutout as a share of the image's."""
    finetune_epochs: int = 625
    """Epochs of the student on the labelled images at the end."""
    finetune_lr: Positive = 3e-5
    """Learning rate of SGD in them."""
    finetune_batch_size: Count = 512
    """Labelled images in a step of them."""

    def __post_init__(self) -> None:
        if self.student_wait + self.ramp >= self.steps:
            raise ValueError(
                f"student_wait {self.student_wait} and ramp {self.ramp} leave nothing of"
                f" {self.steps} steps; make them shorter"
            )

    def fit(self, federation: Federation) -> Checkpoint:
        probe, unlabelled = labelled_set(federation), federation.public.images
        augmentation = RandAugment(self.operations, self.magnitude)
        teacher, ema = (federation.networks.initial() for _ in range(2))
        student = federation.networks.module(federation.networks.checkpoint(teacher))
        optimizers = [self.make_optimizer(model) for model in (teacher, student)]
        parts: dict[str, Any] = {"teacher": teacher, "student": student, "ema": ema}
        parts |= {"teacher_optimizer": optimizers[0], "student_optimizer": optimizers[1]}
        for step, stream in training_steps(
            federation, self.steps, self.interval, "meta-pseudo-labels", ema, **parts
        ):
            for optimizer, wait in zip(optimizers, (0, self.student_wait), strict=True):
                factor = schedule(step, self.steps, wait, self.ramp)
                optimizer.param_groups[0]["lr"] = self.lr * factor
            labelled = stream.choose(len(probe.images), self.batch_size)
            others = fetch(unlabelled, stream.choose(len(unlabelled), self.mu * self.batch_size))
            views = [
                weak_view(federation, fetch(probe.images, labelled), stream),
                weak_view(federation, others, stream),
                strong_view(federation, others, stream, augmentation, self.cutout),
            ]
            sizes = [len(view) for view in views]
            sure, weak, strong = federation.normalise(torch.cat(views)).split(sizes)
            logits = federation.forward(teacher, torch.cat([sure, weak, strong])).split(sizes)
            labels = draw_labels(logits[1], stream)
            credit = self.student_step(
                federation,
                student,
                optimizers[1],
                sure,
                fetch(probe.targets, labelled),
                strong,
                labels,
            )
            update_ema(ema, student, self.ema_decay)
            supervised = federation.task.loss(logits[0], fetch(probe.targets, labelled)).mean()
            consistency = consistency_loss(logits[1], logits[2], self.temperature, self.threshold)
            weight = self.unlabelled_weight * min(1.0, (step + 1) / max(1, self.ramp))
            optimizers[0].zero_grad(set_to_none=True)
            (
                supervised + weight * consistency + credit * F.cross_entropy(logits[1], labels)
            ).backward()
            optimizers[0].step()
        if self.finetune_epochs:
            plan = TrainingPlan(self.finetune_epochs, self.finetune_batch_size)
            learn_probe(
                federation,
                ema,
                plan,
                "fine-tuning",
                label="student",
                optimizer=torch.optim.SGD(
                    ema.parameters(), self.finetune_lr, momentum=self.momentum, nesterov=True
                ),
            )
            federation.evaluation.track(ema)
        return federation.networks.checkpoint(ema)

    def make_optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(
            model.parameters(),
            self.lr,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            nesterov=True,
        )

    def student_step(
        self,
        federation: Federation,
        student: nn.Module,
        optimizer: torch.optim.Optimizer,
        images: torch.Tensor,
        targets: torch.Tensor,
        views: torch.Tensor,
        labels: torch.Tensor,
    ) -> torch.Tensor:
        """The student's step on `views`, in place; returns the feedback from `images`."""

        @torch.no_grad()
        def labelled_loss() -> torch.Tensor:
            # Alone and in training mode both times, so that the step is all that BatchNorm's
            # statistics differ by: in the released codes the first loss is from a batch that holds
            # the unlabelled images too.
            outputs = federation.forward(student, images, exact=True)
            return federation.task.loss(outputs, targets).mean()

        before = labelled_loss()
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(federation.forward(student, views), labels).backward()
        optimizer.step()
        return feedback(before, labelled_loss())
