"""`attack --target fedkd | fediod`: what an attacker gets from what clients answer, measured
against the mean image.

A small federation trains as FedIOD's Table 1 has it, each client its own model to completion, and
answers as the method says: FedKD's clients send logits for the public images; FedIOD's, for the
server's images of the first distillation step, logits, patch scores and the mean score of their own
images, and, for what the server asks of these, the gradient with respect to the images. The
attacker is the server. It knows network, initial weights, learning rate, what it sent, and no
label; it chooses a dummy image and label such that a model that came from the initial one by a few
steps of plain SGD on them, would have answered so (`privacy.attacks.outputs`). What it finds is
compared with the nearest of the client's images, and so is the mean of the public images, which
takes no attack. This is one attack; that it fails bounds no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from benchmarks.attacks.attack import in_processes
from benchmarks.measures.reconstruction import double, to_units
from benchmarks.papers.fediod import PAPER
from benchmarks.running.execute import make_method, prepare_device
from benchmarks.scenarios.scenario import build_federation
from benchmarks.tables import registry
from benchmarks.tables.spec import Scalar
from datasets import catalogue
from datasets.catalogue import ResolvedData
from federation.client import Client
from federation.execution import DEFAULT
from federation.federation import Checkpoint, Federation
from federation.seeds import AXES, Seeds
from federation.stages import Stage, StageCache, StageRequest, content_digest
from federation.training import unit_range
from methods.fediod import FedIOD
from methods.fediod.losses import aggregate, discriminator_loss, ensemble_weights, mimic_loss
from methods.fediod.parties import generate, make_nodes, make_server
from metrics.images import psnr
from models.generative import PatchDiscriminator
from privacy.attacks.outputs import Answer, logits_after, match_answers, trained_weights
from privacy.attacks.threat import ThreatModel
from reports.drawing.pictures import image_rows
from results.files import cache_home, canonical_json, digest, write_atomic
from results.sourcecode import package_versions
from results.store import format_value, write_csv

TARGETS = ("fedkd", "fediod")
COLUMNS = (
    "client",
    "samples",
    "accuracy",
    "distance",
    "recovered_label",
    "nearest_label",
    "psnr",
    "psnr_mean_image",
    "nearer",
)


@dataclass(frozen=True)
class Inquiry:
    """An attack on what every client of a small federation answers."""

    data: ResolvedData
    target: str
    """`fedkd` or `fediod`."""
    network: str = "lenet-sigmoid"
    """Of clients and server."""
    clients: int = 5
    """All of them are attacked."""
    samples: int = 200
    """Images per client, on average: the partition is that of FedIOD's Table 1 at alpha = 1."""
    public: int = 100
    """Public images: those of the clients' data set that none of them holds."""
    epochs: int = 50
    """Of local training; optimiser and learning rate are those of Table 1's cpu profile, in batches
    of 16, not augmented."""
    threat: ThreatModel = field(
        default_factory=lambda: ThreatModel("update", local_steps=5, local_lr=0.05)
    )
    """The few steps that stand for the client's training: the attacker's guess, not what the client
    did."""
    iterations: int = 50
    """Steps of L-BFGS, of up to 25 evaluations each."""
    restarts: int = 1
    """Starts; the one of the lowest distance counts."""
    image_size: int = 0
    """Pixels of a side; 0 for the data set's own."""
    seed: int = 0
    """Of partition, weights, training and starts."""

    def __post_init__(self) -> None:
        if self.target not in TARGETS:
            raise ValueError(f"unknown target {self.target!r}; known: {', '.join(TARGETS)}")
        if self.threat.images != 1:
            raise ValueError(
                f"{self.target} is attacked with one dummy image, not {self.threat.images}"
            )
        if min(self.clients, self.samples, self.public) < 1:
            raise ValueError(f"clients, samples and public images must be at least 1: {self}")

    @property
    def messages(self) -> int:
        """How many clients are attacked, at most."""
        return self.clients

    @property
    def stem(self) -> str:
        """Names the files: what is attacked, and a digest of all settings."""
        rest = digest([asdict(self)])[:8]
        return f"{self.data.asked}-{self.network}-{self.target}-seed{self.seed}-{rest}"

    def config(self) -> dict[str, Scalar]:
        """The configuration of Table 1's row in the cpu profile, with this inquiry's sizes."""
        table = next(table for table in PAPER.tables if table.key == "table1")
        row = next(row for row in table.rows if row.key == self.target)
        config = PAPER.config(table, row, {"dataset": "cifar10", "alpha": "1"}, "cpu", "paper")
        del config["public.name"]
        return config | {
            "data.name": self.data.asked,
            "data.image_size": self.image_size or catalogue.source(self.data.used).shape[1],
            "network.client": self.network,
            "network.server": self.network,
            "partition.clients": self.clients,
            "partition.pool_limit": self.clients * self.samples,
            "partition.public_share": 0.2,
            "partition.public_limit": self.public,
            "partition.test_limit": 500,
            "local.epochs": self.epochs,
            "local.batch_size": 16,
            "augmentation.crop": 0,
            "augmentation.horizontal_flip": False,
            "augmentation.cutout": 0,
        }

    def federation(self) -> Federation:
        """The federation, its stages in the cache on disk. Raises DataError for an impossible
        partition.
        """
        seeds = Seeds(*[self.seed] * len(AXES))
        stages = StageCache(cache_home() / "stages")
        return build_federation(
            self.config(), self.data, seeds, stages, registry.find_method(self.target).load()
        )

    def __str__(self) -> str:
        return f"matching what {self.target} clients answer, {self.network}, {self.data.label}"


