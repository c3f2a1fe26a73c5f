"""FedAD: federated learning with privacy-preserving ensemble attention distillation (Gong et al.,
IEEE TMI).

Clients train their own models to the end and answer for public images: logits, and the attention of
every class. The server weighs logits by the samples that clients hold of a class, and bounds its
own model's attention by what all of them look at and what any of them looks at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import nn

from fedtables.federation.client import Client
from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.seeds import Stream
from fedtables.federation.shared.averaging import (
    aligned,
    attention_bounds,
    class_count_weights,
    quantised,
    restored,
)
from fedtables.federation.shared.learner import learner_of
from fedtables.federation.shared.views import public_view
from fedtables.federation.tasks.images import placed
from fedtables.federation.training.loops import predict
from fedtables.federation.training.plan import Loss
from fedtables.models.catalogue import feature_shape
from fedtables.models.saliency import Attentive, NonLocalAttentive, apart, images_apart
from fedtables.privacy.plan import DP_SGD
from fedtables.results.names import check_known

Cut = Callable[[torch.Tensor], torch.Tensor]
"""Takes answers for whole images (n, c, *sides), and gives those for their patches."""


def importance_weights(counts: torch.Tensor) -> torch.Tensor:
    """Eq. 4: N_k^c / sum_k N_k^c, (clients, C); all 0 for a class that no client holds."""
    return torch.where(counts.sum(dim=0) > 0, class_count_weights(counts), 0.0)


def ensemble_logits(logits: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Eq. 4: the sum of logits (clients, n, C) or (clients, n, C, *sides) with weights (clients,
    C).

    Logits whose weight is 0 do not count, whatever they are: NaN where a client does not know the
    class.
    """
    shares = weights.view(len(weights), 1, -1, *[1] * (logits.ndim - 3))
    return (torch.where(shares > 0, logits, 0.0) * shares).sum(dim=0)


def soft_mask(attention: torch.Tensor, rho: float, threshold: float) -> torch.Tensor:
    """Eq. 8: T(A) = 1 / (1 + exp(-rho (A - b)))."""
    return (rho * (attention - threshold)).sigmoid()


def lower_loss(
    attention: torch.Tensor,
    consensus: torch.Tensor,
    rho: float,
    threshold: float,
    scale: str = "printed",
) -> torch.Tensor:
    """Eq. 7, (n, C): minus the student's soft-masked maps (n, C, h, w), averaged by the weights I;
    0 where I is 0 everywhere.

    With the factor 1 / HW if `scale` is `printed`, without if it is `mean`.
    """
    return _support(consensus, soft_mask(attention, rho, threshold), scale)


def upper_loss(
    attention: torch.Tensor,
    diversity: torch.Tensor,
    rho: float,
    threshold: float,
    scale: str = "printed",
) -> torch.Tensor:
    """Eq. 9, (n, C): minus the soft-masked U, averaged by the student's maps; else as Eq. 7."""
    return _support(attention, soft_mask(diversity, rho, threshold), scale)


def _support(weights: torch.Tensor, values: torch.Tensor, scale: str) -> torch.Tensor:
    """Minus the weighted mean (n, C) of maps (n, C, *sides); times 1 / HW for `printed`."""
    sides = tuple(range(2, weights.ndim))
    total = weights.sum(dim=sides)
    mean = (weights * values).sum(dim=sides) / torch.where(total > 0, total, 1.0)
    return -mean / (math.prod(weights.shape[2:]) if scale == "printed" else 1)


def logit_loss(student: torch.Tensor, ensemble: torch.Tensor) -> torch.Tensor:
    """Eq. 5, (n, C): the absolute difference of logits (n, C), class by class as Eq. 12 sums it; of
    maps the mean over pixels.

    The paper names no order of the norm; of a single number all are the same.
    """
    difference = (student - ensemble).abs()
    sides = tuple(range(2, difference.ndim))
    return difference.mean(dim=sides) if sides else difference


