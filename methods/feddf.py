"""FedDF: ensemble distillation for robust model fusion in FL (Lin et al., NeurIPS 2020)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from fedtables.federation.data import fetch, state_of
from fedtables.federation.federation import Federation
from fedtables.federation.shared.consensus import are_kept
from fedtables.federation.training.inputs import augmented
from fedtables.federation.training.loops import predict
from fedtables.methods.fedavg import FedAvg, Round, State
from fedtables.privacy.plan import DP_SGD
from fedtables.results.numbers import Count, Positive

NO_SCORE = -math.inf
"""While planning, which counts all steps: where a run stops early nobody knows before."""


@dataclass(frozen=True)
class FedDF(FedAvg):
    """FedAvg whose average the server fine-tunes to imitate the ensemble of the received models on
    public images.

    Of the distilled weights those that do best on the server's validation set are kept. The
    teachers' outputs are computed once a round, on public images as they are; where they are too
    large to be kept, in each step. The released code augments the images, for teachers and student
    alike, which is the setting `augmented`.
    """

    title = "FedDF"
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: FedAvg.sends}
    quick: ClassVar[Mapping[str, Any]] = {
        **FedAvg.quick,
        "distillation_steps": 20,
        "evaluation_interval": 10,
    }

    distillation_steps: Count = 10_000
    """Most steps of distillation in a round (released code)."""
    distillation_batch_size: Count = 64
    """Public images in a step (released code)."""
    distillation_lr: Positive = 1e-3
    """Of Adam, with a cosine to 0 over the steps (released code)."""
    evaluation_interval: Count = 100
    """Steps between two looks at the validation set (released code)."""
    patience: Count = 1_000
    """Steps without a gain, first look included, after which distillation stops (released code)."""
    may_keep_average: bool = False
    """Whether the average may be kept, and is the first that is looked at (released code: no)."""
    augmented: bool = False
    """Whether teachers and student see public images as the run augments samples (released code).
    The server then holds all teachers of a round, which answer anew in each step."""
    clip_norm: float = 5.0
    """Largest norm of a step's gradient (released code)."""

    def server_state(self, federation: Federation, model: nn.Module) -> dict[str, Any]:
        # To say now, rather than after a round, that there is none.
        federation.evaluation.require_validation()
        return {}

    def aggregate(self, this: Round, states: Iterator[State]) -> None:
        federation, model, public = this.federation, this.model, this.federation.public
        images = public.cut(public.images)
        how = federation.augmentation if self.augmented else None
        anew = how is not None or not are_kept(federation)
        held: list[nn.Module] = []  # the teachers, where they answer anew in each step
        teacher = federation.networks.initial()
        ensemble = torch.zeros(())  # else the sum of their outputs

        def answered() -> Iterator[State]:
            nonlocal ensemble
            for count, state in enumerate(states):
                if anew:
                    held.append(federation.networks.initial().eval())
                    held[-1].load_state_dict(state)
                    yield state
                    continue
                teacher.load_state_dict(state)
                outputs = predict(
                    teacher, public.images, normalise=federation.normalise, window=public.window
                )
                outputs = public.cut(outputs)
                ensemble = outputs if count == 0 else ensemble.add_(outputs)
                yield state

        super().aggregate(this, answered())
        if not anew:
            # AVGLOGITS of Algorithm 1. The cross-entropy with these has the gradient of its KL
            # divergence.
            teachers = federation.task.probabilities(ensemble / len(this.clients))

        optimizer = torch.optim.Adam(model.parameters(), lr=self.distillation_lr)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.distillation_steps)
        stream = federation.streams.shuffling("public", this.number)
        changes = federation.streams.shuffling("public augmentation", this.number).generator
        best, best_score, best_step = None, NO_SCORE, 0
        if self.may_keep_average:
            best, best_score = state_of(model), _score(federation, model)
        for first in range(0, self.distillation_steps, self.evaluation_interval):
            taken = min(first + self.evaluation_interval, self.distillation_steps)
            model.train()
            for _ in federation.steps(taken - first, name="distillation"):
                batch = stream.choose(len(images), self.distillation_batch_size)
                shown = augmented(fetch(images, batch), how, changes, federation.normalise.mean)
                seen = federation.normalise(shown)
                wanted = _consensus(federation, held, seen) if anew else fetch(teachers, batch)
                student = federation.forward(model, seen)
                optimizer.zero_grad(set_to_none=True)
                federation.task.distillation_loss(student, wanted).mean().backward()
                nn.utils.clip_grad_norm_(model.parameters(), self.clip_norm)
                optimizer.step()
                schedule.step()
            if taken - first == self.evaluation_interval:
                score = _score(federation, model)
                if best is None or score > best_score:
                    best, best_score, best_step = state_of(model), score, taken
                elif taken - best_step >= self.patience and score != NO_SCORE:
                    break
        if best is not None:  # else the steps are too few for a look
            model.load_state_dict(best)


@torch.no_grad()
def _consensus(
    federation: Federation, teachers: Sequence[nn.Module], seen: torch.Tensor
) -> torch.Tensor:
    """Probabilities (n, ...) of the teachers' mean outputs for inputs (n, ...)."""
    outputs = torch.stack([federation.forward(teacher, seen) for teacher in teachers])
    return federation.task.probabilities(outputs.mean(dim=0))


def _score(federation: Federation, model: nn.Module) -> float:
    """The headline metric on the validation set."""
    return next(iter(federation.evaluation.validate(model).values()), NO_SCORE)
