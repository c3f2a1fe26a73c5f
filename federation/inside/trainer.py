"""Training as the run has it: its augmentation, streams, execution and protection."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from federation.checkpoint import History
from federation.client import Client, Shard
from federation.costs import active_meter, learns
from federation.data import TrainingSet
from federation.graphs.turns import side_by_side, take_turns
from federation.inside.evaluation import Evaluation
from federation.inside.privacy import Privacy
from federation.inside.setup import Setup
from federation.inside.streams import Streams
from federation.samples import see
from federation.tasks.base import Task
from federation.training.loops import (
    Loss,
    Normalisation,
    Penalty,
    SteadyPenalty,
    TrainingPlan,
    forward_pass,
    train,
    training_steps,
)
from federation.training.private import PrivateSteps, check_separable, train_privately
from federation.watching import on_client, show_epoch, trained
from metrics.names import is_count


def labelled(shard: Shard) -> TrainingSet:
    """All of a client's samples with their labels."""
    return TrainingSet(shard.images, shard.targets)


@dataclass(frozen=True)
class LocalTraining:
    """A network of a client's, and how it is trained there."""

    client: Client
    model: nn.Module
    loss: Loss
    plan: TrainingPlan
    names: tuple[object, ...]
    """Of its streams."""
    label: str
    """For people."""
    samples: Callable[[Shard], TrainingSet] = labelled
    """What it is trained on, as the client makes it of its own."""
    normalise: Normalisation | None = None
    """The federation's if not given."""
    task: Task | None = None
    """What the network has outputs for; the federation's if not given."""
    track: bool = False
    """Whether test metrics are noted after the epochs that are looked at."""
    penalty: Penalty | None = None
    augmented: bool = True
    """Whether its images are augmented as the run asks."""


