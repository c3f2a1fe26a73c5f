"""A federation: clients with private data, a server with public data, and the channel between them.

What methods are written with: facts, the verbs that most of them share, and five parts by subject.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import torch

from federation.augmentation.basic import Augmentation
from federation.cache import StageCache
from federation.channel import Channel
from federation.checkpoint import Checkpoint
from federation.client import Client
from federation.data import LabelledSet, PublicData
from federation.execution import DEFAULT, Execution
from federation.inside.evaluation import Evaluation
from federation.inside.networks import Networks
from federation.inside.privacy import Privacy
from federation.inside.protection import Protection
from federation.inside.rounds import Rounds
from federation.inside.setup import Setup
from federation.inside.stages import Stages
from federation.inside.streams import Streams
from federation.inside.trainer import Trainer
from federation.seeds import Seeds
from federation.tasks.base import Task
from federation.training.loops import Loss, Normalisation, TrainingPlan
from privacy.plan import DP_SGD


class Federation:
    """Everything a method may use. Server-side code reads `clients`' public facts, `public` and the
    channel.
    """

    def __init__(
        self,
        *,
        clients: Sequence[Client],
        public: PublicData,
        test: LabelledSet,
        further_tests: Mapping[str, LabelledSet] | None = None,
        validation: LabelledSet | None = None,
        probe: LabelledSet | None = None,
        task: Task,
        network: str,
        image_shape: tuple[int, ...],
        normalise: Normalisation,
        local: TrainingPlan,
        server: TrainingPlan,
        augmentation: Augmentation | None,
        seeds: Seeds,
        stages: StageCache,
        channel: Channel | None = None,
        device: torch.device | str = "cpu",
        execution: Execution = DEFAULT,
        protection: Protection | None = None,
        pretrained: bool = False,
        oracle_labels: torch.Tensor | None = None,
        oracle_allowed: frozenset[str] = frozenset(),
        looks: int = 0,
        progress: Callable[[str, float], None] = lambda text, share: None,
    ):
        """`network` is that of the global model, `image_shape` channels and sides, `test`
        the test set, `further_tests` those of further sites, `looks` after how many of a
        training's epochs or a fit's rounds metrics are taken on them (0 for all), `oracle_labels`
        the public images' true labels.

        Raises ValueError for a private run with other than the plain execution.
        """
        if protection is not None and execution != DEFAULT:
            raise ValueError(
                "differentially private runs are eager, in fp32 and client by client; leave out the"
                " execution options"
            )
        setup = Setup(
            clients=tuple(clients),
            public=public,
            probe=probe,
            task=task,
            network=network,
            image_shape=image_shape,
            normalise=normalise,
            local=local,
            server=server,
            augmentation=augmentation,
            seeds=seeds,
            device=torch.device(device),
            execution=execution,
            pretrained=pretrained,
        )
        self.clients = setup.clients
        if protection is not None and protection.plan.mechanism == DP_SGD:
            for client in clients:
                client.close()
        self.public = public
        """The server's images without labels."""
        self.task = task
        self.local = local
        """How clients train their own models."""
        self.server = server
        """How the server trains the global model."""
        self.normalise = normalise
        """Images in [0, 1] as networks see them."""
        self.augmentation = augmentation
        self.channel = channel or Channel()
        """The one way between server and clients."""
        self.progress = progress
        """Takes what is being done and which share of it is, for people."""
        self._probe = probe

        self.evaluation = Evaluation(
            task,
            normalise,
            test,
            validation,
            oracle_labels,
            oracle_allowed,
            looks,
            further_tests,
        )
        self.streams = Streams(setup)
        self.privacy = Privacy(setup, protection)
        self.networks = Networks(setup, self.channel, self.evaluation)
        trainer = Trainer(setup, self.streams, self.privacy, self.evaluation, progress)
        self.train = trainer.train
        self.train_on_clients = trainer.train_on_clients
        self.forward = trainer.forward
        self.stages = Stages(
            setup, stages, self.networks, trainer, self.privacy, self.evaluation, progress
        )
        self.local_models = self.stages.local_models
        loops = Rounds(self.channel, self.evaluation, self.privacy, self.stages, progress)
        self.rounds = loops.rounds
        self.steps = loops.steps

    def probe(self) -> LabelledSet:
        """The server's own labelled samples of the target task, which it may train on (FedSA,
        section 3.1: D_T).

        Raises ValueError if it has none: `partition.probe_share` sets a share of every class aside.
        """
        if self._probe is None:
            raise ValueError(
                "this method needs labelled data at the server; set partition.probe_share above 0"
            )
        return self._probe

    def upload(self, client: Client, checkpoint: Checkpoint) -> Checkpoint:
        """Send a checkpoint's parameters (BatchNorm buffers included) from client to server; what
        arrives is the same.
        """
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
        """Outputs (n, outputs) of a checkpoint on the public images, without augmentation; computed
        once.
        """
        return self.stages.public_outputs(checkpoint, self.public)

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
