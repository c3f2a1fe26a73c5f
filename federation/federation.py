"""A federation: clients with private data, a server with public data, and the channel between them.

What methods are written with: facts, the verbs that most of them share, and five parts by subject.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn

from fedtables.federation.client import Client, Shard
from fedtables.federation.costs import Work, active_meter, learns
from fedtables.federation.data import Checkpoint, History, LabelledSet, TrainingSet
from fedtables.federation.execution import DEFAULT
from fedtables.federation.inside.evaluation import Evaluation
from fedtables.federation.inside.networks import Networks
from fedtables.federation.inside.privacy import Privacy, Protection
from fedtables.federation.inside.setup import HeldOut, Setup, Streams
from fedtables.federation.inside.stages import Stages
from fedtables.federation.inside.trainer import Trainer, labelled
from fedtables.federation.samples import active_count, see
from fedtables.federation.training.loops import forward_pass, predict
from fedtables.federation.training.plan import Loss, Penalty, Training, TrainingPlan
from fedtables.federation.watching import begin_round, is_watched, show
from fedtables.privacy.plan import DP_SGD, RELEASED


class Federation:
    """All that a method may use. Server-side code reads public facts and the channel."""

    def __init__(self, setup: Setup, held: HeldOut, protection: Protection | None = None):
        """Raises ValueError for a private run with other than the plain execution."""
        if protection is not None and setup.execution != DEFAULT:
            raise ValueError(
                "differentially private runs are eager, in fp32 and client by client; leave out the"
                " execution options"
            )
        if protection is not None and protection.plan.mechanism == DP_SGD:
            for client in setup.clients:
                client.close()
        self.clients = setup.clients
        self.public = setup.public
        """The server's images without labels."""
        self.task = setup.task
        self.local = setup.local
        """How clients train their own models."""
        self.server = setup.server
        """How the server trains the global model."""
        self.normalise = setup.normalise
        """Images in [0, 1] as networks see them."""
        self.augmentation = setup.augmentation
        self.channel = setup.channel
        """The one way between server and clients."""
        self.progress = setup.progress
        """Takes what is being done and which share of it is, for people."""
        self._probe = setup.probe

        self.evaluation = Evaluation(setup, held)
        self.streams = Streams(setup)
        self.privacy = Privacy(setup, protection)
        self.networks = Networks(setup, self.evaluation)
        self._trainer = Trainer(setup, self.streams, self.privacy, self.evaluation)
        self.stages = Stages(setup, self.networks, self._trainer, self.privacy, self.evaluation)

    def probe(self) -> LabelledSet:
        """The server's own labelled samples of the target task, which it may train on (FedSA,
        section 3.1: D_T).

        Raises ValueError if it has none: `partition.probe_share` sets a share of every class aside.
        """
        if self._probe is None:
            raise ValueError(
                "this method needs labelled data at the server; set partition.probe_share above 0,"
                " or give `probe`"
            )
        return self._probe

    def local_models(self) -> list[Checkpoint]:
        """Every client's own model, as `stages.local_models`."""
        return self.stages.local_models()

    def upload(self, client: Client, checkpoint: Checkpoint) -> Checkpoint:
        """Send a checkpoint's parameters and buffers from client to server; the same arrives."""
        return dataclasses.replace(
            checkpoint, state=self.channel.up(client.index, "parameters", checkpoint.state)
        )

    def label_counts(self) -> torch.Tensor:
        """N_k^c, (clients, classes): every client sends its label counts as `labels`, noisy where
        the run protects them.

        Of a multi-label task the positives of every finding; 0 where the client's label set lacks
        it.
        """
        counts = [self.privacy.sent_counts(client) for client in self.clients]
        return torch.stack(
            [
                self.channel.up(k, "labels", {"counts": client_counts})["counts"]
                for k, client_counts in enumerate(counts)
            ]
        )

    def public_outputs(self, checkpoint: Checkpoint) -> torch.Tensor:
        """Outputs (n, outputs) of a checkpoint on the public images as they are; computed once."""
        public = self.public
        return self.stages.answers(
            "public-outputs",
            checkpoint,
            public.images,
            public.digest,
            lambda model, images: predict(
                model, images, normalise=self.normalise, window=public.window
            ),
        )

    def train(
        self,
        model: nn.Module,
        images: torch.Tensor,
        targets: torch.Tensor,
        loss: Loss,
        plan: TrainingPlan,
        *names: object,
        **options: Any,
    ) -> History:
        """Train `model` in place with the run's augmentation; `names` name the stream of the
        shuffling axis, `options` are further fields of `Training`.

        With `track` the test metrics after the epochs that are looked at are returned, and are the
        run's history.
        """
        training = Training(loss, plan, names, **options)
        return self._trainer.train(model, TrainingSet(images, targets), training)

    def train_on_clients(
        self,
        group: Sequence[tuple[Client, nn.Module]],
        plan: TrainingPlan,
        *names: object,
        penalties: Sequence[Penalty | None] = (),
        samples: Sequence[Callable[[Shard], TrainingSet]] = (),
        **options: Any,
    ) -> None:
        """Training of each client's model in place on its shard. `names` tell one call's streams
        from another's. Several are trained side by side where they can be.

        `penalties` and `samples` have an entry for each client: a term of its loss, and what makes
        of its shard what is trained on. `options` are fields of `Training`; the loss is the task's
        if not given. By DP-SGD if the run asks for it: booked before it begins, and shorter where a
        client's budget ends.
        """
        penalties = penalties or [None] * len(group)
        samples = samples or [labelled] * len(group)
        trainings = [
            self._trainer.supervised(
                client, model, plan, *names, samples=own, penalty=penalty, **options
            )
            for (client, model), penalty, own in zip(group, penalties, samples, strict=True)
        ]
        if self._trainer.can_be_together(trainings):
            self._trainer.together(trainings)
            return
        for local in trainings:
            private = self.privacy.steps(local.client, plan)
            self.privacy.book(local.client, private)
            self._trainer.alone(dataclasses.replace(local, private=private))

    def forward(self, model: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
        """A forward pass of a training loop of a method's own, as `execution` says; outputs in
        float32. Inputs (n, ...) of a network that learns count as n samples seen; of a part of one,
        which is no module, whoever calls it counts them (`fedtables.federation.samples.see`).
        """
        execution = self.networks.execution
        if execution.compile == "reduce-overhead":  # CUDA graphs, which keep one pass at a time
            execution = dataclasses.replace(execution, compile="default")
        if torch.is_grad_enabled() and isinstance(model, nn.Module) and learns(model):
            see(len(inputs))
        meter = active_meter()
        with contextlib.nullcontext() if meter is None else meter.passing(model, inputs):
            return forward_pass(execution, self.networks.device)(model, inputs)

    def rounds(self, count: int, *, alike: bool = False, **parts: Any) -> Iterator[int]:
        """Rounds 1 to `count`, booked as such by the channel; an interrupted fit goes on after its
        last snapshot.

        `parts` are all that a round takes over from the one before (anything with state_dict and
        load_state_dict). Randomness must come from streams named by the round. With `alike` every
        round costs the same, so that `plan` follows one and counts it `count` times.
        """
        meter = active_meter()
        if meter is not None and alike:
            with meter.repeated(count):
                self.channel.round = 1
                self.evaluation.begin_round(1, count, for_all=True)
                yield 1
            self.evaluation.end_rounds()
            return
        parts |= {"ledger": self.channel, "history": self.evaluation}
        if self.privacy.protection is not None:
            parts["protection"] = self.privacy.protection
        if (samples := active_count()) is not None:
            parts["samples seen"] = samples
        snapshots = self.stages.snapshots
        done = snapshots.resume(parts) if snapshots is not None else 0
        try:
            for number in range(done + 1, count + 1):
                self.channel.round = number
                self.evaluation.begin_round(number, count)
                self.progress(f"round {number}/{count}", (number - 1) / count)
                begin_round(number)
                yield number
                show_spent(number, self)
                if snapshots is not None:
                    snapshots.offer(number, parts)
        finally:
            self.evaluation.end_rounds()

    def steps(self, count: int, *, name: str = "") -> Iterator[int]:
        """Steps 0 to `count` - 1 of a loop whose steps cost the same; `plan` follows one and counts
        it `count` times. With a `name` they cost the same in all loops of that name, whatever the
        number of samples, and in every fit of the method with the same settings, networks and
        clients.
        """
        meter = active_meter()
        if meter is None:
            yield from range(count)
            return
        if not count:
            return
        key = meter.kind, name
        if not name or key not in meter.steps:
            before, self.channel.booked = self.channel.booked, {}
            try:
                with meter.having(times=1, work=Work(), peak_bytes=0):
                    with meter.counted():
                        yield 0
                    meter.steps[key] = meter.work, meter.peak_bytes, self.channel.ledger
            finally:
                self.channel.booked = before
        work, peak_bytes, messages = meter.steps[key]
        meter.book(work, peak_bytes, count)
        for message in messages:
            now = dataclasses.replace(message, round=self.channel.round)
            self.channel.book(now, count * meter.times)

    def distill(
        self, targets: torch.Tensor, loss: Loss | None = None, images: torch.Tensor | None = None
    ) -> Checkpoint:
        """Train a new global model to imitate the teachers' `targets` (n, ...) for the public
        images, or for `images`.

        `loss` is the task's distillation loss, against probabilities, if not given; tracked on the
        test set.
        """
        model = self.networks.initial()
        self.train(
            model,
            self.public.cut(self.public.images if images is None else images),
            self.public.cut(targets),
            loss or self.task.distillation_loss,
            self.server,
            "server",
            track=True,
            label="global model",
        )
        return self.networks.checkpoint(model)


def show_spent(number: int, federation: Federation) -> None:
    """Show bytes and epsilon after round `number`, if somebody watches."""
    if not is_watched():
        return
    for direction in ("up", "down"):
        show(f"bytes/{direction}", number, federation.channel.total(direction))
    privacy = federation.privacy
    if privacy.protection is not None and privacy.mechanism != RELEASED:
        show("epsilon", number, privacy.protection.accountant.epsilon())
