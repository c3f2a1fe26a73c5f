"""FedSA: federated selective aggregation for knowledge amalgamation (Xie et al., Chip 2023).

Private servers hold teachers, pre-trained on data and for tasks of their own. The target network,
trained on a few labelled samples, visits the teachers that look at these samples as it does; each
lends it their features; the visits are averaged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from fedtables.federation.client import Client
from fedtables.federation.costs import differentiated, values
from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.shared.amalgamation import Amalgamation, train_weak
from fedtables.federation.training.inputs import Normalisation, unit_range
from fedtables.federation.training.plan import DivergedError
from fedtables.models.saliency import grad_cam, input_gradient, unit_scaled
from fedtables.results.names import check_known
from fedtables.results.numbers import Count

SELECTIONS = ("sampled", "top-k", "least-k", "random", "fixed")
WEIGHTINGS = ("equal", "positive", "negative")
TRANSFERABILITIES = ("eq2", "cosine", "released")


def saliency_distance(
    teacher_maps: torch.Tensor, target: torch.Tensor, samples: int
) -> torch.Tensor:
    """d = M / cos(A_n, A_T) (), Eq. 2, of averaged maps; infinite for orthogonal ones."""
    return samples / F.cosine_similarity(teacher_maps.flatten(), target.flatten(), dim=0)


def image_distance(teacher_maps: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The released code's distance: n / sum_j (1 + cos_j) / 2 over the maps (n, h, w) of n images;
    scalar.

    An empty map, which makes the code's cosine not a number, has the cosine 0.
    """
    cosines = F.cosine_similarity(teacher_maps.flatten(1), target.flatten(1), dim=1)
    return len(teacher_maps) / ((1 + cosines) / 2).sum()


def sampling_probabilities(scores: torch.Tensor) -> torch.Tensor:
    """Eq. 3: p_n = exp(Q_n) / sum_b exp(Q_b), (teachers,)."""
    return scores.softmax(dim=0)


def aggregation_weights(scores: torch.Tensor, weighting: str) -> torch.Tensor:
    """Weights (k,) of the drawn teachers, by their scores: 1 / K as in Eq. 5, or Table 2's positive
    and negative weights.

    The paper does not define these; the released code's positive ones are a softmax of the scores
    scaled to [0, 1].
    """
    sign = {"equal": 0.0, "positive": 1.0, "negative": -1.0}[weighting]
    return (sign * unit_scaled(scores)).softmax(dim=0)


