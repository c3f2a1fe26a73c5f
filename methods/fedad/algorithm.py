"""FedAD's algorithm.

Clients train their own models to the end and answer for public images: logits, and the attention of
every class. The server weighs logits by the samples that clients hold of a class, and bounds its
own model's attention by what all of them look at and what any of them looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import nn

from fedtables.federation.client import Client
from fedtables.federation.data import Checkpoint, fetch
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.seeds import Stream
from fedtables.federation.shared.averaging import aligned, quantised, restored
from fedtables.federation.shared.consensus import are_kept, book_epoch, book_whole, parts_of
from fedtables.federation.shared.learner import learner_of
from fedtables.federation.shared.views import public_view
from fedtables.federation.tasks.images import placed
from fedtables.federation.training.loops import predict
from fedtables.federation.training.plan import Loss
from fedtables.methods.fedad.losses import (
    Answers,
    Asked,
    Ensemble,
    Received,
    joined,
    logit_loss,
    lower_loss,
    upper_loss,
)
from fedtables.models.catalogue import feature_shape
from fedtables.models.saliency import Attentive, NonLocalAttentive, apart, images_apart
from fedtables.privacy.plan import DP_SGD
from fedtables.results.names import check_known


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
            if isinstance(source, Asked):
                book_epoch(source.answer, len(parts), plan.batch_size)
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
            [client.size for client in federation.clients], device=federation.networks.device
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
    ) -> Answers | Ensemble | Asked:
        """Clients answer for uint8 images, whole; the ensemble of their answers, or the answers
        where steps draw from them, of what the server trains on of these images.
        """
        given, attention = (federation, clients, teachers, counts), 0
        if self.one_shot and self.attention(federation) == "non-local":
            _, seen = self.answer(federation, clients[0], teachers[0], images[:1])
            attention = 0 if seen is None else seen.numel()
        if self.keeps(federation, len(clients), attention):
            received, cut = self.received(*given, images, self.send), federation.public.cut
            if self.dropped:
                return self.answers(federation, received).cut(cut)
            parts = parts_of(received.logits[0])  # of all at once there would be several copies
            said = [self.answers(federation, received, part).ensemble() for part in parts]
            return joined(said).cut(cut)
        for client, teacher in zip(clients, teachers, strict=True):
            one = self.answer(federation, client, teacher, images[:1])
            for kind, values in zip(("logits", "attention"), one, strict=True):
                if values is not None:
                    book_whole(federation, client, kind, values, len(images))

        def answer(batch: torch.Tensor) -> Answers | Ensemble:
            received = self.received(
                *given, fetch(images, batch), lambda federation, client, kind, one: one
            )
            said = self.answers(federation, received)
            return said if self.dropped else said.ensemble()

        return Asked(answer)

    def keeps(self, federation: Federation, clients: int, attention: int = 0) -> bool:
        """Whether the server keeps the answers of so many clients, with so many values of attention
        for an image: else clients answer again for each batch. Those for augmented images are of an
        epoch alone, and the steps of quantised ones are of all images.
        """
        if not self.one_shot or self.quantised or not federation.task.dense:
            return True
        return are_kept(federation, clients, attention)

    def received(
        self,
        federation: Federation,
        clients: Sequence[Client],
        teachers: Sequence[nn.Module],
        counts: torch.Tensor,
        images: torch.Tensor,
        send: Callable[[Federation, Client, str, torch.Tensor], torch.Tensor],
    ) -> Received:
        """Clients' answers for images, each as `send` gives it."""
        task, side = federation.task, self.side(federation, federation.networks.server)
        logits, maps, labelled = [], [], []
        for client, teacher in zip(clients, teachers, strict=True):
            federation.progress(f"client {client.index + 1}/{len(federation.clients)} answers", 0.0)
            client_logits, seen = self.answer(federation, client, teacher, images)
            received = send(federation, client, "logits", client_logits)
            logits.append(placed(received, client.task, task))
            absent = placed(torch.zeros_like(client_logits[:1]), client.task, task).isnan()[0]
            labelled.append(~absent)
            if seen is not None:
                sent = send(federation, client, "attention", seen)
                maps.append(aligned(sent, side, client.task, task) if any(side) else sent)
        # What a client's label set lacks it holds no samples of, whatever its counts say; of a
        # pixel one class does for all.
        known = torch.stack(labelled).flatten(2)[:, :, 0] if task.dense else torch.stack(labelled)
        return Received(logits, maps, torch.where(known, counts, 0))

    def answers(
        self, federation: Federation, received: Received, part: slice = slice(None)
    ) -> Answers:
        """What the server has of the answers for images, or for a `part` of them."""
        logits, maps = received.of(part)
        if self.attention(federation) == "outputs":
            maps = [federation.task.probabilities(client_logits) for client_logits in logits]
        stacked = torch.stack(maps) if maps else None
        return Answers(torch.stack(logits), stacked, received.counts)

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

    def loss(
        self, federation: Federation, source: Answers | Ensemble | Asked, stream: Stream
    ) -> Loss:
        """Eq. 12 per image, (n,), of the student's outputs and the numbers of their images: mean of
        all terms over known classes.

        As typeset the formula may also average only the logit loss. A class is known if a client in
        the ensemble holds it.
        """
        task, server = federation.task, federation.networks.server

        def of(outputs: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
            said, rows = source, batch
            if isinstance(said, Asked):
                said, rows = said.answer(batch), torch.arange(len(batch), device=batch.device)
            if isinstance(said, Answers):
                kept = stream.shuffled(len(said.logits))[self.dropped :]
                target = said.some(kept, rows).ensemble()
            else:
                target = said.at(rows)
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
