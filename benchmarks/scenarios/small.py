"""The small federations on which the contract judges methods, of data that come with the suite:
real digits, and generated scenes or slices for methods of such tasks; and the methods as they run
there.
"""

import contextlib
import math
from collections.abc import Mapping
from dataclasses import fields, replace

from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.tables.registry import MethodEntry
from fedtables.benchmarks.tables.spec import PLANS, Scalar
from fedtables.datasets import catalogue
from fedtables.federation.method import Method
from fedtables.privacy.plan import RELEASED

CONFIG: Mapping[str, Scalar] = {
    "data.name": "digits",
    "data.image_size": 8,
    "partition.kind": "niid2",
    "partition.clients": 5,
    "partition.public_share": 0.77,
    "partition.public_split": "",
    "partition.client_share": 0.5,
    "partition.public_limit": 200,
    "partition.pool_limit": 0,
    "partition.test_limit": 0,
    "partition.validation_share": 0.1,
    "partition.probe_share": 0.1,
    "network.client": "cnn",
    "network.server": "cnn",
    "network.cnn": "cnn-small",
    "network.pretrained": "none",
    "local.epochs": 6,
    "local.batch_size": 16,
    "local.lr": 5e-3,
    "server.epochs": 15,
    "server.batch_size": 16,
    "server.lr": 5e-3,
    "augmentation.rotation": 5,
    "augmentation.shift": 0.0,
    "augmentation.channel_shift": 0.0,
    "augmentation.horizontal_flip": False,
    "privacy.dp": "yes",
    "privacy.epsilon": math.inf,
}
"""Five clients with some 130 real digits each, 144 labelled and 200 public ones at the server; a
fit takes about two seconds."""
DENSE: Mapping[str, Scalar] = {
    **CONFIG,
    "data.name": "scenes",
    "data.task": "segmentation",
    "data.image_size": 16,
    "partition.kind": "dirichlet-fedkd",
    "partition.alpha": 10,
    "partition.clients": 2,
    "partition.public_share": 0.01,
    "partition.pool_limit": 100,
    "partition.test_limit": 100,
    "partition.probe_share": 0.01,
    "partition.teachers": "segment_semantic",
    "augmentation.rotation": 0,
}
"""Two clients with some 45 generated scenes of 16 x 16 pixels each, whose every pixel is wall,
floor or one of six kinds of blob; a fit takes a few seconds."""

SITES: Mapping[str, Scalar] = {
    **CONFIG,
    "data.name": "phantom-brains-b-t1+phantom-brains-f-t1",
    "data.task": "reconstruction",
    "data.image_size": 32,
    "public.name": "",
    "partition.kind": "by-site",
    "partition.clients": 2,
    "partition.public_limit": 0,
    "partition.pool_limit": 16,
    "network.client": "unet-8-in",
    "network.server": "unet-8-in",
    "augmentation.rotation": 0,
}
"""Two clients with 16 generated slices of heads each; a fit takes a second or two."""

LEAST: Mapping[str, float] = {"accuracy": 0.25, "miou": 0.11, "ssim": 0.5}
"""What a method that learns reaches, by the task's headline: of ten digits; of eight classes, of
which the floor everywhere has a mean IoU of 0.055, half as much."""


BRIEF: Mapping[str, Scalar] = {
    "partition.public_limit": 100,
    "local.epochs": 1,
    "server.epochs": 1,
    "evaluation.looks": 1,
}
"""What differs where it is enough to compare two fits, or to see what they send."""
BRIEF_STEPS: Mapping[str, int] = {"steps": 2, "interval": 1, "epochs": 2, "rounds": 2}
"""Steps of a method's own loop in a brief fit, in all and between two of its evaluations; its own
epochs and rounds. Other fields of epochs, as `warmup_epochs`, are 1."""
EPSILON = 1.0
"""Budget of private runs."""
DISJOINT: Mapping[str, Scalar] = {
    "partition.duplicates": False,
    "partition.client_share": 0.08,
}
"""What differs in them: epsilon is of a sample that lies with one client, once."""
PRIVATE: Mapping[str, Scalar] = {**DISJOINT, "privacy.epsilon": EPSILON, "privacy.queries": 50}


def small_config(
    method: type[Method], brief: bool = False, mechanism: str = ""
) -> Mapping[str, Scalar]:
    """The configuration of the small federation of a method's kind, with its own plans; for a brief
    fit, and with differential privacy, if asked for.
    """
    of_kind = SITES if method.reconstructs else DENSE if method.dense else CONFIG
    settings = {**of_kind, **{n: v for n, v in method.quick.items() if n.startswith(PLANS)}}
    if brief:
        settings |= BRIEF
    if mechanism:
        noise = 1.0 if mechanism == RELEASED else 0.0
        settings |= {"privacy.mechanism": mechanism, "privacy.noise_multiplier": noise, **PRIVATE}
    return settings


def small_data(method: type[Method]) -> DataSets:
    """Its data."""
    first, *others = str(small_config(method)["data.name"]).split("+")
    resolved = tuple(catalogue.resolve(name) for name in others)
    return DataSets(catalogue.resolve(first), others=resolved)


def small_headline(method: type[Method]) -> str:
    """The task's headline metric there."""
    return "ssim" if method.reconstructs else "miou" if method.dense else "accuracy"


def small_method(entry: MethodEntry) -> Method:
    """The method as the contract runs it: its defaults, with local loops of at most three epochs,
    and what `quick` says.
    """
    method = entry.load()
    able = [field.name for field in fields(method) if field.init]
    brief = {name: 3 for name in able if name.endswith("epochs")} | dict(method.quick)
    return method(**{name: value for name, value in brief.items() if name in able})


def shortened(method: Method) -> Method:
    """The method with loops of its own of at most `BRIEF_STEPS`, or of the fewest times as many, up
    to 128, that its other fields allow; else as it is.
    """
    most = {f.name: 1 for f in fields(method) if f.name.endswith("_epochs")} | dict(BRIEF_STEPS)
    own = {name: getattr(method, name, None) for name in most}
    numbers = {name: number for name, number in own.items() if isinstance(number, int)}
    for times in (2**power for power in range(8)):
        with contextlib.suppress(ValueError):
            return replace(method, **{n: min(times * most[n], numbers[n]) for n in numbers})
    return method