@dataclass(frozen=True)
class Finding:
    """What the attack found of one client, as arrays that can cross between processes."""

    client: int
    samples: int
    accuracy: float
    """Of the client's model on test images."""
    recovered: np.ndarray
    """Shape (c, h, w), in [0, 1]; also `nearest` and `mean`."""
    recovered_label: int
    distance: float
    """Relative, of the dummy's answers to the client's."""
    nearest: np.ndarray
    """The client's image of the highest PSNR to `recovered`."""
    nearest_label: int
    psnr: float
    """Of `recovered` to `nearest`, dB."""
    mean: np.ndarray
    """The mean of the public images."""
    psnr_mean: float
    """Of `mean` to the client's image that is nearest to it, dB."""


@dataclass(frozen=True)
class Observed:
    """What the attacker has: the client's answers, and how to compute those of a dummy."""

    answers: tuple[Tensor, ...]
    """Less what the initial networks would have answered, which the attacker knows; float64."""
    answer: Answer


def observe_fedkd(
    inquiry: Inquiry, federation: Federation, teachers: Sequence[Checkpoint], client: Client
) -> Observed:
    """The client's logits (m, classes) for the public images, as FedKD's one-shot mode sends
    them.
    """
    probes = federation.normalise(unit_range(federation.public.images))
    logits = federation.public_outputs(teachers[client.index])
    sent = federation.channel.up(client.index, "logits", {"logits": logits})["logits"]
    return _observed(
        double(federation.initial(client.network)).eval(), probes.double(), inquiry.threat, sent
    )


