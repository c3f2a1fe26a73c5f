"""Knowledge amalgamation: a target network visits private servers, whose teachers it learns
features from.

What FedSA (Xie et al. 2022) and the baselines that it modified for its problem are written with. A
teacher never leaves its client; what travels is the target network, and what it looks like after a
visit: the local student.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from fedtables.datasets.decoded import is_kept, scratch
from fedtables.federation.channel import Packed
from fedtables.federation.client import Client, Shard
from fedtables.federation.costs import active_meter
from fedtables.federation.data import Checkpoint, TrainingSet, state_of
from fedtables.federation.federation import Federation
from fedtables.federation.memory import Memory
from fedtables.federation.samples import aside
from fedtables.federation.shared.averaging import average_states
from fedtables.federation.shared.learner import learn_probe
from fedtables.federation.training.inputs import Normalisation
from fedtables.federation.training.loops import predict, predictions
from fedtables.federation.training.plan import Penalty, TrainingPlan
from fedtables.models.catalogue import feature_shape
from fedtables.models.cut import Encoder, FixedEncoder, Translator, encode, pooled
from fedtables.results.names import check_known
from fedtables.results.numbers import Count, Positive

ADAPTATIONS = ("decoder", "fine-tune", "all")


def hint_loss(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Eq. 4 per sample, (n,): half the squared distance of the translated student's and the
    teacher's maps (n, c, h, w).
    """
    return (student - teacher).square().flatten(1).sum(dim=1) / 2


class Hinted(nn.Module):
    """The local student's encoder and the translator: from images to what is compared with the
    teacher's features.

    Maps are compared at `side`, the smaller height and width of the two networks'.
    """

    def __init__(self, student: nn.Module, translator: Translator, side: tuple[int, int]):
        super().__init__()
        self.student = student
        self.translator = translator
        self.side = side

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        translated: torch.Tensor = self.translator(pooled(encode(self.student, images), self.side))
        return translated


def hinted_for(federation: Federation, client: Client, student: nn.Module) -> Hinted:
    """`student`, of the federation's network, with a new translator to the features of the client's
    teacher.
    """
    channels, *sides = federation.networks.image_shape
    student_shape, teacher_shape = (
        feature_shape(name, channels, tuple(sides))
        for name in (federation.networks.server, client.network)
    )
    translator = federation.networks.new_module(
        lambda: Translator(student_shape[0], teacher_shape[0]), "translator", client.index
    )
    return Hinted(
        student,
        translator,
        (min(student_shape[1], teacher_shape[1]), min(student_shape[2], teacher_shape[2])),
    )


def hints_of(
    normalise: Normalisation, teacher: nn.Module, images: torch.Tensor, side: tuple[int, int]
) -> torch.Tensor:
    """A teacher's features of uint8 images, which it sees by `normalise`; (n, c, *side): what
    hinted students learn.
    """
    return pooled(predict(Encoder(teacher), images, normalise=normalise), side)


def private_hints(
    shard: Shard, normalise: Normalisation, teacher: nn.Module, side: tuple[int, int]
) -> torch.Tensor:
    """On a client: `hints_of` the private images, kept on its disk if they are large, else in the
    host's memory.
    """
    images, meter = shard.images, active_meter()
    if meter is not None:
        hints = hints_of(normalise, teacher, images, side)
        return meter.keep(hints, Memory() if is_kept(hints.shape) else Memory(0, hints.nbytes))
    kept, done = torch.empty(0), 0
    for part in predictions(Encoder(teacher), images, normalise=normalise):
        seen = pooled(part, side)
        if not done:
            kept = torch.from_numpy(scratch((len(images), *seen.shape[1:])))
        kept[done : done + len(seen)] = seen
        done += len(seen)
    return kept


def learn_by_hints(
    federation: Federation,
    visits: Sequence[tuple[Client, Hinted, torch.Tensor]],
    plan: TrainingPlan,
    *names: object,
    penalties: Sequence[Penalty | None] = (),
) -> None:
    """On each client: the student and its translator learn the teacher's features, which are hints
    that the host holds, of the private images, as they are. `names` are those of the streams
    beside the client.
    """

    def with_hints(hints: torch.Tensor, shard: Shard) -> TrainingSet:
        images = shard.images
        return TrainingSet(images, hints.to(images.device))

    federation.train_on_clients(
        [(client, hinted) for client, hinted, _ in visits],
        plan,
        *names,
        penalties=penalties,
        samples=[functools.partial(with_hints, hints) for _, _, hints in visits],
        loss=hint_loss,
        augmented=False,
    )


