"""What an attacker gets from the message that a client shares for real images."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from fedtables.benchmarks.attacks.outcome import Outcome
from fedtables.benchmarks.attacks.reconstruction import Attacked, reconstructions
from fedtables.datasets import catalogue
from fedtables.datasets.catalogue import ResolvedData
from fedtables.federation.cache import StageCache
from fedtables.federation.seeds import Seeds
from fedtables.federation.training.inputs import Normalisation, unit_range
from fedtables.federation.windows import resize
from fedtables.metrics.images import WINDOW, psnr, ssim
from fedtables.models.catalogue import build
from fedtables.privacy.attacks.gradients import Attack
from fedtables.results.files import cache_home, digest
from fedtables.results.sourcecode import source_libraries
from fedtables.results.store import format_value

RECOVERED = 30.0
"""PSNR (dB) above which an image counts as recovered."""


@dataclass(frozen=True)
class Case:
    """An attack on the messages of single clients, each with the images of one message."""

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
    noted: ClassVar = {"recovered": "psnr"}
    """Columns that stand under pictures."""

    @property
    def seeds(self) -> Seeds:
        return Seeds(weights=self.seed, attack=self.seed)

    @property
    def normalise(self) -> Normalisation:
        """From [0, 1] to what the network sees."""
        source = catalogue.source(self.data.used)
        if self.normalised:
            return Normalisation(source.mean, source.std)
        return Normalisation((0.0,) * len(source.mean), (1.0,) * len(source.std))

    @property
    def stem(self) -> str:
        """Names the files: what is attacked and how, and a digest of all else."""
        what = f"{self.data.asked}-{self.network}-{self.attack.kind}-{self.attack.threat.shares}"
        settings = [asdict(self.attack), self.images, self.image_size, self.normalised]
        rest = digest([*settings, self.data.digest, self.device.split(":")[0]])[:8]
        return f"{what}-seed{self.seed}-{rest}"

    def __str__(self) -> str:
        threat = self.attack.threat
        steps = f" of {threat.local_steps} local steps at {threat.local_lr:g}"
        shared = threat.shares + (steps if threat.shares == "update" else "")
        inputs = "normalised inputs" if self.normalised else "inputs in [0, 1]"
        plural = "s" if threat.batch_size > 1 else ""
        what = f"{shared} of {threat.batch_size} image{plural}"
        return f"{self.attack.kind} on the {what}, {self.network}, {inputs}, {self.data.label}"

    def model(self) -> nn.Module:
        """The network with random weights. Raises ValueError for an unknown one."""
        source = catalogue.source(self.data.used)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.seeds.number("weights", self.network))
            side = self.image_size or source.shape[1]
            model = build(self.network, source.shape[0], source.classes, side)
        return model.to(self.device)

    def private(self) -> tuple[np.ndarray, Tensor, Tensor]:
        """Indices into the training split, uint8 images (n, c, h, w) and classes (n,) of the images
        that are attacked. Raises ValueError for more than there are.
        """
        train = catalogue.load(self.data.used)["train"]
        count, side = len(train.labels), self.image_size or train.images.shape[-1]
        if self.images > count:
            raise ValueError(
                f"{self.images} images are more than the {count} of the training split"
            )
        indices = self.seeds.numpy("attack", "images").permutation(count)[: self.images]
        images = resize(torch.from_numpy(train.images[indices]), side)
        targets = torch.from_numpy(train.labels[indices])
        return indices, images.to(self.device), targets.to(self.device)

    def items(self) -> Sequence[int]:
        """The first image of every message. Raises ValueError for what cannot be attacked."""
        self.model()
        self.private()
        return self.attack.messages(self.images)

    def attacked(self, first: int) -> Outcome:
        """Attack the message that begins with image `first`."""
        kind = self.attack.kind
        part = slice(first, first + self.attack.threat.batch_size)
        indices, images, targets = self.private()
        indices, images, targets = indices[part], images[part], targets[part]
        victim = Attacked(
            self.network,
            self.model(),
            catalogue.source(self.data.used).classes,
            self.attack,
            self.normalise,
            lambda number: self.seeds.torch("attack", kind, first + number),
        )
        label = f"images {first + 1} to {part.stop} ({kind})"
        cache = StageCache(cache_home() / "stages", device=self.device)
        found = reconstructions(cache, label, victim, images, targets).tensors
        recovered, private = found["images"], unit_range(images)
        likeness = [""] * len(private)
        if min(private.shape[2:]) >= WINDOW:
            likeness = [format_value(value) for value in ssim(recovered, private).tolist()]
        lines = [
            {
                "image": str(indices[i]),
                "label": str(int(targets[i])),
                "recovered_label": str(int(found["labels"][i])),
                "distance": format_value(float(found["distances"][i])),
                "starts": str(int(found["starts"][i])),
                "success": "yes" if value > RECOVERED else "no",
                "psnr": format_value(value),
                "ssim": likeness[i],
            }
            for i, value in enumerate(psnr(recovered, private).tolist())
        ]
        pictures = {"private": private.cpu().numpy(), "recovered": recovered.cpu().numpy()}
        return Outcome(lines, pictures)

    def verdict(self, lines: Sequence[Mapping[str, str]]) -> str:
        """How many images came back, in words."""
        recovered = sum(line["success"] == "yes" for line in lines)
        return f"{recovered} of {len(lines)} images recovered above {RECOVERED:g} dB"

    def about(self, lines: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        """How the numbers were made, for the JSON."""
        return {
            **asdict(self),
            "data": {**asdict(self.data), "label": self.data.label},
            "weights": "initial",
            "image_size": self.image_size or catalogue.source(self.data.used).shape[1],
            "recovered": sum(line["success"] == "yes" for line in lines),
            "recovered_above_db": RECOVERED,
            "packages": source_libraries(__name__),
        }
