"""Training as the run has it: its augmentation, streams, execution and protection."""

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from fedtables.federation.client import Client, Shard
from fedtables.federation.data import History, TrainingSet
from fedtables.federation.graphs import side_by_side, take_turns
from fedtables.federation.inside.evaluation import Evaluation
from fedtables.federation.inside.privacy import Privacy
from fedtables.federation.inside.setup import Setup, Streams
from fedtables.federation.samples import on_client
from fedtables.federation.training.inputs import Inputs
from fedtables.federation.training.loops import train, training_steps
from fedtables.federation.training.plan import Loss, SteadyPenalty, Training, TrainingPlan
from fedtables.federation.training.private import PrivateSteps, check_separable, train_privately
from fedtables.federation.watching import show_epoch, trained
from fedtables.metrics.names import is_count


def labelled(shard: Shard) -> TrainingSet:
    """All of a client's samples with their labels."""
    return TrainingSet(shard.images, shard.targets)


@dataclass(frozen=True)
class LocalTraining:
    """A network of a client's, and how it is trained there."""

    client: Client
    model: nn.Module
    training: Training
    samples: Callable[[Shard], TrainingSet] = labelled
    """What it is trained on, as the client makes it of its own."""
    private: PrivateSteps | None = None
    """Its steps by DP-SGD, where these are."""


class Trainer:
    """Trains networks at the server and on clients."""

    def __init__(self, setup: Setup, streams: Streams, privacy: Privacy, evaluation: Evaluation):
        self._setup = setup
        self._streams = streams
        self._privacy = privacy
        self._evaluation = evaluation

    def train(
        self,
        model: nn.Module,
        samples: TrainingSet,
        training: Training,
        history: History | None = None,
        private: PrivateSteps | None = None,
    ) -> History:
        """Train `model` in place. Test metrics that are tracked are the run's history, unless
        another `history` is given. With `private` the steps are those of DP-SGD.
        """
        if history is None:
            history = self._evaluation.begin_history() if training.track else {}
        epochs, names = training.plan.epochs, training.names

        def after_epoch(epoch: int) -> None:
            self._setup.progress(f"{training.label} epoch {epoch}/{epochs}", epoch / epochs)
            self._note(history, model, training, epoch)

        with self._streams.dropout(*names), trained(*names):
            inputs = self._inputs(training)
            if private is None:
                train(model, samples, training, inputs, after_epoch, self._setup.execution)
            else:
                noise = self._privacy.noise(*names).generator
                train_privately(model, samples, training, private, inputs, noise, after_epoch)
        return history

    def _inputs(self, training: Training) -> Inputs:
        return Inputs(
            training.normalise or self._setup.normalise,
            self._setup.augmentation if training.augmented else None,
            self._streams.shuffling(*training.names).generator,
        )

    def _note(self, history: History, model: nn.Module, training: Training, epoch: int) -> None:
        """Add the test metrics after an epoch to `history`, if these are tracked and looked at."""
        if not training.track:
            return
        epochs = training.plan.epochs
        found = self._evaluation.look(model, epoch, epochs, training.task, for_all=True)
        for metric, value in found.items():
            history.setdefault(metric, []).append(value)
            if not is_count(metric):
                show_epoch(metric, epoch, epochs, value)

    def supervised(
        self,
        client: Client,
        model: nn.Module,
        plan: TrainingPlan,
        *names: object,
        loss: Loss | None = None,
        samples: Callable[[Shard], TrainingSet] = labelled,
        **options: Any,
    ) -> LocalTraining:
        """Training on own labels, or by another `loss`; `options` are fields of `Training`."""
        loss, words = loss or (client.task or self._setup.task).loss, map(str, names)
        label = " ".join([f"client {client.index + 1}/{len(self._setup.clients)}", *words])
        streams = ("client", client.index, *names)
        training = Training(loss, plan, streams, label, task=client.task, **options)
        return LocalTraining(client, model, training, samples)

    def alone(self, local: LocalTraining) -> History:
        """Train a client's network there; private steps are not booked here."""
        private = local.private
        if private is not None:
            check_separable(local.model, local.client.network)

        def run(shard: Shard) -> History:
            with contextlib.nullcontext() if private is None else shard.opened():
                own = local.samples(shard)
            return self.train(local.model, own, local.training, {}, private)

        return local.client.run(run)

    def can_be_together(self, trainings: Sequence[LocalTraining]) -> bool:
        """Whether they take turns: not with a penalty that may hang on who was trained before."""
        return len(trainings) > 1 and all(
            isinstance(local.training.penalty, SteadyPenalty | None)
            and side_by_side(self._setup.execution, local.model)
            for local in trainings
        )

    def together(self, trainings: Sequence[LocalTraining]) -> list[tuple[History, int]]:
        """Train several clients' networks there side by side, a step of each in turn. Returns each
        one's history and the samples that it has seen.
        """
        first = trainings[0].training
        others = f"{first.label} and others"
        self._setup.progress(f"{len(trainings)} clients together: {others}", 0.0)
        histories: list[History] = [{} for _ in trainings]
        seen = [0] * len(trainings)

        def steps(position: int, shard: Shard) -> Generator[None]:
            local = trainings[position]
            training, epochs = local.training, first.plan.epochs

            def after_epoch(epoch: int) -> None:
                if training is first:
                    self._setup.progress(f"{others} epoch {epoch}/{epochs}", epoch / epochs)
                self._note(histories[position], local.model, training, epoch)

            own, inputs = local.samples(shard), self._inputs(training)
            with on_client(local.client.index), trained(*training.names):
                execution = self._setup.execution
                taken = training_steps(local.model, own, training, inputs, after_epoch, execution)
                for samples in taken:
                    seen[position] += samples
                    yield

        def run(shards: Sequence[Shard]) -> None:
            turns = [steps(position, shard) for position, shard in enumerate(shards)]
            take_turns(turns, self._setup.device)

        with self._streams.dropout("together", *first.names):
            Client.run_together([local.client for local in trainings], run)
        return list(zip(histories, seen, strict=True))