class Visits:
    """Visits of a target network to the clients' teachers; every client keeps a translator of its
    own from visit to visit, and its teacher's features of its images from the first on.
    """

    def __init__(self, federation: Federation, teachers: Sequence[Checkpoint]):
        self._federation = federation
        together = min(federation.networks.execution.stacked, len(federation.clients))
        self._students = [federation.networks.initial() for _ in range(together)]
        self._hinted = hinted = [
            hinted_for(federation, client, self._students[0]) for client in federation.clients
        ]

        def hints(index: int) -> torch.Tensor:
            client, teacher = federation.clients[index], federation.networks.module(teachers[index])
            return client.run(
                private_hints,
                client.normalise or federation.normalise,
                teacher,
                hinted[index].side,
            )

        self._hints = functools.cache(hints)  # neither teachers nor private images ever change

    @property
    def parts(self) -> dict[str, Any]:
        """What an interrupted fit takes over."""
        return {
            f"translator-{index}": hinted.translator for index, hinted in enumerate(self._hinted)
        }

    def aggregate(
        self,
        target: nn.Module,
        weights: Mapping[int, float],
        plan: TrainingPlan,
        number: int,
        penalty: Callable[[nn.Module], Penalty | None],
    ) -> None:
        """A round: the target visits the clients in `weights`, and becomes the weighted mean of its
        local students (Eq. 5).

        `plan` is that of a local student, `number` the round's. `penalty`, given the student with
        the weights that it has just received, is a term that a client adds to the hint loss.
        """
        students = self._local_students(target, list(weights), plan, number, penalty)
        target.load_state_dict(average_states(students, list(weights.values())))
        self._federation.networks.check_finite(target)

    def _local_students(
        self,
        target: nn.Module,
        visited: Sequence[int],
        plan: TrainingPlan,
        number: int,
        penalty: Callable[[nn.Module], Penalty | None],
    ) -> Iterator[dict[str, torch.Tensor]]:
        """SelectiveKA of FedSA's Algorithm 1, client by client, or of as many as are trained
        together, whose hints are on the device at a time: the target down, hints learnt from, the
        local student up.
        """
        channel, sent = self._federation.channel, Packed(state_of(target))
        for start in range(0, len(visited), len(self._students)):
            group = list(zip(visited[start:], self._students, strict=False))
            visits = []
            for index, student in group:
                student.load_state_dict(channel.down(index, "parameters", sent))
                hinted = self._hinted[index]
                hinted.student = student
                visits.append((self._federation.clients[index], hinted, self._hints(index)))
            learn_by_hints(
                self._federation,
                visits,
                plan,
                "round",
                number,
                penalties=[penalty(student) for _, student in group],
            )
            for index, student in group:
                yield channel.up(index, "parameters", state_of(student))


def train_weak(federation: Federation, target: nn.Module, epochs: int, number: int) -> None:
    """FedSA's Algorithm 1, line 4: the target network learns from the labelled probe set before
    round `number`.
    """
    learn_probe(
        federation,
        target,
        replace(federation.server, epochs=epochs),
        "weak",
        number,
        label="weak target",
    )


def adapt(
    federation: Federation, target: nn.Module, how: str, epochs: int, number: int
) -> nn.Module:
    """Adaptation to the task after round `number`, of a copy: by training on the probe set.

    `how` is `decoder` (FedSA's section 3.2), `fine-tune` for all parameters, or `all` of them under
    a new head (released code).
    """
    adapted = federation.networks.initial()
    adapted.load_state_dict(state_of(target))
    if how == "all":
        adapted = federation.networks.replace_head(
            adapted, federation.task.outputs, "adaptation", number
        ).to(federation.networks.device)
    learn_probe(
        federation,
        FixedEncoder(adapted) if how == "decoder" else adapted,
        replace(federation.server, epochs=epochs),
        "adaptation",
        number,
        label="adaptation",
    )
    return adapted


@dataclass(frozen=True)
class Amalgamation:
    """Rounds in which a target network visits teachers, and its adaptation in the end."""

    rounds: Count = 50
    """T, rounds of communication (FedSA's released code)."""
    weak_epochs: int = 10
    """Epochs on the probe set before teachers are chosen (FedSA's released code)."""
    local_epochs: Count = 10
    """E, epochs of a local student (FedSA's released code)."""
    local_lr: Positive = 1e-3
    """Of Adam, for student and translator (assumed; FedSA's released code has 0.1)."""
    local_batch_size: Count = 64
    """Private images in a step of a local student (FedSA's released code)."""
    adaptation: str = "decoder"
    """What learns in the end: the `decoder` (FedSA, section 3.2); `fine-tune`, all (section 4.2);
    `all` under a new head (FedSA's released code)."""
    adaptation_epochs: int = 30
    """Epochs of adaptation on the probe set (FedSA's released code)."""
    adaptation_gap: int = 0
    """Rounds between looks at a copy that is adapted (FedSA's released code: 10); 0 for none before
    the end."""

    def __post_init__(self) -> None:
        check_known(self, adaptation=ADAPTATIONS)

    def fit(self, federation: Federation) -> Checkpoint:
        teachers = federation.stages.teachers()
        target = federation.networks.initial()
        maps = self.ask_for_maps(federation, teachers)
        visits, chosen = Visits(federation, teachers), Chosen()
        local = TrainingPlan(self.local_epochs, self.local_batch_size, self.local_lr)
        how = (self.adaptation, self.adaptation_epochs)
        for number in federation.rounds(self.rounds, target=target, chosen=chosen, **visits.parts):
            chosen.weights = self.choose(federation, target, maps, number) or chosen.weights
            visits.aggregate(target, chosen.weights, local, number, self.penalty)
            if self.adaptation_gap and number % self.adaptation_gap == 0 and number < self.rounds:
                with aside():  # what this look takes is not of the method's budget
                    federation.evaluation.track(adapt(federation, target, *how, number))
        adapted = adapt(federation, target, *how, self.rounds)
        federation.evaluation.track(adapted)
        return federation.networks.checkpoint(adapted)

    def ask_for_maps(
        self, federation: Federation, teachers: Sequence[Checkpoint]
    ) -> list[torch.Tensor]:
        """What the teachers send before the first round, for `choose`."""
        return []

    def choose(
        self, federation: Federation, target: nn.Module, maps: Sequence[torch.Tensor], number: int
    ) -> dict[int, float]:
        """Weights by client of the teachers that take part from round `number` on; empty where
        those of the round before do. The target may be trained before.
        """
        raise NotImplementedError

    def penalty(self, student: nn.Module) -> Penalty | None:
        """A term that is added to the hint loss; `student` has just been received."""
        return None


class Chosen:
    """Weights of the teachers until the next selection, by client; snapshots keep them."""

    def __init__(self) -> None:
        self.weights: dict[int, float] = {}

    def state_dict(self) -> dict[str, Any]:
        return {"weights": self.weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.weights = dict(state["weights"])