def _observed(model: nn.Module, probes: Tensor, threat: ThreatModel, sent: Tensor) -> Observed:
    base = model(probes).detach()

    def answer(images: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        return (logits_after(model, images, labels, threat, probes) - base,)

    return Observed((sent.double() - base,), answer)


@dataclass(frozen=True)
class Exchange:
    """What crosses between the server and one client of FedIOD in a distillation step, float64."""

    images: Tensor
    """x (m, c, h, w), as networks take them."""
    logits: Tensor
    """T_k(x), (m, classes)."""
    scores: Tensor
    """Patch scores D_k(x), (m, h / 4, w / 4)."""
    own: Tensor
    """E[D_k(x')], a scalar."""
    asked: tuple[Tensor, Tensor]
    """The server's gradients with respect to logits and scores."""
    gradient: Tensor
    """The client's, with respect to x."""


def first_step(method: FedIOD, federation: Federation, client: Client) -> Exchange:
    """The first distillation step of FedIOD, as its server and the client see it."""
    nodes = make_nodes(method, federation)
    server = make_server(method, federation, nodes)
    latents = federation.stream("fediod latents", 1)
    images = generate(method, federation, server.generator.module, latents).detach()
    received = [images.clone().requires_grad_() for _ in nodes]
    for node in nodes:
        node.begin_epoch(1)
    answers = [node.answer(asked) for node, asked in zip(nodes, received, strict=True)]
    logits, scores, own = (torch.stack(part) for part in zip(*answers, strict=True))
    weights = ensemble_weights(method.weights, server.pi, server.counts, scores.detach(), own)
    mimic = mimic_loss(
        federation.forward(server.student.module, images),
        aggregate(logits, weights),
        method.temperature,
    )
    loss = method.generator_loss(logits, scores, mimic, server.pi)
    asked_logits, asked_scores = torch.autograd.grad(loss, (logits, scores), retain_graph=True)
    position = [node.client.index for node in nodes].index(client.index)
    (gradient,) = torch.autograd.grad(loss, received[position])
    seen = (
        images,
        logits[position],
        scores[position],
        own[position],
        asked_logits[position],
        asked_scores[position],
        gradient,
    )
    x, t, d, e, asked_t, asked_d, feedback = (tensor.detach().double() for tensor in seen)
    return Exchange(x, t, d, e, (asked_t, asked_d), feedback)


def observe_fediod(inquiry: Inquiry, federation: Federation, client: Client) -> Observed:
    """What the client answers in the first distillation step: logits, patch scores, E[D_k(x')], and
    the gradient by x.
    """
    method = make_method(registry.find_method("fediod"), inquiry.config())
    assert isinstance(method, FedIOD)
    seen = first_step(method, federation, client)
    teacher = double(federation.initial(client.network)).eval()
    channels = federation.image_shape[0]
    critic = double(
        federation.new_module(
            lambda: PatchDiscriminator(channels, method.discriminator_width), "discriminator"
        )
    ).train()

    def answers_of(
        weights: Mapping[str, Tensor], critic_weights: Mapping[str, Tensor], own: Tensor
    ) -> tuple[Tensor, ...]:
        x = seen.images.clone().requires_grad_()
        logits, scores = (
            functional_call(teacher, dict(weights), (x,)),
            _critic(critic, critic_weights, x),
        )
        (gradient,) = torch.autograd.grad((logits, scores), x, seen.asked, create_graph=True)
        return logits, scores, own, gradient

    initial = dict(critic.named_parameters())
    known = answers_of(
        dict(teacher.named_parameters()), initial, torch.zeros((), dtype=torch.float64)
    )
    base = [part.detach() for part in known]

    def answer(images: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        weights = trained_weights(teacher, images, labels, inquiry.threat)
        critic_weights, own = _critic_step(method, critic, initial, seen.images, images)
        return tuple(
            a - b for a, b in zip(answers_of(weights, critic_weights, own), base, strict=True)
        )

    sent = (seen.logits, seen.scores, seen.own, seen.gradient)
    return Observed(tuple(a - b for a, b in zip(sent, base, strict=True)), answer)


def _critic(critic: nn.Module, weights: Mapping[str, Tensor], images: Tensor) -> Tensor:
    """Patch scores with these weights, in training mode, as the client's is; buffers stay as they
    are.
    """
    buffers = {name: buffer.clone() for name, buffer in critic.named_buffers()}
    scores: Tensor = functional_call(critic, {**weights, **buffers}, (images,))
    return scores


def _critic_step(
    method: FedIOD,
    critic: nn.Module,
    weights: Mapping[str, Tensor],
    generated: Tensor,
    dummy: Tensor,
) -> tuple[dict[str, Tensor], Tensor]:
    """D_k after its step on x and a batch of the dummy image, and E[D_k(x')] before it;
    differentiable by the dummy.

    Adam's first step follows the gradient's sign, which has no derivative; here each weight moves
    by lr g / (|g| + r), r being the root mean square of g over its tensor.
    """
    own = _critic(critic, weights, dummy.expand(len(generated), *dummy.shape[1:]))
    loss = discriminator_loss(_critic(critic, weights, generated), own, method.logarithmic)
    gradients = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
    moved = {
        name: (
            weight.detach() - method.generator_lr * g / (g.abs() + g.square().mean().sqrt() + 1e-12)
        )
        for (name, weight), g in zip(weights.items(), gradients, strict=True)
    }
    return moved, own.sigmoid().mean()


def attack_client(inquiry: Inquiry, position: int) -> Finding:
    """Attack what the client at `position` of the federation answers; a stage, as its training
    is.
    """
    federation = inquiry.federation()
    client, teachers = federation.clients[position], federation.local_models()
    seen = (
        observe_fediod(inquiry, federation, client)
        if inquiry.target == "fediod"
        else observe_fedkd(inquiry, federation, teachers, client)
    )
    start = federation.seeds.torch("attack", inquiry.target, client.index)

    def compute() -> Stage:
        found = match_answers(
            seen.answer,
            seen.answers,
            federation.image_shape,
            federation.task.outputs,
            1,
            generator=start,
            iterations=inquiry.iterations,
            restarts=inquiry.restarts,
        )
        image = to_units(found.images, federation.normalise).float()[0]
        return Stage(
            {"image": image, "label": found.labels.argmax(dim=1)}, {"distance": found.distance}
        )

    observed = content_digest({str(number): part for number, part in enumerate(seen.answers)})
    inputs = {
        "inquiry": asdict(inquiry),
        "client": client.index,
        "observed": observed,
        "normalise": repr(federation.normalise),
        "start": start.initial_seed(),
    }
    request = StageRequest(
        "answers", f"client {client.index + 1} ({inquiry.target})", inputs, compute, __name__
    )
    stage = federation.stages.get(request)
    images, targets = client.run(lambda shard: (unit_range(shard.images), shard.targets))
    recovered, mean = stage.tensors["image"], unit_range(federation.public.images).mean(dim=0)
    near, near_mean = (
        psnr(recovered.expand_as(images), images),
        psnr(mean.expand_as(images), images),
    )
    nearest = int(near.argmax())
    return Finding(
        client.index,
        client.size,
        teachers[position].history["accuracy"][-1],
        recovered.numpy(),
        int(stage.tensors["label"]),
        stage.info["distance"],
        images[nearest].numpy(),
        int(targets[nearest]),
        float(near.max()),
        mean.numpy(),
        float(near_mean.max()),
    )


def run(inquiry: Inquiry, jobs: int, done: Callable[[], None]) -> list[Finding]:
    """The attack on every client that holds images. Raises ValueError for what network or data
    cannot do.
    """
    prepare_device("cpu", 1, DEFAULT)  # as the workers, whose stages are keyed by it
    federation = inquiry.federation()
    # Before the clients are attacked side by side, so that none waits for another's training
    federation.local_models()
    able = [client.index for client in federation.clients if client.size]
    return in_processes(partial(attack_client, inquiry), able, jobs, done)


def lines(findings: Sequence[Finding]) -> list[dict[str, str]]:
    """A line of the CSV for each client."""
    return [
        {
            "client": str(found.client + 1),
            "samples": str(found.samples),
            "accuracy": format_value(found.accuracy),
            "distance": format_value(found.distance),
            "recovered_label": str(found.recovered_label),
            "nearest_label": str(found.nearest_label),
            "psnr": format_value(found.psnr),
            "psnr_mean_image": format_value(found.psnr_mean),
            "nearer": "yes" if found.psnr > found.psnr_mean else "no",
        }
        for found in findings
    ]


def verdict(findings: Sequence[Finding]) -> str:
    """Both numbers, in words."""
    ours, mean = (
        fmean(values)
        for values in zip(*((found.psnr, found.psnr_mean) for found in findings), strict=True)
    )
    nearer = sum(found.psnr > found.psnr_mean for found in findings)
    return (
        f"recovered images have {ours:.1f} dB to the nearest private image, the public set's mean"
        f" image {mean:.1f} dB; the attack came nearer for {nearer} of {len(findings)} clients. One"
        " attack of this kind; it bounds no other"
    )


def write(inquiry: Inquiry, findings: Sequence[Finding], folder: Path) -> list[Path]:
    """The CSV, the JSON that says how it was made, and the picture, in `folder`."""
    base = folder / inquiry.stem
    csv, record, png = (
        base.with_name(f"{base.name}.{suffix}") for suffix in ("csv", "json", "png")
    )
    shown = lines(findings)
    write_csv(csv, shown, COLUMNS)
    about = {
        **asdict(inquiry),
        "data": {**asdict(inquiry.data), "label": inquiry.data.label},
        "config": inquiry.config(),
        "nearer_than_the_mean_image": sum(line["nearer"] == "yes" for line in shown),
        "packages": package_versions(),
    }
    write_atomic(record, canonical_json(about) + "\n")
    pictures = {
        "recovered": np.stack([finding.recovered for finding in findings]),
        "nearest private": np.stack([finding.nearest for finding in findings]),
        "mean image": np.stack([finding.mean for finding in findings]),
    }
    notes = {
        "recovered": [f"{finding.psnr:.1f} dB" for finding in findings],
        "mean image": [f"{finding.psnr_mean:.1f} dB" for finding in findings],
    }
    image_rows(pictures, notes, png, str(inquiry))
    return [csv, record, png]