@dataclass(frozen=True)
class Ensemble:
    """What the clients say together of n public images."""

    logits: torch.Tensor
    """Of Eq. 4; (n, C), or (n, C, *sides) of a dense task."""
    known: torch.Tensor
    """Which classes any client holds; bool (C,)."""
    consensus: torch.Tensor | None = None
    """I of Eq. 6, (n, C, h, w); None without bounds."""
    diversity: torch.Tensor | None = None
    """U of Eq. 6."""

    def at(self, images: torch.Tensor) -> Ensemble:
        """The same for some of the images (m,)."""
        return self.cut(lambda said: said[images])

    def cut(self, cut: Cut) -> Ensemble:
        """The same for what the server trains on of larger images."""
        if self.consensus is None or self.diversity is None:
            return Ensemble(cut(self.logits), self.known)
        return Ensemble(cut(self.logits), self.known, cut(self.consensus), cut(self.diversity))


@dataclass(frozen=True)
class Answers:
    """What each client has said of n public images."""

    logits: torch.Tensor
    """(clients, n, C, ...); NaN for a class that a client's label set lacks."""
    maps: torch.Tensor | None
    """Attention (clients, n, C, h, w); None without bounds."""
    counts: torch.Tensor
    """N_k^c, (clients, C)."""

    def some(self, clients: torch.Tensor, images: torch.Tensor) -> Answers:
        """The answers of some clients (k,) for some images (m,)."""
        chosen = (clients[:, None], images)
        return Answers(
            self.logits[chosen],
            None if self.maps is None else self.maps[chosen],
            self.counts[clients],
        )

    def cut(self, cut: Cut) -> Answers:
        """The answers for what the server trains on of larger images."""
        maps = None if self.maps is None else torch.stack([cut(seen) for seen in self.maps])
        return Answers(torch.stack([cut(said) for said in self.logits]), maps, self.counts)

    def ensemble(self) -> Ensemble:
        """Eq. 4 and 6."""
        holders = self.counts > 0
        bounds = () if self.maps is None else attention_bounds(self.maps, holders)
        logits = ensemble_logits(self.logits, importance_weights(self.counts))
        return Ensemble(logits, holders.any(dim=0), *bounds)