class Trainer:
    """Trains networks at the server and on clients."""

    def __init__(
        self,
        setup: Setup,
        streams: Streams,
        privacy: Privacy,
        evaluation: Evaluation,
        progress: Callable[[str, float], None],
    ):
        self._setup = setup
        self._streams = streams
        self._privacy = privacy
        self._evaluation = evaluation
        self._progress = progress

    def train(
        self,
        model: nn.Module,
        images: torch.Tensor,
        targets: torch.Tensor,
        loss: Loss,
        plan: TrainingPlan,
        *names: object,
        sample_weights: torch.Tensor | None = None,
        penalty: Penalty | None = None,
        private: PrivateSteps | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        schedule: torch.optim.lr_scheduler.LRScheduler | None = None,
        normalise: Normalisation | None = None,
        augmented: bool = True,
        track: bool = False,
        history: History | None = None,
        task: Task | None = None,
        label: str = "",
    ) -> History:
        """Train `model` in place with the run's augmentation; `names` name the stream of the
        shuffling axis.

        With `track` the test metrics after the epochs that are looked at are returned, and are the
        run's history, unless another `history` is given; no method may choose anything by them.
        With `private` the steps are those of DP-SGD, which knows no
        sample weights and takes a penalty for a term of the weights alone. `normalise` and `task`,
        what the model has outputs for, are the federation's if not given.
        """
        if history is None:
            history = self._evaluation.begin_history() if track else {}

        def after_epoch(epoch: int) -> None:
            self._progress(f"{label} epoch {epoch}/{plan.epochs}", epoch / plan.epochs)
            if track:
                self._note(history, model, task, epoch, plan.epochs)

        with self._streams.dropout(*names), trained(*names):
            common: dict[str, Any] = {
                "normalise": normalise or self._setup.normalise,
                "generator": self._streams.shuffling(*names).generator,
                "augmentation": self._setup.augmentation if augmented else None,
                "after_epoch": after_epoch,
                "penalty": penalty,
            }
            if private is not None:
                noise = self._privacy.noise(*names).generator
                train_privately(model, images, targets, loss, plan, private, noise=noise, **common)
                return history
            train(
                model,
                images,
                targets,
                loss,
                plan,
                optimizer=optimizer,
                schedule=schedule,
                sample_weights=sample_weights,
                execution=self._setup.execution,
                **common,
            )
        return history

    def _note(
        self, history: History, model: nn.Module, task: Task | None, epoch: int, epochs: int
    ) -> None:
        """Add the test metrics after an epoch to `history`, if it is one that is looked at."""
        found = self._evaluation.look(model, epoch, epochs, task, for_all=True)
        for metric, value in found.items():
            history.setdefault(metric, []).append(value)
            if not is_count(metric):
                show_epoch(metric, epoch, epochs, value)

    def forward(self, model: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
        """A forward pass of a training loop of a method's own, as `execution` says; outputs in
        float32. Inputs (n, ...) of a network that learns count as n samples seen; of a part of one,
        which is no module, whoever calls it counts them (`federation.samples.see`).

        Without CUDA graphs: they keep one pass at a time, and such loops interleave several.
        """
        execution = self._setup.execution
        if execution.compile == "reduce-overhead":
            execution = dataclasses.replace(execution, compile="default")
        if torch.is_grad_enabled() and isinstance(model, nn.Module) and learns(model):
            see(len(inputs))
        meter = active_meter()
        with contextlib.nullcontext() if meter is None else meter.passing(model, inputs):
            return forward_pass(execution, self._setup.device)(model, inputs)

    def train_on_clients(
        self,
        group: Sequence[tuple[Client, nn.Module]],
        plan: TrainingPlan,
        *names: object,
        penalties: Sequence[Penalty | None] = (),
        samples: Sequence[Callable[[Shard], TrainingSet]] = (),
        loss: Loss | None = None,
        augmented: bool = True,
    ) -> None:
        """Training of each client's model in place on its shard, or on what `samples` make of it;
        the loss is the task's if not given; `names` tell one call's streams from another's. Several
        are trained together where they can be.

        By DP-SGD if the run asks for it: booked before it begins, and shorter where a client's
        budget ends.
        """
        options: dict[str, Any] = {"loss": loss, "augmented": augmented}
        trainings = [
            self.supervised(client, model, plan, *names, penalty=penalty, samples=own, **options)
            for (client, model), penalty, own in zip(
                group,
                penalties or [None] * len(group),
                samples or [labelled] * len(group),
                strict=True,
            )
        ]
        if len(group) > 1 and self._can_be_together(trainings):
            self.together(trainings)
            return
        for training in trainings:
            private = self._privacy.steps(training.client, plan)
            self._privacy.book(training.client, private)
            self.alone(training, private)

    def _can_be_together(self, trainings: Sequence[LocalTraining]) -> bool:
        """Whether they take turns: not with a penalty that may hang on who was trained before."""
        return all(
            isinstance(training.penalty, SteadyPenalty | None)
            and side_by_side(self._setup.execution, training.model)
            for training in trainings
        )

    def supervised(
        self,
        client: Client,
        model: nn.Module,
        plan: TrainingPlan,
        *names: object,
        loss: Loss | None = None,
        **options: Any,
    ) -> LocalTraining:
        """Training on the client's own labels, or by another `loss`; `options` are further
        fields.
        """
        loss, words = loss or (client.task or self._setup.task).loss, map(str, names)
        label = " ".join([f"client {client.index + 1}/{len(self._setup.clients)}", *words])
        streams = ("client", client.index, *names)
        return LocalTraining(client, model, loss, plan, streams, label, task=client.task, **options)

    def alone(self, training: LocalTraining, private: PrivateSteps | None = None) -> History:
        """Train a client's network there, by `private` steps if there are such, which are not
        booked here.
        """
        if private is not None:
            check_separable(training.model, training.client.network)

        def run(shard: Shard) -> History:
            with contextlib.nullcontext() if private is None else shard.opened():
                own = training.samples(shard)
            return self.train(
                training.model,
                own.images,
                own.targets,
                training.loss,
                training.plan,
                *training.names,
                sample_weights=own.weights,
                penalty=training.penalty,
                private=private,
                normalise=training.normalise,
                augmented=training.augmented,
                track=training.track,
                history={},
                task=training.task,
                label=training.label,
            )

        return training.client.run(run)

    def together(self, trainings: Sequence[LocalTraining]) -> list[tuple[History, int]]:
        """Train several clients' networks there side by side, a step of each in turn. Returns each
        one's history and the samples that it has seen.
        """
        first, *_ = trainings
        epochs = first.plan.epochs
        self._progress(f"{len(trainings)} clients together: {first.label} and others", 0.0)
        histories: list[History] = [{} for _ in trainings]
        seen = [0] * len(trainings)

        def steps(position: int, shard: Shard) -> Generator[None]:
            training = trainings[position]

            def after_epoch(epoch: int) -> None:
                if training is first:
                    self._progress(
                        f"{first.label} and others epoch {epoch}/{epochs}", epoch / epochs
                    )
                if training.track:
                    self._note(histories[position], training.model, training.task, epoch, epochs)

            own = training.samples(shard)
            with on_client(training.client.index), trained(*training.names):
                for samples in training_steps(
                    training.model,
                    own.images,
                    own.targets,
                    training.loss,
                    training.plan,
                    normalise=training.normalise or self._setup.normalise,
                    generator=self._streams.shuffling(*training.names).generator,
                    augmentation=self._setup.augmentation if training.augmented else None,
                    sample_weights=own.weights,
                    penalty=training.penalty,
                    after_epoch=after_epoch,
                    execution=self._setup.execution,
                ):
                    seen[position] += samples
                    yield

        def run(shards: Sequence[Shard]) -> None:
            turns = [steps(position, shard) for position, shard in enumerate(shards)]
            take_turns(turns, self._setup.device)

        with self._streams.dropout("together", *first.names):
            Client.run_together([training.client for training in trainings], run)
        return list(zip(histories, seen, strict=True))
