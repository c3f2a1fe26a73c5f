"""Training as the run has it: its augmentation, streams, execution and protection."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from federation.parties.checkpoint import History
from federation.parties.client import Client, Shard
from federation.parts.evaluation import Evaluation
from federation.parts.privacy import Privacy
from federation.parts.setup import Setup
from federation.parts.stacked import train_stacked
from federation.parts.streams import Streams
from federation.samples import see
from federation.tasks.base import Task
from federation.training.loops import (
    Loss,
    Normalisation,
    Penalty,
    TrainingPlan,
    forward_pass,
    train,
)
from federation.training.private_training import PrivateSteps, check_separable, train_privately
from federation.watching import show_epoch, trained


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
        task: Task | None = None,
        label: str = "",
    ) -> History:
        """Train `model` in place with the run's augmentation; `names` name the stream of the
        shuffling axis.

        With `track` the test metrics after every epoch are returned; no method may choose anything
        by them. With `private` the steps are those of DP-SGD, which knows no sample weights and
        takes a penalty for a term of the weights alone. `normalise` and `task`, what the model has
        outputs for, are the federation's if not given.
        """
        history: History = {}

        def after_epoch(epoch: int) -> None:
            self._progress(f"{label} epoch {epoch}/{plan.epochs}", epoch / plan.epochs)
            if track and self._evaluation.tracked:
                for metric, value in self._evaluation.test(model, task).items():
                    history.setdefault(metric, []).append(value)
                    show_epoch(metric, epoch, plan.epochs, value)

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

    def forward(self, model: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
        """A forward pass of a training loop of a method's own, as `execution` says; outputs in
        float32. Inputs (n, ...) of a network that learns count as n samples seen; of a part of one,
        which is no module, whoever calls it counts them (`federation.samples.see`).

        Without CUDA graphs: they keep one pass at a time, and such loops interleave several.
        """
        execution = self._setup.execution
        if execution.compile == "reduce-overhead":
            execution = dataclasses.replace(execution, compile="default")
        learns = isinstance(model, nn.Module) and any(p.requires_grad for p in model.parameters())
        if learns and torch.is_grad_enabled():
            see(len(inputs))
        return forward_pass(execution, self._setup.device)(model, inputs)

    def train_on_clients(
        self,
        group: Sequence[tuple[Client, nn.Module]],
        plan: TrainingPlan,
        *names: object,
        penalties: Sequence[Penalty | None] = (),
    ) -> None:
        """Supervised training of each client's model in place on its shard; `names` tell one call's
        streams from another's. Several are one computation where no client has a penalty.

        By DP-SGD if the run asks for it: booked before it begins, and shorter where a client's
        budget ends.
        """
        penalties = penalties or [None] * len(group)
        if len(group) == 1 or any(penalties):
            for (client, model), penalty in zip(group, penalties, strict=True):
                private = self._privacy.steps(client, plan)
                self._privacy.book(client, private)
                self.on_client(client, model, plan, private, *names, penalty=penalty)
            return
        self._progress(f"{len(group)} clients together {' '.join(map(str, names))}", 0.0)
        clients, models = zip(*group, strict=True)
        seeds, device = self._streams.seeds, self._setup.device
        with self._streams.dropout("together", *names):
            Client.run_together(
                clients,
                lambda shards: train_stacked(
                    models,
                    shards,
                    self._setup.task.loss,
                    plan,
                    normalise=self._setup.normalise,
                    generators=[
                        seeds.torch("shuffling", "client", client.index, *names, device=device)
                        for client in clients
                    ],
                    augmentation=self._setup.augmentation,
                ),
            )

    def on_client(
        self,
        client: Client,
        model: nn.Module,
        plan: TrainingPlan,
        private: PrivateSteps | None,
        *names: object,
        penalty: Penalty | None = None,
        track: bool = False,
    ) -> History:
        """The same of one client, by `private` steps if there are such, which are not booked
        here.
        """
        label = " ".join(
            [f"client {client.index + 1}/{len(self._setup.clients)}", *map(str, names)]
        )
        if private is not None:
            check_separable(model, client.network)
        return client.run(
            self.on_shard,
            model,
            plan,
            ("client", client.index, *names),
            loss=(client.task or self._setup.task).loss,
            private=private,
            penalty=penalty,
            track=track,
            task=client.task,
            label=label,
        )

    def on_shard(
        self,
        shard: Shard,
        model: nn.Module,
        plan: TrainingPlan,
        names: Sequence[object],
        **options: Any,
    ) -> History:
        """Supervised training on a client; `options` are those of `train`, and its loss."""
        return self.train(
            model, shard.images, shard.targets, options.pop("loss"), plan, *names, **options
        )
