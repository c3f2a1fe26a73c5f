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
from fedtables.federation.memory import Memory
from fedtables.federation.samples import active_count, see
from fedtables.federation.training.loops import forward_pass, predict
from fedtables.federation.training.plan import Loss, Penalty, Training, TrainingPlan
from fedtables.federation.watching import begin_round, is_watched, show
from fedtables.privacy.plan import DP_SGD, RELEASED


class Federation:
    """What a method works with: clients, the server's data, the channel, and shared steps."""

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
        """Makes network inputs of images in [0, 1]."""
        self.augmentation = setup.augmentation
        self.channel = setup.channel
        """The only way between server and clients. It counts bytes."""
        self.progress = setup.progress
        """`progress(text, share)` tells people what is being done."""
        self._probe = setup.probe

        self.evaluation = Evaluation(setup, held)
        self.streams = Streams(setup)
        self.privacy = Privacy(setup, protection)
        self.networks = Networks(setup, self.evaluation)
        self._trainer = Trainer(setup, self.streams, self.privacy, self.evaluation)
        self.stages = Stages(setup, self.networks, self._trainer, self.privacy, self.evaluation)

    def probe(self) -> LabelledSet:
        """The server's own labelled samples, to train on (D_T of FedSA, section 3.1).

        Raises:
            ValueError: there are none. `partition.probe_share` sets some aside.
        """
        if self._probe is None:
            raise ValueError(
                "this method needs labelled data at the server; set partition.probe_share above 0,"
                " or give `probe`"
            )
        return self._probe

    def local_models(self) -> list[Checkpoint]:
        """Train every client's own model, once for all cells that need it. By DP-SGD if the run is
        private.

        Returns:
            One checkpoint per client.
        """
        return self.stages.local_models()

    def upload(self, client: Client, checkpoint: Checkpoint) -> Checkpoint:
        """Send a client's parameters and buffers to the server. Returns what arrives."""
        return dataclasses.replace(
            checkpoint, state=self.channel.up(client.index, "parameters", checkpoint.state)
        )

    def label_counts(self) -> torch.Tensor:
        """Let every client send its label counts, noisy if the run protects them.

        Returns:
            N_k^c, (clients, classes). For multi-label tasks: positives of each finding, 0 if the
            client does not label it.
        """
        counts = [self.privacy.sent_counts(client) for client in self.clients]
        return torch.stack(
            [
                self.channel.up(k, "labels", {"counts": client_counts})["counts"]
                for k, client_counts in enumerate(counts)
            ]
        )

    def public_outputs(self, checkpoint: Checkpoint) -> torch.Tensor:
        """Outputs (n, outputs) of a checkpoint on the public images, without augmentation. Computed
        once."""
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
        """Train `model` in place, with the run's augmentation.

        Args:
            model: the network.
            images: (n, c, *sides), as stored.
            targets: (n, ...).
            loss: takes outputs and targets, returns one loss per sample, (n,).
            plan: epochs, batch size, optimiser.
            names: name the random stream, for example by the round.
            options: further fields of `Training`, such as `penalty` or `track`.

        Returns:
            If `track` is set, test metrics after the epochs that `looks` chooses.
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
        """Train each client's model in place on its own samples. By DP-SGD if the run is private:
        then the cost is booked first, and training ends early where a budget ends.

        Args:
            group: pairs of client and model.
            plan: epochs, batch size, optimiser.
            names: name the random streams, for example by the round.
            penalties: a further term of the loss for each client, or None.
            samples: for each client, a function from its shard to what is trained on.
            options: further fields of `Training`; the loss is the task's by default.
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

    def forward(
        self, model: nn.Module, inputs: torch.Tensor, *, exact: bool = False
    ) -> torch.Tensor:
        """A forward pass in a training loop of a method's own. Follows --precision and --compile.

        Args:
            model: the network. If it learns, its inputs count as samples seen. For a part of a
                network, count them yourself: `fedtables.federation.samples.see(n)`.
            inputs: (n, ...), normalised.
            exact: never in bf16, as for a difference of losses that are nearly equal.

        Returns:
            Outputs in float32.
        """
        execution = self.networks.execution
        if exact and execution.precision == "bf16":
            execution = dataclasses.replace(execution, precision="tf32")
        if torch.is_grad_enabled() and isinstance(model, nn.Module) and learns(model):
            see(len(inputs))
        meter = active_meter()
        with contextlib.nullcontext() if meter is None else meter.passing(model, inputs):
            return forward_pass(execution, self.networks.device)(model, inputs)

    def rounds(self, count: int, *, alike: bool = False, **parts: Any) -> Iterator[int]:
        """Iterate over rounds 1 to `count`. A killed fit goes on after its last snapshot.

        Args:
            count: number of rounds.
            alike: whether all rounds cost the same. Then `plan` follows only one.
            parts: all state that a round takes from the one before; anything with `state_dict` and
                `load_state_dict`. Randomness must come from streams named by the round.
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
        """Iterate over steps 0 to `count` - 1 of a loop with steps of equal cost, so that `plan`
        follows only one. Give a `name` only if steps cost the same in all loops of that name,
        whatever the number of samples, and in every fit with the same settings and networks.
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
                with meter.having(times=1, work=Work(), peak_bytes=0, memory=Memory()):
                    with meter.counted():
                        yield 0
                    needs = meter.work, meter.peak_bytes, meter.memory
                    meter.steps[key] = needs, self.channel.ledger
            finally:
                self.channel.booked = before
        (work, peak_bytes, memory), messages = meter.steps[key]
        meter.book(work, peak_bytes, count)
        meter.memory |= memory
        for message in messages:
            now = dataclasses.replace(message, round=self.channel.round)
            self.channel.book(now, count * meter.times)

    def distill(
        self, targets: torch.Tensor, loss: Loss | None = None, images: torch.Tensor | None = None
    ) -> Checkpoint:
        """Train a new global model to imitate teachers.

        Args:
            targets: what it must output, (n, ...).
            loss: by default the task's distillation loss, against probabilities.
            images: by default the public images.

        Returns:
            The checkpoint, with test metrics by epoch in its history.
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
