"""FedMD+: FedMD in FedSA's problem, which agrees on features (Xie et al. 2022, Table 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import nn

from fedtables.federation.client import Shard
from fedtables.federation.data import Checkpoint, fetch
from fedtables.federation.federation import Federation
from fedtables.federation.inside.networks import HeterogeneousClientsError
from fedtables.federation.method import Method
from fedtables.federation.shared.amalgamation import Hinted, hint_loss, hinted_for, hints_of
from fedtables.federation.shared.learner import learn_probe
from fedtables.federation.training.inputs import Normalisation
from fedtables.federation.training.plan import TrainingPlan
from fedtables.results.numbers import Count, Positive


@dataclass(frozen=True)
class FedMDPlus(Method):
    """In every round the teachers send features of public images; the target digests their mean and
    revisits its own samples.

    The paper does not define it. Assumed: FedMD's steps (Li and Wang 2019, Algorithm 1:
    communicate, agree, digest, revisit) with features in place of logits, which teachers of other
    classes do not share; the public images are all of the server's, without labels. Teachers stay
    as they are: nothing they could revisit is of the target task.
    """

    title = "FedMD+"
    sends = frozenset({"features"})
    quick: ClassVar[Mapping[str, Any]] = {"rounds": 2, "public_samples": 100, "revisit_epochs": 8}

    rounds: Count = 20
    """Rounds of communication (FedMD's released code)."""
    public_samples: Count = 5_000
    """Public images in a round (FedMD's released code)."""
    digest_epochs: Count = 1
    """Epochs on the consensus in a round (FedMD's released code)."""
    digest_batch_size: Count = 256
    """Batch size of digest (FedMD's released code)."""
    digest_lr: Positive = 1e-3
    """Of Adam (FedMD's released code)."""
    revisit_epochs: Count = 4
    """Epochs on the probe set in a round (FedMD's released code)."""

    def fit(self, federation: Federation) -> Checkpoint:
        networks = sorted({client.network for client in federation.clients})
        if len(networks) > 1:
            raise HeterogeneousClientsError(
                f"FedMD+ averages features, so teachers must share one network; here are {networks}"
            )
        probe = federation.probe()
        teachers = [federation.networks.module(teacher) for teacher in federation.stages.teachers()]
        target = federation.networks.initial()
        hinted = hinted_for(federation, federation.clients[0], target)
        digest = TrainingPlan(self.digest_epochs, self.digest_batch_size, self.digest_lr)
        revisit = replace(federation.server, epochs=self.revisit_epochs)
        public = torch.cat(
            [federation.public.images, probe.images]
        )  # with a probe share of 1 no others are left
        for number in federation.rounds(self.rounds, hinted=hinted):
            drawn = federation.streams.shuffling("public", number).shuffled(len(public))[
                : self.public_samples
            ]
            images = fetch(public, drawn)
            consensus = self.agree(federation, teachers, hinted, images)
            federation.train(
                hinted,
                images,
                consensus,
                hint_loss,
                digest,
                "digest",
                number,
                augmented=False,
                label="digest",
            )
            learn_probe(federation, target, revisit, "revisit", number, label="revisit")
            federation.networks.check_finite(target)
            federation.evaluation.track(target)
        return federation.networks.checkpoint(target)

    def agree(
        self,
        federation: Federation,
        teachers: Sequence[nn.Module],
        hinted: Hinted,
        images: torch.Tensor,
    ) -> torch.Tensor:
        """The consensus: the mean of the teachers' features (n, c, h, w) of public images."""

        def answers(
            shard: Shard, normalise: Normalisation, teacher: nn.Module, received: torch.Tensor
        ) -> dict[str, torch.Tensor]:
            return {"features": hints_of(normalise, teacher, received, hinted.side)}

        mean = torch.zeros(())
        for client, teacher in zip(federation.clients, teachers, strict=True):
            received = federation.channel.down(client.index, "images", {"public": images})["public"]
            answer = client.run(
                answers, client.normalise or federation.normalise, teacher, received
            )
            features = federation.channel.up(client.index, "features", answer)["features"]
            mean = features if mean.ndim == 0 else mean + features
        return mean / len(teachers)
