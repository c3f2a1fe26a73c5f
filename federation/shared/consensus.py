"""Rounds on public images that all parties have: clients answer for them, and learn what becomes of
their answers.
"""

import contextlib
import math
from collections.abc import Callable, Sequence

import torch
from torch import nn

from fedtables.federation.client import Client, Shard
from fedtables.federation.costs import active_meter
from fedtables.federation.federation import Federation
from fedtables.federation.training.loops import predict
from fedtables.federation.training.plan import Loss, TrainingPlan

MOST_KEPT = 8 * 2**30
"""Bytes of all answers for all public images, beyond which they are not kept."""


AT_ONCE = 2**28
"""Values of a client's answers that are worked on together."""


def are_kept(federation: Federation, networks: int = 1, further: int = 0) -> bool:
    """Whether the answers of so many networks for all public images are kept, or computed anew for
    each batch, since they are too large: outputs of the task, and `further` float32 values for each
    image.

    Answers that are stitched of windows are always kept.
    """
    task, public = federation.task, federation.public
    pixels = math.prod(federation.networks.image_shape[1:]) if task.dense else 1
    size = 4 * len(public) * (task.outputs * pixels + further) * networks
    return public.window is not None or size <= MOST_KEPT


def parts_of(answers: torch.Tensor) -> list[slice]:
    """Parts of answers (n, ...) of some `AT_ONCE` values each, in order."""
    size = max(1, AT_ONCE // max(1, answers[:1].numel()))
    return [slice(first, first + size) for first in range(0, max(1, len(answers)), size)]


def book_whole(
    federation: Federation, client: Client, kind: str, one: torch.Tensor, images: int
) -> None:
    """Book the message in which a client answers for so many images at once, of which `one` (1,
    ...) is the first answer: where answers are not kept, nothing else of it crosses.
    """
    whole, meter = one.new_empty((images, *one.shape[1:]), device="meta"), active_meter()
    # Nor does a plan count memory of it.
    with contextlib.nullcontext() if meter is None else meter.having(memory=meter.memory):
        federation.channel.up(client.index, kind, {kind: whole})


def book_epoch(answer: Callable[[torch.Tensor], object], images: int, batch_size: int) -> None:
    """While planning, book what clients compute for an epoch in which they `answer` anew for every
    batch, given the numbers of its images (m,).
    """
    meter = active_meter()
    if meter is not None:
        with meter.repeated(math.ceil(images / batch_size)):
            answer(torch.arange(batch_size, device="meta"))


def mean_answer(
    federation: Federation,
    pairs: Sequence[tuple[Client, nn.Module]],
    images: torch.Tensor,
    answer: Callable[[torch.Tensor], torch.Tensor] = lambda outputs: outputs,
) -> torch.Tensor:
    """The plain mean (n, outputs, ...) of what clients send for public images (n, c, *sides).

    `pairs` are the clients, each with its network. A client sends what `answer` makes of the
    outputs, without augmentation, in evaluation mode.
    """
    normalise, window = federation.normalise, federation.public.window

    def answers(shard: Shard, model: nn.Module) -> dict[str, torch.Tensor]:
        return {"logits": answer(predict(model, images, normalise=normalise, window=window))}

    sent = [
        federation.channel.up(client.index, "logits", client.run(answers, model))
        for client, model in pairs
    ]
    received = [message["logits"] for message in sent]
    means = [
        torch.stack([own[part] for own in received]).mean(dim=0) for part in parts_of(received[0])
    ]
    return torch.cat(means) if len(means) > 1 else means[0]


def digest(
    federation: Federation,
    client: Client,
    model: nn.Module,
    images: torch.Tensor,
    targets: torch.Tensor,
    loss: Loss,
    plan: TrainingPlan,
    *names: object,
) -> None:
    """On a client: its model learns targets of public images, both of them cut as training takes
    them; its samples have no part in that.
    """

    def learn(shard: Shard) -> None:
        federation.train(model, images, targets, loss, plan, *names, augmented=False)

    client.run(learn)


def enhanced_entropy_reduction(mean: torch.Tensor, beta: float) -> torch.Tensor:
    """p^beta / sum p^beta over the classes, of probabilities (n, classes, ...).

    1 leaves them as they are, more sharpens them. Computed of logarithms, so that no power is 0
    for all classes. SCARLET's enhanced entropy reduction aggregation (Azuma et al. 2026), and
    FedBE's sharpening with beta = 1 / T (Chen and Chao 2021).
    """
    return (beta * mean.log()).softmax(dim=1)