@dataclass(frozen=True)
class FedSA(Amalgamation, Method):
    """Algorithm 1: choose teachers by saliency, let them teach local students by hints, average
    these, adapt the decoder.

    What crosses: the probe images down once, every teacher's saliency of them up once (the mean
    map; as released a map of each image), then nothing but the student. Translators stay with their
    teachers.
    """

    title = "FedSA"
    sends = frozenset({"parameters", "attention"})
    quick: ClassVar[Mapping[str, Any]] = {
        "rounds": 2,
        "selection_gap": 1,
        "local_epochs": 1,
        "weak_epochs": 8,
    }

    selection_gap: Count = 10
    """E_g, rounds between two selections (released code)."""
    selected: Count = 3
    """K, draws of a selection (paper, section 4.2)."""
    selection: str = "sampled"
    """`sampled` by Eq. 3; of Table 2 `top-k`, `least-k`, `random` each time, or `fixed` once."""
    weighting: str = "equal"
    """`equal` as in Eq. 5, or Table 2's `positive` and `negative`."""
    transferability: str = "eq2"
    """Q: `eq2` as printed, `cosine` without Eq. 2's M (which leaves the probabilities all but
    equal), or `released`."""
    saliency: str = "input-gradient"
    """`input-gradient` of Eq. 1, or `grad-cam` as the released code."""
    saliency_samples: int = 0
    """Probe images that saliency averages, M of Eq. 2, the first so many; 0 for all (paper)."""
    retrain: bool = True
    """Whether each selection trains the target anew (Algorithm 1, line 4), or the first (code)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_known(
            self,
            selection=SELECTIONS,
            weighting=WEIGHTINGS,
            transferability=TRANSFERABILITIES,
            saliency=("input-gradient", "grad-cam"),
        )

    def choose(
        self, federation: Federation, target: nn.Module, maps: Sequence[torch.Tensor], number: int
    ) -> dict[int, float]:
        """Algorithm 1, lines 4 to 8, in every `selection_gap` rounds."""
        if (number - 1) % self.selection_gap:
            return {}
        if self.retrain or number == 1:
            train_weak(federation, target, self.weak_epochs, number)
        return self.select(federation, target, maps, number)

    # -- knowledge selection --

    def ask_for_maps(
        self, federation: Federation, teachers: Sequence[Checkpoint]
    ) -> list[torch.Tensor]:
        """Every teacher's maps of the probe images, once: neither ever changes. None where the
        selection does not use saliency.
        """
        if self.selection in ("random", "fixed") and self.weighting == "equal":
            return []
        probe = federation.probe()
        maps, channel, shown = [], federation.channel, {"probe": self.shown(federation)}
        for client, teacher in zip(federation.clients, teachers, strict=True):
            images = channel.down(client.index, "images", shown)["probe"]
            own = self.teacher_maps(federation, client, teacher, images, probe.digest)
            maps.append(channel.up(client.index, "attention", {"maps": own})["maps"])
        return maps

    def shown(self, federation: Federation) -> torch.Tensor:
        """The probe images that all networks look at, uint8 (M, c, h, w)."""
        images = federation.probe().images
        return images[: self.saliency_samples or len(images)].to(federation.networks.device)

    def teacher_maps(
        self,
        federation: Federation,
        client: Client,
        teacher: Checkpoint,
        images: torch.Tensor,
        digest: str,
    ) -> torch.Tensor:
        """`maps_of` a client's teacher for the first images of the set `digest`, once for all."""
        normalise = client.normalise or federation.normalise
        return federation.stages.answers(
            "saliency",
            teacher,
            images,
            digest,
            lambda model, shown: self.maps_of(normalise, model, shown),
            self.saliency,
            self.transferability == "released",
            normalise=normalise,
        )

    def maps_of(
        self, normalise: Normalisation, model: nn.Module, images: torch.Tensor
    ) -> torch.Tensor:
        """Saliency of uint8 images (n, c, h, w): A of Eq. 1, (c, h, w), the mean over them;
        `released` (n, h, w), uint8.

        All models see the same images in the same order, without augmentation.
        """
        of = input_gradient if self.saliency == "input-gradient" else grad_cam
        shape = tuple(images.shape[1 if of is input_gradient else 2 :])
        parts = differentiated(
            lambda part: of(model, normalise(unit_range(part))), model, images, shape
        )
        if self.transferability != "released":
            return torch.stack([part.sum(dim=0) for part in parts]).sum(dim=0) / len(images)
        planes = [part.mean(dim=1) if part.ndim == 4 else part for part in parts]
        scaled = [unit_scaled(plane.flatten(1)).view_as(plane) for plane in planes]
        return torch.cat(scaled).mul(255).round().to(torch.uint8)

    def scores(
        self, teacher_maps: Sequence[torch.Tensor], target: torch.Tensor, samples: int
    ) -> torch.Tensor:
        """Transferability Q of every teacher, (teachers,), by its maps and the target network's."""
        if self.transferability == "released":
            distances = [image_distance(maps.float(), target.float()) for maps in teacher_maps]
            return unit_scaled(2 - torch.stack(distances))
        divisor = samples if self.transferability == "eq2" else 1
        return torch.stack([1 / saliency_distance(maps, target, divisor) for maps in teacher_maps])

    def first_scores(self, federation: Federation) -> torch.Tensor:
        """Transferability Q of every teacher at Algorithm 1's first selection, (teachers,): for a
        target network that was trained on the probe set, and by no teacher yet.
        """
        probe = federation.probe()
        images = self.shown(federation)
        target = federation.networks.initial()
        train_weak(federation, target, self.weak_epochs, 1)
        pairs = zip(federation.clients, federation.stages.teachers(), strict=True)
        maps = [self.teacher_maps(federation, *pair, images, probe.digest) for pair in pairs]
        looks = self.maps_of(federation.normalise, target, images)
        return self.scores(maps, looks, len(images))

    def cosines(self, federation: Federation, scores: torch.Tensor) -> torch.Tensor:
        """Scores (teachers,) without the number of probe images that Eq. 2 divides by: 1 / d is
        cos / M. Other readings have none, and keep theirs.
        """
        if self.transferability != "eq2":
            return scores
        return scores * len(self.shown(federation))

    def select(
        self, federation: Federation, target: nn.Module, maps: Sequence[torch.Tensor], number: int
    ) -> dict[int, float]:
        """Weights by client of the teachers that take part from round `number` on; a teacher drawn
        twice counts twice.
        """
        images, scores = self.shown(federation), torch.zeros(len(federation.clients))
        if maps:
            looks = self.maps_of(federation.normalise, target, images)
            scores = values(self.scores(maps, looks, len(images)))
            if not scores.isfinite().all():
                raise DivergedError(
                    f"the saliency maps of round {number} are no numbers; lower server.lr or"
                    " fedsa.local_lr"
                )
        drawn = self.draw(federation, scores, number)
        shares = aggregation_weights(scores[drawn], self.weighting).tolist()
        for index, score in enumerate(scores.tolist()):
            federation.evaluation.note(f"transferability/{index + 1}", score)
            federation.evaluation.note(f"selected/{index + 1}", float(drawn.count(index)))
        weights: dict[int, float] = {}
        for index, share in zip(drawn, shares, strict=True):
            weights[index] = weights.get(index, 0.0) + share
        return weights

    def draw(self, federation: Federation, scores: torch.Tensor, number: int) -> list[int]:
        """K teachers: `sampled` with replacement, else different. Raises ValueError if too few."""
        if self.selection != "sampled" and self.selected > len(scores):
            raise ValueError(
                f"{self.selected} different teachers cannot be chosen among {len(scores)}; lower"
                " fedsa.selected"
            )
        if self.selection in ("top-k", "least-k"):
            order = scores.argsort(descending=self.selection == "top-k", stable=True)
            return order[: self.selected].tolist()
        moment = 1 if self.selection == "fixed" else number
        names = ("selection", federation.probe().digest, federation.networks.server, moment)
        if self.selection != "sampled":
            return federation.streams.draw(len(scores), self.selected, *names)
        probabilities = np.array(sampling_probabilities(scores.double()).tolist())
        return federation.streams.draw(
            len(scores),
            self.selected,
            *names,
            probabilities=probabilities / probabilities.sum(),
            replace=True,
        )
