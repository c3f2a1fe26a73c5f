"""The command `attack`: what an attacker gets from the message that a client shares for real
images.
"""

from __future__ import annotations

import functools
import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.attacks.reconstruction import RECOVERED, Attack, reconstructions
from benchmarks.running.execute import prepare_device
from datasets import catalogue
from datasets.catalogue import ResolvedData
from federation.cache import StageCache
from federation.execution import DEFAULT
from federation.resizing import resize
from federation.seeds import Seeds
from federation.training.inputs import Normalisation, unit_range
from metrics.images import WINDOW, psnr, ssim
from models.catalogue import build
from reports.drawing.pictures import image_rows
from results.files import ResultsError, cache_home, canonical_json, digest, write_atomic
from results.sourcecode import source_libraries
from results.store import format_value, write_csv

R = TypeVar("R")

COLUMNS = ("image", "label", "recovered_label", "distance", "starts", "success", "psnr", "ssim")


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
class Message:
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


def attack_one(case: Case, first: int) -> Message:
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
    return Message(
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


def in_processes(
    function: Callable[[int], R],
    items: Sequence[int],
    jobs: int,
    done: Callable[[], None],
    device: str = "cpu",
) -> list[R]:
    """`function` of every item, in their order, by `jobs` processes of one thread each; `done` is
    called as each one ends.

    Raises ResultsError if a process is lost.
    """
    spawn = multiprocessing.get_context("spawn")
    results: dict[int, R] = {}
    with ProcessPoolExecutor(min(jobs, len(items)), spawn, _prepare, (device,)) as pool:
        waiting = {pool.submit(function, item): item for item in items}
        try:
            for future in as_completed(waiting):
                results[waiting[future]] = future.result()
                done()
        except BrokenProcessPool as error:
            raise ResultsError(
                "a worker process was lost; out of memory? try fewer --jobs"
            ) from error
        except (
            BaseException
        ):  # Ctrl-C, or what one item could not do: the others are not waited for
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise
    return [results[item] for item in items]


def _prepare(device: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle; it ends us
    prepare_device(device, 1, DEFAULT)


def run(case: Case, jobs: int, done: Callable[[], None]) -> list[Message]:
    """All messages of a case, in order. Raises ValueError for what the attack, network or data
    cannot do, before any worker starts.
    """
    seeds = Seeds(weights=case.seed, attack=case.seed)
    initial_model(case, seeds)
    private_images(case, seeds)
    return in_processes(
        functools.partial(attack_one, case),
        range(0, case.images, case.attack.threat.images),
        jobs,
        done,
        case.device,
    )


def lines(messages: Sequence[Message]) -> list[dict[str, str]]:
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


def verdict(messages: Sequence[Message]) -> str:
    """How many images came back, in words."""
    values = np.concatenate([message.psnr for message in messages])
    return (
        f"{int((values > RECOVERED).sum())} of {len(values)} images recovered above"
        f" {RECOVERED:g} dB"
    )


def write(case: Case, messages: Sequence[Message], folder: Path) -> list[Path]:
    """The CSV, the JSON that says how it was made, and the picture, in `folder`."""
    shown = lines(messages)
    base = folder / case.stem
    csv, record, png = (
        base.with_name(f"{base.name}.{suffix}") for suffix in ("csv", "json", "png")
    )
    write_csv(csv, shown, COLUMNS)
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
    write_atomic(record, canonical_json(about) + "\n")
    pictures = {
        "private": np.concatenate([message.private for message in messages]),
        "recovered": np.concatenate([message.recovered for message in messages]),
    }
    image_rows(
        pictures, {"recovered": [f"{float(line['psnr']):.1f} dB" for line in shown]}, png, str(case)
    )
    return [csv, record, png]
