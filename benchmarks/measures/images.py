"""Images: those that a method generated, what a client gives away of its private ones, and what
rows see in the same few. FediOD's Table 7, the tables of leakage, and FedSA's Figure 3.
"""

import numpy as np

from fedtables.benchmarks.tables.measure import (
    Config,
    FittedCell,
    Measure,
    Taken,
    count_in,
    counted,
)
from fedtables.metrics.names import is_count
from fedtables.results.arrays import pack
from fedtables.results.record import Measurement


class Samples(Measure):
    """Two scores of the samples that the fit left."""

    extractor = True

    def take(self, run: FittedCell) -> Taken:
        """Raises ValueError for a method that generated no images."""
        from fedtables.federation.training.inputs import unit_range
        from fedtables.federation.training.loops import predict
        from fedtables.metrics.generated import adapted_inception_score, inception_score
        from fedtables.models import extractors

        federation, images = run.federation, run.fitted[0].samples
        if images is None:
            raise ValueError(
                f"{run.name} generated no images to measure; set {run.name}.samples above 0"
            )
        named = str(run.config["evaluation.extractor"])
        extractor = extractors.load(named, federation.networks.device)
        score = inception_score(extractor.probabilities(unit_range(images)))
        local = [
            federation.networks.module(c)
            for c, client in zip(federation.local_models(), federation.clients, strict=True)
            if client.size
        ]
        outputs = [predict(model, images, normalise=federation.normalise) for model in local]
        adapted = adapted_inception_score([scores.softmax(dim=1) for scores in outputs])
        networks = ", ".join(sorted({client.network for client in federation.clients}))
        how = (
            f"{len(images):,} images in one split; plain score by {extractor.title}, adapted by"
            f" {len(local)} local models ({networks})"
        )
        names = ("inception-score", "adapted-inception-score")
        return Taken(tuple(map(Measurement, names, (score, adapted))), how)


class Synthesis(Measure):
    """How far made images are from the real ones of the same maps, mean over pixels in [0, 1]; and
    the first of each client.
    """

    def take(self, run: FittedCell) -> Taken:
        federation, made = run.federation, run.fitted[0].samples
        clients = [client for client in federation.clients if client.size]
        if made is None or len(made) % len(clients):
            raise ValueError(
                f"{run.name} kept no images of every client; set {run.name}.samples above 0"
            )
        import torch

        each = len(made) // len(clients)
        first = torch.arange(each, device=made.device)
        held = [
            client.run(lambda s: (s.images_at(first), s.targets_at(first))) for client in clients
        ]
        how = f"of {len(made)} images, each client's first"
        if made.is_meta:
            return Taken((), how)
        arrays: dict[str, np.ndarray] = {}
        apart = []
        for client, images, (real, targets) in zip(clients, made.split(each), held, strict=True):
            apart.append((images.float() - real.float()).abs().mean().item() / 255)
            kept = {"image": real[0], "target": targets[0], "made": images[0]}
            for kind, values in kept.items():
                array = values.cpu().numpy()
                name = f"{kind}/client {client.index + 1}"
                arrays[name] = array.astype(np.uint16 if kind == "target" else np.uint8)
        value = Measurement("mean-absolute-error", float(np.mean(apart)))
        return Taken((value,), how, pack(arrays))


SHOWN = 4
"""Test images in the picture (FedSA, section 4: "We choose four images from the test set")."""


class Segmentations(Measure):
    """The metrics of the first test images, which are drawn with target and prediction
    (`fedtables.reports.drawing.pictures`); of a table with one column.
    """

    def take(self, run: FittedCell) -> Taken:
        """Raises ValueError for a task without a class per pixel, and for a method that leaves
        several networks.
        """
        from fedtables.federation.tasks.pixels import Segmentation
        from fedtables.federation.training.loops import predict
        from fedtables.metrics.running import measured

        federation, task = run.federation, run.federation.task
        if not isinstance(task, Segmentation):
            raise ValueError(
                f"a picture of segmentations needs a class per pixel, and the task is {task}"
            )
        if len(run.fitted) != 1:
            raise ValueError(
                "a picture shows what one network predicts, and the method leaves"
                f" {len(run.fitted)}"
            )
        test = federation.evaluation.test_set  # hidden from methods
        images, target = test.images[:SHOWN], test.targets[:SHOWN]
        module = federation.networks.module(run.fitted[0])
        outputs = predict(module, images, normalise=federation.normalise)
        values = measured(task.metrics(), outputs, target.to(outputs.device))
        history = {name: [value] for name, value in values.items()}
        measurements = tuple(
            counted(name, value, [count_in(history, name)])
            for name, value in values.items()
            if not is_count(name)
        )
        maps = {"images": images, "target": target, "predicted": outputs.argmax(dim=1)}
        arrays = {name: tensor.cpu().numpy().astype(np.uint8) for name, tensor in maps.items()}
        how = f"of the {len(images)} test images shown, at the end of the run"
        return Taken(measurements, how, pack(arrays))


ATTACKS = ("dlg", "idlg", "inverting")
"""Rows' images that an attack makes (`fedtables.privacy.attacks.gradients.KINDS`, which imports
torch).
"""


class Leakage(Measure):
    """Distances by client, of what `attack.images_by` names."""

    settings = frozenset({"attack"})
    extractor = True

    def check(self, config: Config) -> None:
        from fedtables.benchmarks.attacks.distances import AttackSettings
        from fedtables.benchmarks.scenarios.configuration import NetworkSettings, read_section
        from fedtables.models.catalogue import entry

        super().check(config)
        settings = read_section(config, "attack", AttackSettings)
        if settings.network:
            entry(read_section(config, "network", NetworkSettings).named(settings.network))

    def needs_fit(self, config: Config) -> bool:
        """Only for generated images; attacks are on the weights that the first round starts
        from.
        """
        return config["attack.images_by"] in ("generated", "nearest-generated")

    def unplanned(self, config: Config) -> str:
        """An attack, which ends where it succeeds, and what it takes at most."""
        kind = config["attack.images_by"]
        if kind not in ATTACKS:
            return ""
        messages = -(-int(config["attack.images"]) // int(config["attack.batch_size"]))
        starts = int(config["attack.clients"]) * messages * int(config["attack.restarts"])
        steps = int(config["attack.iterations"])
        return (
            f"{kind} attacks, each of which ends where it succeeds: at most {starts:,} starts of"
            f" {steps:,} iterations"
        )

    def take(self, run: FittedCell) -> Taken:
        from fedtables.benchmarks.attacks import distances

        return distances.measure(run)


MEASURES = {
    "samples": Samples(),
    "synthesis": Synthesis(),
    "segmentations": Segmentations(),
    "leakage": Leakage(),
}
