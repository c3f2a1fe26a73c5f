"""`attack --target METHOD`: what an attacker gets from what clients answer, measured against the
mean image.

A small federation trains as a table of the method has it, each client its own model to completion,
and answers as the method says (`targets/`). The attacker is the server. It knows network, initial
weights, learning rate, what it sent, and no label; it chooses a dummy image and label such that a
model that came from the initial one by a few steps of plain SGD on them, would have answered so
(`privacy.attacks.outputs`). What it finds is compared with the nearest of the client's images, and
so is the mean of the public images, which takes no attack. This is one attack; that it fails bounds
no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Protocol

import numpy as np
from torch import Tensor

from benchmarks.attacks import targets
from benchmarks.attacks.files import write_files
from benchmarks.attacks.reconstruction import to_units
from benchmarks.scenarios.assembly import Run, build_federation
from benchmarks.scenarios.configuration import Configuration
from benchmarks.scenarios.scenario import DataSets
from benchmarks.tables import registry
from benchmarks.tables.defaults import filled
from benchmarks.tables.spec import HELD_OUT, Scalar
from datasets import catalogue
from datasets.catalogue import ResolvedData
from federation.cache import Stage, StageCache, StageRequest, content_digest
from federation.client import Client
from federation.federation import Federation
from federation.seeds import AXES, Seeds
from federation.training.inputs import unit_range
from metrics.images import psnr
from privacy.attacks.outputs import Answer, match_answers
from privacy.attacks.threat import ThreatModel
from results.files import cache_home, digest
from results.sourcecode import source_libraries
from results.store import format_value


@dataclass(frozen=True)
class Inquiry:
    """An attack on what every client of a small federation answers."""

    data: ResolvedData
    target: str
    """A method of `targets.names()`."""
    network: str = "lenet-sigmoid"
    """Of clients and server."""
    clients: int = 5
    """All of them are attacked."""
    samples: int = 200
    """Images per client, on average; the partition is that of the target's table."""
    public: int = 100
    """Public images: those of the clients' data set that none of them holds."""
    epochs: int = 50
    """Of local training; optimiser and learning rate are those of the table's cpu profile, in
    batches of 16, not augmented."""
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
        targets.find(self.target)
        if self.threat.images != 1:
            raise ValueError(
                f"{self.target} is attacked with one dummy image, not {self.threat.images}"
            )
        if min(self.clients, self.samples, self.public) < 1:
            raise ValueError(f"clients, samples and public images must be at least 1: {self}")
        if self.clients * self.samples > (there := catalogue.source(self.data.used).sizes["train"]):
            raise ValueError(
                f"{self.samples} images of each of {self.clients} clients are more than the"
                f" {there} of the training split"
            )

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
        """The configuration of the target's row in the cpu profile, with this inquiry's sizes."""
        target: Target = targets.find(self.target)
        paper, table = registry.find_table(target.TABLE)
        row = next(row for row in table.rows if row.key == self.target)
        config = paper.config(table, row, target.COLUMN, "cpu", "paper")
        return filled(config) | {
            "data.name": self.data.asked,
            "data.image_size": self.image_size or catalogue.source(self.data.used).shape[1],
            "network.client": self.network,
            "network.server": self.network,
            "partition.clients": self.clients,
            "partition.pool_limit": self.clients * self.samples,
            "public.name": HELD_OUT,
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
            Configuration.parse(self.config()),
            DataSets(self.data),
            registry.find_method(self.target).load(),
            Run(seeds, stages),
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


class Target(Protocol):
    """A file of `benchmarks/attacks/targets/`: a method whose clients' answers are attacked."""

    TABLE: str
    """The table whose row of the method sets everything that the inquiry leaves open."""
    COLUMN: Mapping[str, str]
    """The column of that table."""

    def observe(self, inquiry: Inquiry, federation: Federation, client: Client) -> Observed: ...


def attack(inquiry: Inquiry, position: int) -> Finding:
    """Attack what the client at `position` of the federation answers; a stage, as its training
    is.
    """
    federation = inquiry.federation()
    client, teachers = federation.clients[position], federation.local_models()
    target: Target = targets.find(inquiry.target)
    seen = target.observe(inquiry, federation, client)
    start = federation.streams.seeds.torch("attack", inquiry.target, client.index)

    def compute() -> Stage:
        reconstruction = match_answers(
            seen.answer,
            seen.answers,
            federation.networks.image_shape,
            federation.task.outputs,
            1,
            generator=start,
            iterations=inquiry.iterations,
            restarts=inquiry.restarts,
        )
        image = to_units(reconstruction.images, federation.normalise).float()[0]
        return Stage(
            {"image": image, "label": reconstruction.labels.argmax(dim=1)},
            {"distance": reconstruction.distance},
        )

    observed = content_digest({str(number): part for number, part in enumerate(seen.answers)})
    inputs = {
        "inquiry": asdict(inquiry),
        "client": client.index,
        "observed": observed,
        "normalise": repr(federation.normalise),
        "start": start.initial_seed(),
    }
    label = f"client {client.index + 1} ({inquiry.target})"
    code = f"{targets.__name__}.{inquiry.target}"
    request = StageRequest("answers", label, inputs, compute, code)
    stage = federation.stages.cache.get(request)
    images, labels = client.run(lambda shard: (unit_range(shard.images), shard.targets))
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
        int(labels[nearest]),
        float(near.max()),
        mean.numpy(),
        float(near_mean.max()),
    )


