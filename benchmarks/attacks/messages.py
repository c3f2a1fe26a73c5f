"""What an attacker gets from the message that a client shares for real images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.attacks.files import write_files
from benchmarks.attacks.reconstruction import RECOVERED, reconstructions
from datasets import catalogue
from datasets.catalogue import ResolvedData
from federation.cache import StageCache
from federation.resizing import resize
from federation.seeds import Seeds
from federation.training.inputs import Normalisation, unit_range
from metrics.images import WINDOW, psnr, ssim
from models.catalogue import build
from privacy.attacks.by_name import Attack
from results.files import cache_home, digest
from results.sourcecode import source_libraries
from results.store import format_value


@dataclass(frozen=True)
class Case:
    """An attack on the messages of single clients, each of which holds the images of one
    message.
    """

    data: ResolvedData
    network: str
    """With the framework's initial weights, as the server sends them in the first round."""
    attack: Attack
    images: int = 10
    """Private images that are attacked, drawn from the training split."""
    image_size: int = 0
    """Pixels of a side; 0 for the data set's own."""
    normalised: bool = False
    """Whether the network sees images less the data set's mean over its deviation, as in this
    suite's training, rather than in [0, 1], as in DLG's experiments. Bright areas then saturate
    sigmoids, and leave less of themselves in the gradient."""
    seed: int = 0
    """Of the images, the weights and the starts."""
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.images < 1 or self.images % self.attack.threat.images:
            raise ValueError(
                f"{self.images} images are not whole messages of {self.attack.threat.images}"
            )

    @property
    def normalise(self) -> Normalisation:
        """From [0, 1] to what the network sees."""
        source = catalogue.source(self.data.used)
        return (
            Normalisation(source.mean, source.std)
            if self.normalised
            else Normalisation((0.0,) * len(source.mean), (1.0,) * len(source.std))
        )

    @property
    def messages(self) -> int:
        """How many messages are attacked."""
        return self.images // self.attack.threat.images

    @property
    def stem(self) -> str:
        """Names the files: what is attacked and how, and a digest of all else."""
        threat = self.attack.threat
        rest = digest(
            [
                asdict(self.attack),
                self.images,
                self.image_size,
                self.normalised,
                self.data.digest,
                self.device.split(":")[0],
            ]
        )[:8]
        what = f"{self.data.asked}-{self.network}-{self.attack.kind}-{threat.shares}"
        return f"{what}-seed{self.seed}-{rest}"

    def __str__(self) -> str:
        threat = self.attack.threat
        steps = (
            f" of {threat.local_steps} local steps at {threat.local_lr:g}"
            if threat.shares == "update"
            else ""
        )
        inputs = "normalised inputs" if self.normalised else "inputs in [0, 1]"
        plural = "s" if threat.images > 1 else ""
        what = f"{self.attack.kind} on the {threat.shares}{steps} of {threat.images} image{plural}"
        return f"{what}, {self.network}, {inputs}, {self.data.label}"


@dataclass(frozen=True)
class AttackedMessage:
    """One message's private images and what the attack made of them, as arrays that can cross
    between processes.
    """

    indices: np.ndarray
    """Which images of the training split, (n,)."""
    labels: np.ndarray
    private: np.ndarray
    """Shape (n, c, h, w), in [0, 1]."""
    recovered: np.ndarray
    recovered_labels: np.ndarray
    distance: float
    starts: int
    psnr: np.ndarray
    """In dB, (n,)."""
    ssim: np.ndarray
    """Shape (n,); not a number for images that are smaller than its window."""


def initial_model(case: Case, seeds: Seeds) -> nn.Module:
    """The network with random weights. Raises ValueError, with near names, for an unknown one."""
    source = catalogue.source(case.data.used)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seeds.number("weights", case.network))
        model = build(
            case.network, source.shape[0], source.classes, case.image_size or source.shape[1]
        )
    return model.to(case.device)


