"""How many operators a training step of the narrow ResNet-8 is, and a distillation step of FedIOD
with such teachers, one client after another and several together, and of the former what is left
beside CUDA graphs: `python -m benchmarks.speed.launches`.

On a GPU each is a kernel, and a small network's step takes as long as launching its kernels. They
are counted on the CPU: operators that compute, not views or empty tensors, and of those that call
others the innermost. CUDA's own implementations differ, above all cuDNN's of BatchNorm; so this
compares two ways of training, and is no count of kernels.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

from benchmarks.speed.teachers import federation_of, fediod_step
from federation.parts.stacked import TrainingSet, train_stacked
from federation.training.augmentation import Augmentation
from federation.training.execution import DEFAULT, Execution
from federation.training.loops import Normalisation, TrainingPlan, channels_last, training_steps
from federation.training.replay import RECORDERS, WARM_UP
from federation.training.turns import take_turns
from models.catalogue import build

ATEN = "aten::"
NO_WORK = frozenset(
    {
        "alias",
        "as_strided",
        "as_strided_",
        "chunk",
        "detach",
        "detach_",
        "empty",
        "empty_like",
        "empty_strided",
        "expand",
        "expand_as",
        "flatten",
        "lift_fresh",
        "movedim",
        "narrow",
        "new_empty",
        "numel",
        "permute",
        "_reshape_alias",
        "reshape",
        "resize_",
        "resolve_conj",
        "resolve_neg",
        "result_type",
        "select",
        "set_",
        "slice",
        "split",
        "split_with_sizes",
        "squeeze",
        "t",
        "to",
        "transpose",
        "unbind",
        "unfold",
        "_unsafe_view",
        "unsqueeze",
        "view",
        "view_as",
    }
)
"""Operators that give a view of a tensor, or one without content."""
NETWORK, SIDE, CLASSES, BATCH = "resnet8-narrow", 16, 10, 64
TEACHERS = 20
NORMALISE = Normalisation((0.5,) * 3, (0.25,) * 3)
AUGMENTATION = Augmentation(crop=2, horizontal_flip=True)


def operators(run: Callable[[], object]) -> Counter[str]:
    """How often each innermost operator that computes is called while `run` runs."""

    def computes(name: str) -> bool:
        return name.startswith(ATEN) and name.removeprefix(ATEN) not in NO_WORK

    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        run()
    return Counter(
        event.name.removeprefix(ATEN)
        for event in profiler.events() or ()
        if computes(event.name) and not any(computes(child.name) for child in event.cpu_children)
    )


class OneLaunch:
    """A recorder (`federation.training.replay`) whose replays are no operators here."""

    def __init__(self, device: torch.device):
        pass

    def aside(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def record(
        self, step: Callable[[], None], generators: Sequence[torch.Generator]
    ) -> Callable[[], None]:
        return lambda: None


def step_operators(
    optimizer: str,
    clients: int,
    augmentation: Augmentation | None = None,
    batch: int = BATCH,
    execution: Execution = DEFAULT,
) -> int:
    """Operators of a step of all `clients` together; of one client by itself where there is one."""

    def training(steps: int) -> Callable[[], None]:
        plan = TrainingPlan(1, batch, lr=0.01, optimizer=optimizer)
        models = [channels_last(build(NETWORK, 3, CLASSES, SIDE)) for _ in range(clients)]
        shards = [_noise(steps * batch) for _ in models]
        generators = [torch.Generator() for _ in models]
        if clients > 1 and execution.compile == "off":
            return lambda: train_stacked(
                models,
                shards,
                _cross_entropy,
                plan,
                normalise=NORMALISE,
                generators=generators,
                augmentation=augmentation,
                execution=execution,
            )
        return lambda: take_turns(
            [
                training_steps(
                    model,
                    shard.images,
                    shard.targets,
                    _cross_entropy,
                    plan,
                    normalise=NORMALISE,
                    generator=generator,
                    augmentation=augmentation,
                    execution=execution,
                )
                for model, shard, generator in zip(models, shards, generators, strict=True)
            ],
            torch.device("cpu"),
        )

    # What an epoch does beside its steps, and those before a recording, are in both.
    few = WARM_UP + 1
    return operators(training(few + 1)).total() - operators(training(few)).total()


def launches_beside_graphs(
    optimizer: str, clients: int, augmentation: Augmentation | None = None, batch: int = BATCH
) -> int:
    """Operators of a step of all clients side by side that are not in their graphs, and the graphs:
    each one's batch is gathered, and copied to where its graph reads it. Seed and place of each
    generator that draws for augmentation are two more, which CUDA alone has.
    """
    RECORDERS["cpu"] = OneLaunch
    try:
        graphs = Execution(compile="graphs")
        found = step_operators(optimizer, clients, augmentation, batch, graphs)
    finally:
        del RECORDERS["cpu"]
    return found + (1 if augmentation is None else 3) * clients


def distillation_operators(clients: int, stacked: int, batch: int = BATCH) -> int:
    """Operators of a distillation step of FedIOD, all that its server computes included."""
    step = fediod_step(federation_of(clients, Execution(stacked=stacked)), batch_size=batch)
    step()  # after which optimisers have their states
    return operators(step).total()


def _noise(images: int) -> TrainingSet:
    pixels = torch.randint(0, 256, (images, 3, SIDE, SIDE), dtype=torch.uint8)
    return TrainingSet(pixels, torch.arange(images) % CLASSES)


def _cross_entropy(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(outputs, targets, reduction="none")


def main() -> None:
    torch.set_num_threads(1)
    print(
        "| optimiser | augmentation | clients | operators a step | per client | fewer by |"
        " beside graphs |"
    )
    print("|---|---|---|---|---|---|---|")
    for optimizer in ("sgd", "adam"):
        for augmentation, name in ((None, "none"), (AUGMENTATION, "crop and flip")):
            alone = step_operators(optimizer, 1, augmentation)
            for clients in (1, 4, 16):
                count = step_operators(optimizer, clients, augmentation)
                each = count / clients
                left = launches_beside_graphs(optimizer, clients, augmentation)
                row = (optimizer, name, clients, count, f"{each:.1f}", f"{alone / each:.1f}", left)
                print(f"| {' | '.join(map(str, row))} |")
    print("\n| teachers | together | operators a step | per teacher | fewer by |")
    print("|---|---|---|---|---|")
    alone = distillation_operators(TEACHERS, 1)
    for together in (1, 4, 10, 20):
        count = distillation_operators(TEACHERS, together)
        row = (TEACHERS, together, count, f"{count / TEACHERS:.1f}", f"{alone / count:.1f}")
        print(f"| {' | '.join(map(str, row))} |")


if __name__ == "__main__":
    main()
