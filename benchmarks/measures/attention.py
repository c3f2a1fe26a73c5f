"""FedAD's Figure 3: where local models look in test films, what they agree on, and where the
central model looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.tables.measure import FittedCell, Measure, Taken
from results.arrays import pack
from results.record import Measurement

if TYPE_CHECKING:
    import torch

    from federation.data import Checkpoint
    from federation.federation import Federation

SHOWN = 4
"""Films in the picture, each of another finding."""
MEASURED = 500
"""Test films, the first ones, that the numbers are of."""
LEVEL = 0.5
"""Above which a map counts as active (Figure 3's caption)."""
BATCH = 50
"""Films whose maps, of all findings, are computed together."""


class Attention(Measure):
    """Shares of attention, and what is drawn of a few test films (`reports.kinds.attention`); of a
    table with one column.
    """

    def take(self, run: FittedCell) -> Taken:
        return Taken(*measure(run.federation, run.fitted, run.percent))


def measure(
    federation: Federation, fitted: Sequence[Checkpoint], scale: float = 1.0
) -> tuple[tuple[Measurement, ...], str, str]:
    """How much of the central model's attention lies in the diversity, and of the consensus in it;
    how; and what is drawn.

    Maps of the first test films are compared for every finding that a film has and that some client
    holds: shares, times `scale`, of the positions above 0.5 of all these maps together; none where
    no map is. The third number is the share of maps in which the central model looks nowhere. The
    arrays, packed, are of a few films, each of another finding, in which the most local models look
    anywhere. Raises ValueError for a task without findings, for a method that leaves several
    networks, and if no film has a finding.
    """
    import torch

    from federation.shared.attention import aligned, attention_bounds
    from federation.tasks.multi_label import MultiLabel

    task = federation.task
    if not isinstance(task, MultiLabel):
        raise ValueError(f"a picture of attention is of a multi-label task, and the task is {task}")
    if len(fitted) != 1:
        raise ValueError(
            f"a picture shows where one central network looks, and the method leaves {len(fitted)}"
        )
    test = (
        federation.evaluation.test_set
    )  # hidden from methods, which may not choose anything by it
    images, present = test.images[:MEASURED], test.targets[:MEASURED] == 1
    central = attention_maps(federation, fitted[0], images)
    height, width = central.shape[-2:]
    models = zip(federation.local_models(), federation.clients, strict=True)
    local = torch.stack(
        [
            aligned(attention_maps(federation, m, images), (height, width), c.task, task)
            for m, c in models
        ]
    )
    # Not asked of the clients: nothing may be booked after the fit.
    holders = local.new_tensor([client.label_counts for client in federation.clients]) > 0
    consensus, diversity = attention_bounds(local, holders)
    compared = present & holders.any(dim=0)
    active, agreed, held = (maps[compared] > LEVEL for maps in (central, consensus, diversity))
    if not len(active):
        raise ValueError(
            f"none of the first {len(images)} test films has a finding that a client holds"
        )
    nowhere = ~active.flatten(1).any(dim=1)  # a map ends at 1, or is 0 everywhere
    measurements = [
        Measurement(name, scale * int(part.sum()) / int(whole.sum()))
        for name, part, whole in (
            ("attention-in-diversity", active & held, active),
            ("consensus-covered", active & agreed, agreed),
            ("attention-empty", nowhere, torch.ones_like(nowhere)),
        )
        if whole.any()
    ]
    looking = ((local > LEVEL).flatten(3).any(dim=3) & holders[:, None]).sum(dim=0)
    films, findings = _chosen(torch.where(compared, looking, -1).cpu().numpy())
    side = images.shape[-2:]
    drawn = {
        "local": local[:, films, findings].transpose(0, 1),
        "consensus": consensus[films, findings],
        "diversity": diversity[films, findings],
        "central": central[films, findings],
    }
    arrays = {name: _bytes(maps, side) for name, maps in drawn.items()}
    arrays |= {"images": images[films].cpu().numpy(), "finding": np.array(findings, np.uint8)}
    how = (
        f"of {len(active):,} findings of the first {len(images):,} test films, at the end of the"
        f" run; maps above {LEVEL}"
    )
    return tuple(measurements), how, pack(arrays)


def attention_maps(federation: Federation, model: Checkpoint, images: torch.Tensor) -> torch.Tensor:
    """A network's attention for every class of its own, (n, c, h, w)."""
    import torch

    from federation.training.inputs import unit_range
    from models.cut import encode
    from models.saliency import class_attention

    network = federation.networks.module(model)
    parts = []
    for part in images.split(BATCH):
        with torch.no_grad():
            features = encode(network, federation.normalise(unit_range(part)))
        parts.append(class_attention(network, features, create_graph=False)[1].detach())
    return torch.cat(parts)


def _bytes(maps: torch.Tensor, size: Sequence[int]) -> np.ndarray:
    """Maps (n, ..., h, w) in [0, 1], NaN where a client has none, as uint8 on the grid of the
    images.
    """
    import torch.nn.functional as F

    flat = maps.nan_to_num().reshape(len(maps), -1, *maps.shape[-2:])
    large = F.interpolate(flat, size=tuple(size), mode="bilinear", align_corners=False)
    shown: np.ndarray = (255 * large).round().clamp(0, 255).cpu().numpy().astype(np.uint8)
    return shown.reshape(*maps.shape[:-2], *size)


def _chosen(looking: np.ndarray) -> tuple[list[int], list[int]]:
    """The films and findings that are shown: those where the most local models look anywhere, none
    twice.

    `looking` (films, findings) is their number, -1 where a film has no such finding. The central
    model has no part in it.
    """
    left, films, findings = looking.copy(), list[int](), list[int]()
    while len(films) < SHOWN and left.max(initial=-1) >= 0:
        film, finding = (int(place) for place in np.unravel_index(left.argmax(), left.shape))
        left[film], left[:, finding] = -1, -1
        films.append(film)
        findings.append(finding)
    return films, findings


MEASURE = Attention()