@dataclass(frozen=True)
class FedAD(Method):
    """Ensemble attention distillation, Eq. 4 to 12. Networks and label sets may differ between
    clients.

    For segmentation a class's attention is its predicted probability (section 3.3.1, at temperature
    1), which the server computes from the logits. For reconstruction it is that of the networks'
    non-local block (Eq. 14), between any two positions of its map, which clients send beside the
    images (Eq. 16). Clients weigh by their samples in both, as Eq. 13 has it of reconstruction:
    section 3.3.1 names no weights, and how many pixels of a class a client holds would be one more
    thing to send.
    """

    title = "FedAD"
    sends = frozenset({"labels", "logits", "attention"})
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: sends}

    bounds: bool = True
    """Whether attention is bounded, by Eq. 7 and 9; without, none is computed or sent (Table 2)."""
    upper: bool = True
    """Whether the bounds are both, or Eq. 7's alone (Table 6)."""
    ensemble: str = "weighted"
    """Weights of clients: `weighted`, Eq. 4 and 13, or `average` (Table 6's first column)."""
    dropped: int = 0
    """Local models left out of a step's ensemble, drawn anew in every step (assumed): K times Table
    2's dropout rate, which the paper does not define."""
    one_shot: bool = False
    """True: clients answer once, for the plain public images (section 4: for segmentation and
    reconstruction). False: in every epoch, for freshly augmented ones."""
    rho: float = 10.0
    """Steepness of the soft mask of Eq. 8; the paper names none (assumed)."""
    threshold: float = 0.5
    """Middle b of the soft mask of Eq. 8; the paper names none (assumed)."""
    bound_scale: str = "printed"
    """`printed`: Eq. 7 and 9 with their factor 1 / HW, which makes them tiny; `mean`: without."""
    second_order: bool = True
    """Whether the bounds' gradient also flows through the channels' weights of Eq. 10, as written;
    the code of FedAD's sister paper FedKD holds these fixed."""
    quantised: bool = False
    """Whether answers cross as bytes, 256 steps for each class, rather than float32 (ours)."""

    def __post_init__(self) -> None:
        check_known(self, bound_scale=("printed", "mean"), ensemble=("weighted", "average"))
        if self.dropped < 0 or not self.rho > 0:
            raise ValueError(f"dropped must be at least 0 and rho above 0: {self}")

    def fit(self, federation: Federation) -> Checkpoint:
        plan = federation.server
        able = [client for client in federation.clients if client.size]
        if self.dropped >= len(able):
            raise ValueError(
                f"{self.dropped} local models cannot be left out of {len(able)}; lower dropped"
            )
        local = federation.local_models()
        teachers = [federation.networks.module(local[client.index]) for client in able]
        counts = self.class_counts(federation)[[client.index for client in able]]
        student = learner_of(plan, federation.networks.initial())
        attentive = self.attentive(federation, student.module)
        images, cut = federation.public.images, federation.public.cut
        once = self.transfer(federation, able, teachers, counts, images) if self.one_shot else None
        for number in federation.rounds(plan.epochs, alike=True, **student.parts("student")):
            images = images if once else public_view(federation, number)
            source = once or self.transfer(federation, able, teachers, counts, images)
            parts = cut(images)
            federation.train(
                attentive,
                parts,
                torch.arange(len(parts), device=parts.device),
                self.loss(federation, source, federation.streams.shuffling("dropped", number)),
                replace(plan, epochs=1),
                "student",
                number,
                optimizer=student.optimizer,
                schedule=student.schedule,
                augmented=False,
                label="global model",
            )
            federation.evaluation.track(attentive)
        return federation.networks.checkpoint(student.module)

    def attention(self, federation: Federation) -> str:
        """What attention is: `grad-cam` of the scores of whole images, the `outputs` themselves of
        a dense task of classes, that of the network's `non-local` block of another dense task, or
        empty without bounds.
        """
        task = federation.task
        if not self.bounds:
            return ""
        return "grad-cam" if not task.dense else "non-local" if task.classes is None else "outputs"

    def attentive(
        self, federation: Federation, model: nn.Module, *, always: bool = False
    ) -> nn.Module:
        """The network with its attention beside its outputs, where attention is the network's."""
        kind = self.attention(federation)
        if kind == "non-local" and federation.public.window is not None:
            raise ValueError("attention between positions is of whole images, not of windows")
        if kind == "grad-cam":
            compiled = federation.networks.execution.compiled and not always
            second = self.second_order and not always
            return Attentive(model, always=always, second_order=second, eager=compiled)
        return NonLocalAttentive(model, always=always) if kind == "non-local" else model

    def parted(
        self, federation: Federation, both: torch.Tensor, outputs: int, network: str
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Outputs and attention maps of what `attentive` gives, of a network with so many
        outputs; None where attention is not the network's.
        """
        kind = self.attention(federation)
        if kind == "grad-cam":
            return apart(both, outputs, self.side(federation, network))
        if kind == "non-local":
            return images_apart(both, (outputs, *federation.networks.image_shape[1:]))
        return both, None

    def side(self, federation: Federation, network: str) -> tuple[int, int]:
        """Height and width of the map at which a network's Grad-CAM is taken, the encoder's last;
        (0, 0) where there is none.
        """
        if self.attention(federation) != "grad-cam":
            return 0, 0
        channels, *sides = federation.networks.image_shape
        return feature_shape(network, channels, tuple(sides))[1:]

    def class_counts(self, federation: Federation) -> torch.Tensor:
        """N_k^c of all clients, (clients, C), as they send it; of a dense task |D_k|, which the
        server knows. What there is of each is one if clients count alike.
        """
        if not federation.task.dense:
            counts = federation.label_counts()
            return counts if self.ensemble == "weighted" else (counts > 0).to(counts)
        sizes = torch.tensor(
            [client.size for client in federation.clients], device=federation.public.images.device
        )
        if self.ensemble == "average":
            sizes = torch.ones_like(sizes)
        return sizes[:, None].expand(-1, federation.task.outputs)

    def transfer(
        self,
        federation: Federation,
        clients: Sequence[Client],
        teachers: Sequence[nn.Module],
        counts: torch.Tensor,
        images: torch.Tensor,
    ) -> Answers | Ensemble:
        """Clients answer for uint8 images, whole; the ensemble of their answers, or the answers
        where steps draw from them, of what the server trains on of these images.
        """
        task, side = federation.task, self.side(federation, federation.networks.server)
        logits, maps, labelled = [], [], []
        for client, teacher in zip(clients, teachers, strict=True):
            federation.progress(f"client {client.index + 1}/{len(federation.clients)} answers", 0.0)
            client_logits, seen = self.answer(federation, client, teacher, images)
            received = self.send(federation, client, "logits", client_logits)
            logits.append(placed(received, client.task, task))
            absent = placed(torch.zeros_like(client_logits[:1]), client.task, task).isnan()[0]
            labelled.append(~absent)
            if seen is not None:
                sent = self.send(federation, client, "attention", seen)
                maps.append(aligned(sent, side, client.task, task) if any(side) else sent)
        if self.attention(federation) == "outputs":
            maps = [task.probabilities(client_logits) for client_logits in logits]
        # What a client's label set lacks it holds no samples of, whatever its counts say; of a
        # pixel one class does for all.
        known = torch.stack(labelled).flatten(2)[:, :, 0] if task.dense else torch.stack(labelled)
        answers = Answers(
            torch.stack(logits), torch.stack(maps) if maps else None, torch.where(known, counts, 0)
        )
        cut = federation.public.cut
        return answers.cut(cut) if self.dropped else answers.ensemble().cut(cut)

    def answer(
        self, federation: Federation, client: Client, teacher: nn.Module, images: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """On the client: outputs of its own classes (n, c, ...), and their attention maps (n, c, h,
        w) if these are the network's own.
        """
        attentive = self.attentive(federation, teacher, always=True)
        normalise, window = federation.normalise, federation.public.window
        both = client.run(
            lambda shard: predict(attentive, images, normalise=normalise, window=window)
        )
        outputs = (client.task or federation.task).outputs
        return self.parted(federation, both, outputs, client.network)

    def send(
        self, federation: Federation, client: Client, kind: str, values: torch.Tensor
    ) -> torch.Tensor:
        """What the server receives of a client's values (n, c, ...)."""
        if self.quantised:
            return restored(federation.channel.up(client.index, kind, quantised(values)))
        return federation.channel.up(client.index, kind, {kind: values})[kind]

    def loss(self, federation: Federation, source: Answers | Ensemble, stream: Stream) -> Loss:
        """Eq. 12 per image, (n,), of the student's outputs and the numbers of their images: mean of
        all terms over known classes.

        As typeset the formula may also average only the logit loss. A class is known if a client in
        the ensemble holds it.
        """
        task, server = federation.task, federation.networks.server

        def of(outputs: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
            if isinstance(source, Answers):
                kept = stream.shuffled(len(source.logits))[self.dropped :]
                target = source.some(kept, batch).ensemble()
            else:
                target = source.at(batch)
            logits, attention = self.parted(federation, outputs, task.outputs, server)
            if self.attention(federation) == "outputs":
                attention = task.probabilities(outputs)
            terms = logit_loss(logits, target.logits)
            if (
                attention is not None
                and target.consensus is not None
                and target.diversity is not None
            ):
                how = (self.rho, self.threshold, self.bound_scale)
                terms = terms + lower_loss(attention, target.consensus, *how)
                if self.upper:
                    terms = terms + upper_loss(attention, target.diversity, *how)
            return (terms * target.known).sum(dim=1) / target.known.sum().clamp(min=1)

        return of