def items(inquiry: Inquiry) -> list[int]:
    """The clients that hold images. Raises ValueError for what network or data cannot do."""
    federation = inquiry.federation()
    # Before the clients are attacked side by side, so that none waits for another's training
    federation.local_models()
    return [client.index for client in federation.clients if client.size]


def lines(findings: Sequence[Finding]) -> list[dict[str, str]]:
    """A line of the CSV for each client."""
    return [
        {
            "client": str(finding.client + 1),
            "samples": str(finding.samples),
            "accuracy": format_value(finding.accuracy),
            "distance": format_value(finding.distance),
            "recovered_label": str(finding.recovered_label),
            "nearest_label": str(finding.nearest_label),
            "psnr": format_value(finding.psnr),
            "psnr_mean_image": format_value(finding.psnr_mean),
            "nearer": "yes" if finding.psnr > finding.psnr_mean else "no",
        }
        for finding in findings
    ]


def verdict(findings: Sequence[Finding]) -> str:
    """Both numbers, in words."""
    ours, mean = (
        fmean(values)
        for values in zip(*((finding.psnr, finding.psnr_mean) for finding in findings), strict=True)
    )
    nearer = sum(finding.psnr > finding.psnr_mean for finding in findings)
    return (
        f"recovered images have {ours:.1f} dB to the nearest private image, the public set's mean"
        f" image {mean:.1f} dB; the attack came nearer for {nearer} of {len(findings)} clients. One"
        " attack of this kind; it bounds no other"
    )


def write(inquiry: Inquiry, findings: Sequence[Finding], folder: Path) -> list[Path]:
    """The CSV, the JSON that says how it was made, and the picture, in `folder`."""
    shown = lines(findings)
    about = {
        **asdict(inquiry),
        "data": {**asdict(inquiry.data), "label": inquiry.data.label},
        "config": inquiry.config(),
        "nearer_than_the_mean_image": sum(line["nearer"] == "yes" for line in shown),
        "packages": source_libraries(__name__),
    }
    pictures = {
        "recovered": np.stack([finding.recovered for finding in findings]),
        "nearest private": np.stack([finding.nearest for finding in findings]),
        "mean image": np.stack([finding.mean for finding in findings]),
    }
    notes = {
        "recovered": [f"{finding.psnr:.1f} dB" for finding in findings],
        "mean image": [f"{finding.psnr_mean:.1f} dB" for finding in findings],
    }
    return write_files(folder / inquiry.stem, str(inquiry), shown, about, pictures, notes)