def private_images(case: Case, seeds: Seeds) -> tuple[np.ndarray, Tensor, Tensor]:
    """Indices into the training split, uint8 images (n, c, h, w) and classes (n,) of the images
    that are attacked.
    """
    train = catalogue.load(case.data.used)["train"]
    if case.images > len(train.labels):
        raise ValueError(
            f"{case.images} images are more than the {len(train.labels)} of the training split"
        )
    indices = seeds.numpy("attack", "images").permutation(len(train.labels))[: case.images]
    images = resize(
        torch.from_numpy(train.images[indices]), case.image_size or train.images.shape[-1]
    )
    return indices, images.to(case.device), torch.from_numpy(train.labels[indices]).to(case.device)


def attack(case: Case, first: int) -> AttackedMessage:
    """Attack the message that begins with image `first`; taken from the stage cache if it was
    attacked before.
    """
    seeds = Seeds(weights=case.seed, attack=case.seed)
    source = catalogue.source(case.data.used)
    indices, images, targets = private_images(case, seeds)
    part = slice(first, first + case.attack.threat.images)
    stage = reconstructions(
        StageCache(cache_home() / "stages", device=case.device),
        f"images {first + 1} to {part.stop} ({case.attack.kind})",
        case.network,
        initial_model(case, seeds),
        images[part],
        targets[part],
        source.classes,
        case.attack,
        case.normalise,
        lambda number: seeds.torch("attack", case.attack.kind, first + number),
    )
    recovered, private = stage.tensors["images"], unit_range(images[part])
    return AttackedMessage(
        indices[part],
        targets[part].cpu().numpy(),
        private.cpu().numpy(),
        recovered.cpu().numpy(),
        stage.tensors["labels"].cpu().numpy(),
        float(stage.tensors["distances"][0]),
        int(stage.tensors["starts"][0]),
        psnr(recovered, private).cpu().numpy(),
        (
            ssim(recovered, private).cpu().numpy()
            if min(private.shape[2:]) >= WINDOW
            else np.full(len(private), np.nan)
        ),
    )


def items(case: Case) -> Sequence[int]:
    """The first image of every message. Raises ValueError for what network or data cannot do."""
    seeds = Seeds(weights=case.seed, attack=case.seed)
    initial_model(case, seeds)
    private_images(case, seeds)
    return range(0, case.images, case.attack.threat.images)


def lines(messages: Sequence[AttackedMessage]) -> list[dict[str, str]]:
    """A line of the CSV for each image."""
    return [
        {
            "image": str(message.indices[i]),
            "label": str(message.labels[i]),
            "recovered_label": str(message.recovered_labels[i]),
            "distance": format_value(message.distance),
            "starts": str(message.starts),
            "success": "yes" if message.psnr[i] > RECOVERED else "no",
            "psnr": format_value(float(message.psnr[i])),
            "ssim": "" if np.isnan(message.ssim[i]) else format_value(float(message.ssim[i])),
        }
        for message in messages
        for i in range(len(message.indices))
    ]


def verdict(messages: Sequence[AttackedMessage]) -> str:
    """How many images came back, in words."""
    values = np.concatenate([message.psnr for message in messages])
    return (
        f"{int((values > RECOVERED).sum())} of {len(values)} images recovered above"
        f" {RECOVERED:g} dB"
    )


def write(case: Case, messages: Sequence[AttackedMessage], folder: Path) -> list[Path]:
    """The CSV, the JSON that says how it was made, and the picture, in `folder`."""
    shown = lines(messages)
    about = {
        "data": {**asdict(case.data), "label": case.data.label},
        "network": case.network,
        "weights": "initial",
        "attack": asdict(case.attack),
        "images": case.images,
        "normalised": case.normalised,
        "image_size": messages[0].private.shape[-1],
        "seed": case.seed,
        "recovered": sum(line["success"] == "yes" for line in shown),
        "recovered_above_db": RECOVERED,
        "device": case.device,
        "packages": source_libraries(__name__),
    }
    pictures = {
        "private": np.concatenate([message.private for message in messages]),
        "recovered": np.concatenate([message.recovered for message in messages]),
    }
    notes = {"recovered": [f"{float(line['psnr']):.1f} dB" for line in shown]}
    return write_files(folder / case.stem, str(case), shown, about, pictures, notes)
