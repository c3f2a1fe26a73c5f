"""`attack --target METHOD`: what an attacker gets from what clients answer, measured against the
mean image.

A small federation trains as a table of the method has it, each client its own model to completion,
and answers as the method says (`targets/`). The attacker is the server. It knows network, initial
weights, learning rate, what it sent, and no label. What it finds is compared with the nearest of
the client's images, and so is the mean of the public images, which takes no attack. That this
attack fails bounds no other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Annotated, Any, ClassVar

from torch import Tensor

from fedtables.benchmarks.attacks import targets
from fedtables.benchmarks.attacks.outcome import Outcome
from fedtables.benchmarks.attacks.reconstruction import to_units
from fedtables.benchmarks.scenarios.assembly import build_federation
from fedtables.benchmarks.scenarios.configuration import Configuration
from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.defaults import filled
from fedtables.benchmarks.tables.spec import HELD_OUT, Row, Scalar
from fedtables.datasets import catalogue
from fedtables.datasets.catalogue import ResolvedData
from fedtables.federation.cache import Stage, StageCache, StageRequest, content_digest
from fedtables.federation.client import Client
from fedtables.federation.federation import Federation
from fedtables.federation.parts import Run
from fedtables.federation.seeds import AXES, Seeds
from fedtables.federation.training.inputs import unit_range
from fedtables.metrics.images import psnr
from fedtables.privacy.attacks.matching import Answer, Search, match_answers
from fedtables.privacy.attacks.threat import ThreatModel
from fedtables.results.files import cache_home, digest
from fedtables.results.names import check_known
from fedtables.results.numbers import MOST_WHOLE, Bounds, Count, check_bounds
from fedtables.results.sourcecode import source_libraries
from fedtables.results.store import format_value


@dataclass(frozen=True)
class Inquiry:
    """An attack on what every client of a small federation answers. Raises ValueError for sizes
    and a target that make no sense.
    """

    data: ResolvedData
    target: str
    """A row of `targets.names()`."""
    network: str = "lenet-sigmoid"
    """Of clients and server."""
    clients: Count = 5
    """All of them are attacked."""
    samples: Count = 200
    """Images per client, on average; the partition is that of the target's table."""
    public: Count = 100
    """Public images: those of the clients' data set that none of them holds."""
    epochs: Count = 50
    """Of local training, by the table's cpu profile, in batches of 16, not augmented."""
    threat: ThreatModel = field(
        default_factory=lambda: ThreatModel("update", local_steps=5, local_lr=0.05)
    )
    """The few steps that stand for the client's training: the attacker's guess."""
    iterations: Count = 50
    """Steps of L-BFGS, of up to 25 evaluations each."""
    restarts: Count = 1
    """Starts; the one of the lowest distance counts."""
    image_size: Annotated[int, Bounds(0, MOST_WHOLE)] = 0
    """Pixels of a side; 0 for the data set's own."""
    seed: int = 0
    """Of partition, weights, training and starts."""
    noted: ClassVar = {"recovered": "psnr", "mean image": "psnr_mean_image"}
    """Columns that stand under pictures."""

    def __post_init__(self) -> None:
        check_bounds(Inquiry, vars(self))
        check_known(self, target=targets.names())
        if self.threat.batch_size != 1:
            raise ValueError(
                f"{self.target} is attacked with one dummy image, not {self.threat.batch_size}"
            )
        if self.clients * self.samples > (there := catalogue.source(self.data.used).sizes["train"]):
            raise ValueError(
                f"{self.samples} images of each of {self.clients} clients are more than the"
                f" {there} of the training split"
            )

    @property
    def stem(self) -> str:
        """Names the files: what is attacked, and a digest of all settings."""
        rest = digest([asdict(self)])[:8]
        return f"{self.data.asked}-{self.network}-{self.target}-seed{self.seed}-{rest}"

    def __str__(self) -> str:
        return f"matching what {self.target} clients answer, {self.network}, {self.data.label}"

    def config(self) -> dict[str, Scalar]:
        """The configuration of the target's row in the cpu profile, with this inquiry's sizes."""
        target = targets.find(self.target)
        paper, table = registry.find_table(target.TABLE)
        config = paper.config(table, self._row, target.COLUMN, "cpu", "paper")
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

    @property
    def _row(self) -> Row:
        _, table = registry.find_table(targets.find(self.target).TABLE)
        return next(row for row in table.rows if row.key == self.target)

    def federation(self) -> Federation:
        """The federation. Raises DataError for an impossible partition."""
        seeds = Seeds(*[self.seed] * len(AXES))
        run = Run(seeds, StageCache(cache_home() / "stages"))
        configuration = Configuration.parse(self.config())
        method = registry.find_method(self._row.method).load()
        return build_federation(configuration, DataSets(self.data), method, run)

    def items(self) -> Sequence[int]:
        """The clients that hold images. Raises ValueError for what network or data cannot do."""
        federation = self.federation()
        # Before the clients are attacked side by side, so that none waits for another's training
        federation.local_models()
        return [client.index for client in federation.clients if client.size]

    def attacked(self, position: int) -> Outcome:
        """Attack what the client at `position` of the federation answers."""
        federation = self.federation()
        client, teachers = federation.clients[position], federation.local_models()
        found = self._matched(federation, client)
        images, labels = client.run(lambda shard: (unit_range(shard.images), shard.targets))
        recovered, mean = found.tensors["image"], unit_range(federation.public.images).mean(dim=0)
        near, near_mean = (psnr(x.expand_as(images), images) for x in (recovered, mean))
        nearest = int(near.argmax())
        line = {
            "client": str(client.index + 1),
            "samples": str(client.size),
            "accuracy": format_value(teachers[position].history["accuracy"][-1]),
            "distance": format_value(found.info["distance"]),
            "recovered_label": str(int(found.tensors["label"])),
            "nearest_label": str(int(labels[nearest])),
            "psnr": format_value(float(near.max())),
            "psnr_mean_image": format_value(float(near_mean.max())),
            "nearer": "yes" if near.max() > near_mean.max() else "no",
        }
        pictures = {"recovered": recovered, "nearest private": images[nearest], "mean image": mean}
        return Outcome([line], {name: image[None].numpy() for name, image in pictures.items()})

    def _matched(self, federation: Federation, client: Client) -> Stage:
        """The dummy image and label whose answers are the client's; a stage, as its training is."""
        seen = targets.find(self.target).observe(self, federation, client)
        start = federation.streams.seeds.torch("attack", self.target, client.index)

        def compute() -> Stage:
            found = match_answers(
                seen.answer,
                seen.answers,
                federation.networks.image_shape,
                federation.task.outputs,
                Search(start, self.iterations, self.restarts),
            )
            image = to_units(found.images, federation.normalise).float()[0]
            tensors = {"image": image, "label": found.labels.argmax(dim=1)}
            return Stage(tensors, {"distance": found.distance})

        observed = content_digest({str(number): part for number, part in enumerate(seen.answers)})
        inputs = {
            "inquiry": asdict(self),
            "client": client.index,
            "observed": observed,
            "normalise": repr(federation.normalise),
            "start": start.initial_seed(),
        }
        label = f"client {client.index + 1} ({self.target})"
        code = f"{targets.__name__}.{self.target}"
        return federation.stages.cache.get(StageRequest("answers", label, inputs, compute, code))

    def verdict(self, lines: Sequence[Mapping[str, str]]) -> str:
        """Both numbers, in words."""
        columns = self.noted.values()
        ours, mean = (fmean(float(line[column]) for line in lines) for column in columns)
        nearer = sum(line["nearer"] == "yes" for line in lines)
        return (
            f"recovered images have {ours:.1f} dB to the nearest private image, the public set's"
            f" mean image {mean:.1f} dB; the attack came nearer for {nearer} of {len(lines)}"
            " clients. One attack of this kind; it bounds no other"
        )

    def about(self, lines: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        """How the numbers were made, for the JSON."""
        return {
            **asdict(self),
            "data": {**asdict(self.data), "label": self.data.label},
            "config": self.config(),
            "nearer_than_the_mean_image": sum(line["nearer"] == "yes" for line in lines),
            "packages": source_libraries(__name__),
        }


@dataclass(frozen=True)
class Observed:
    """What the attacker has: the client's answers, and how to compute those of a dummy."""

    answers: tuple[Tensor, ...]
    """Less what the initial networks would have answered, which the attacker knows; float64."""
    answer: Answer
