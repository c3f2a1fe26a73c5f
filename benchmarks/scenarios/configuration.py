"""A cell's flat configuration, parsed once into a few frozen sections.

A section takes the settings that begin with its name and refuses those that it does not know.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np

from fedtables.benchmarks.tables.registry import TASK
from fedtables.benchmarks.tables.spec import (
    DUPLICATES,
    EVALUATED_ON,
    LOOKS,
    SETTLED,
    UNLISTED,
    VALIDATION_SHARE,
    Scalar,
    SpecError,
)
from fedtables.datasets import partitions
from fedtables.datasets.dealing import dealt
from fedtables.federation.augmentation import Augmentation
from fedtables.federation.training.plan import TrainingPlan
from fedtables.privacy.plan import RELEASED, PrivacyPlan
from fedtables.results.names import near
from fedtables.results.numbers import (
    MOST_WHOLE,
    Bounds,
    Count,
    Positive,
    Share,
    SomeShare,
    check_bounds,
)

Config = Mapping[str, Scalar]
"""Settings by dotted name, as a cell carries them: `local.epochs`, `dlad.temperature`."""

S = TypeVar("S")

KINDS: Mapping[Any, type | tuple[type, ...]] = {
    bool: int,  # 0 and 1 will do
    int: int,
    float: (int, float),
    str: str,
    str | None: str,
}
"""Values that a field takes, by its type; those of a `Literal` alone, and any if it is not
listed."""
WORDS = {int: "a whole number", (int, float): "a number", str: "text"}
MOST_PIXELS = 4096
"""Of a side: the largest images that any network here could hold in a batch."""


@dataclass(frozen=True)
class DataSettings:
    """`data.*`: the data sets of the task."""

    image_size: Annotated[int, Bounds(1, MOST_PIXELS)]
    """Pixels of a side, as networks see it."""
    depth: int = 0
    """Of a volume in voxels, where it is another than the other sides'."""
    name: str = ""
    """The data set; of several sites `nih-cxr14+chexpert`."""
    task: str = TASK
    """What is learnt; it decides on the scenario."""
    train: Scalar = ""
    """What a table's column calls the sites that train; a scenario may read it."""


@dataclass(frozen=True)
class PublicSettings:
    """`public.*`: where public images come from."""

    name: str | None = None
    """Their data set; `spec.HELD_OUT`, or None, for a part of the clients' own set that no client
    has; empty where the method uses no public images."""


@dataclass(frozen=True)
class PrivateSettings:
    """`private.*`: where the clients' samples come from."""

    name: str = ""
    """Their data set, where it is another than the server's target data."""


@dataclass(frozen=True)
class PartitionSettings:
    """`partition.*`: who holds what. A limit of 0 is none."""

    kind: partitions.Kind
    clients: Count
    alpha: float = 0.0
    """Of the Dirichlet kinds."""
    client_share: Share = 0.0
    """Of the pool that each client draws under DLAD's kinds."""
    duplicates: bool = bool(UNLISTED[DUPLICATES])
    """Whether it draws with replacement, and from the whole pool: then a sample may lie several
    times with a client, and with several clients."""
    public_split: str = ""
    """The split that public samples come from; empty for the training split."""
    public_share: Share = 0.0
    """Of the training split, where public samples come from it; under by-group of its groups."""
    public_limit: int = 0
    pool_limit: int = 0
    """Samples of all clients together."""
    test_limit: int = 0
    """Test samples of each site or class; of images, and of films, of the data set."""
    validation_share: Share = float(UNLISTED[VALIDATION_SHARE])
    """Of the clients' pool (or its patients; under by-group its groups) that the server holds with
    labels; of the target's images that it has no labels of, where clients hold another set."""
    probe_share: Share = 0.0
    """Of the target's training samples that the server holds with labels and may train on."""
    probe_order: Literal["random", "consecutive"] = "random"
    """At random, or from one random place of the file on."""
    target_split: str = "train"
    """The split of the server's target data."""
    target_limit: int = 0
    teachers: str = "class"
    """Annotations that clients of a private data set learn, in turn: `class+normal`."""
    slot: str = ""
    """The clients of which a table prints the classes: `5n+2`."""

    def __post_init__(self) -> None:
        if self.kind.startswith("dirichlet") and not self.alpha > 0:
            raise SpecError(f"{self.kind} needs a partition.alpha above 0, not {self.alpha}")

    def dealt(
        self,
        labels: np.ndarray,
        clients: int,
        rng: Callable[..., np.random.Generator],
        groups: np.ndarray | None = None,
    ) -> list[np.ndarray]:
        """The indices of each of `clients` clients into a pool (`fedtables.datasets.dealing`)."""
        return dealt(
            labels,
            self.kind,
            clients,
            rng,
            alpha=self.alpha,
            client_share=self.client_share,
            duplicates=self.duplicates,
            groups=groups,
        )


@dataclass(frozen=True)
class NetworkSettings:
    """`network.*`: the networks of clients and server."""

    client: str
    """The clients' kinds of network: `resnet+densenet` gives the first half ResNet, the rest
    DenseNet."""
    server: str
    pretrained: Literal["none", "imagenet"] = "none"
    """On what; `none` for random weights."""
    setting: Scalar = ""
    """What a table's column calls the choice of networks; it tells columns apart and sets
    nothing."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Networks by what tables call them: `network.resnet` names the network of the kind
    `resnet`."""

    @classmethod
    def names(cls, name: str, value: Scalar) -> bool:
        """Whether an entry is one of `roles`: if its value is a text. Raises SpecError, with near
        names, if that is no network.
        """
        from fedtables.models.catalogue import networks

        if isinstance(value, str) and value not in networks():
            raise SpecError(f"network.{name}: no network {value!r}; {near(value, networks())}")
        return isinstance(value, str)

    def named(self, role: str) -> str:
        """The network of a kind; the kind may name a network itself."""
        return self.roles.get(role, role)

    def client_roles(self, clients: int) -> list[str]:
        """Which kind of network each of `clients` clients has."""
        kinds = self.client.split("+")
        return [kinds[k * len(kinds) // clients] for k in range(clients)]


@dataclass(frozen=True)
class EvaluationSettings:
    """`evaluation.*`: what is read off a run."""

    test: str = ""
    """The data set of the test samples, where it is none of the clients'."""
    on: Literal["test", "validation"] = cast(Any, UNLISTED[EVALUATED_ON])
    """`test`, or `validation`: the samples of `partition.validation_share`, to choose settings
    by. FedDF keeps its best weights by the same samples, so its own are flattered there."""
    statistic: Literal["last", "best"] = "last"
    """`last`, or `best` of all epochs by the test set."""
    last_epochs: Count = 1
    """Epochs at the end whose median counts."""
    at: SomeShare = 1.0
    """Share of the epochs after which a run's numbers are read."""
    looks: Annotated[int, Bounds(0, MOST_WHOLE)] = int(UNLISTED[LOOKS])
    """After how many of a training's epochs or a fit's rounds the test set is looked at, evenly
    spread and the last among them; 0 for all."""
    extractor: str = ""
    """The network whose features measure images."""
    selecting: str = ""
    """The method that scores teachers, where a measure compares with its scores."""
    settled: Positive = float(UNLISTED[SETTLED])
    """Points within which the last tenth of a run is like the tenth before it, or the run was cut
    short (`fedtables.metrics.settling`)."""

    def __post_init__(self) -> None:
        if self.looks and (self.statistic == "best" or self.last_epochs > 1 or self.at < 1):
            raise SpecError(
                "the best epoch, the median of the last ones, and one before the end are of all"
                " epochs: leave evaluation.looks at 0, or set evaluation.statistic=last,"
                " evaluation.last_epochs=1 and evaluation.at=1"
            )

    def epochs(self, trained: int) -> int:
        """How many of the epochs of a run are read, at least one."""
        return max(1, round(self.at * trained))


@dataclass(frozen=True)
class Configuration:
    """What a federation is made by, whatever its data."""

    data: DataSettings
    partition: PartitionSettings
    network: NetworkSettings
    local: TrainingPlan
    """How clients train."""
    server: TrainingPlan
    """How the server trains."""
    public: PublicSettings = PublicSettings()
    private: PrivateSettings = PrivateSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    augmentation: Augmentation | None = None
    """How training images are changed; None if they are not."""
    privacy: PrivacyPlan | None = None
    """The differential privacy that is asked for; None if there is none."""
    others: Mapping[str, Scalar] = field(default_factory=dict)
    """Settings of scenarios, measures and methods, which `read_section` reads for them."""

    @classmethod
    def parse(cls, config: Config) -> Configuration:
        """The sections of a flat configuration.

        Raises SpecError with near names for a setting of a section that the section does not know
        and for a value that is none of a setting's, for one of another kind and for one that is
        missing; ValueError for a number out of its bounds and for values that contradict each
        other.
        """
        augmentation = read_section(config, "augmentation", Augmentation)
        plain: dict[str, Any] = {
            prefix: read_section(config, prefix, kind) for prefix, kind in PLAIN.items()
        }
        return cls(
            **plain,
            augmentation=None if augmentation == Augmentation() else augmentation,
            privacy=_privacy(config),
            others={n: v for n, v in config.items() if n.partition(".")[0] not in SECTIONS},
        )


PLAIN: Mapping[str, type] = {
    "data": DataSettings,
    "public": PublicSettings,
    "private": PrivateSettings,
    "partition": PartitionSettings,
    "network": NetworkSettings,
    "local": TrainingPlan,
    "server": TrainingPlan,
    "evaluation": EvaluationSettings,
}
"""Sections that a configuration holds as they are read."""
SECTIONS = frozenset({*PLAIN, "augmentation", "privacy"})
"""What the settings of every federation begin with."""


def read_section(config: Config, prefix: str, section: type[S]) -> S:
    """The settings that begin with `prefix.` as a dataclass, values as they are.

    A section with a method `names(name, value)` also takes the entries for which it is true, in its
    one field that is a mapping. Raises SpecError as `Configuration.parse`.
    """
    return _made(section, prefix, _values(config, prefix, section))


def _values(config: Config, prefix: str, section: type) -> dict[str, Any]:
    """The entries of a section by its fields' names. Raises SpecError for one that it does not
    know, and for a value that its field does not take.
    """
    kinds = dict(_types(section))
    gathered = next((name for name, kind in kinds.items() if get_origin(kind) is Mapping), "")
    kinds.pop(gathered, None)
    values: dict[str, Any] = {gathered: {}} if gathered else {}
    for setting, value in config.items():
        start, _, name = setting.partition(".")
        if start != prefix:
            continue
        if name in kinds:
            _check(setting, value, kinds[name])
            values[name] = value
        elif gathered and cast(Any, section).names(name, value):
            values[gathered][name] = value
        else:
            known = [f"{prefix}.{known}" for known in kinds]
            raise SpecError(f"unknown setting {setting!r}; {near(setting, known)}")
    check_bounds(section, values, f"{prefix}.")
    return values


@functools.cache
def _types(section: type) -> Mapping[str, Any]:
    """The types of a section's fields, by name."""
    return get_type_hints(section)


def _check(setting: str, value: Scalar, kind: Any) -> None:
    """Raise SpecError, with near values, for one that a field of this type does not take."""
    accepted = KINDS.get(kind)
    if accepted is not None and not isinstance(value, accepted):
        raise SpecError(f"{setting} is {WORDS[accepted]}, not {value!r}")
    if get_origin(kind) is Literal and value not in get_args(kind):
        raise SpecError(f"{setting} cannot be {value!r}; {near(str(value), get_args(kind))}")


def _made(section: type[S], prefix: str, values: Mapping[str, Any]) -> S:
    """The section with these fields. Raises SpecError if one that it needs is missing."""
    for about in dataclasses.fields(cast(Any, section)):
        needed = about.default is about.default_factory is dataclasses.MISSING
        if needed and about.name not in values:
            raise SpecError(f"{prefix}.{about.name} is not set")
    return section(**values)


def _privacy(config: Config) -> PrivacyPlan | None:
    """How the configuration asks for differential privacy; None where it does not."""
    settings = {name: value for name, value in config.items() if name != "privacy.dp"}
    values = _values(settings, "privacy", PrivacyPlan)
    if config.get("privacy.dp") != "yes" or values.get("epsilon") == math.inf:
        return None
    if values.get("mechanism") == RELEASED:  # its noise is given, and no budget could hold it
        values["epsilon"] = math.inf
    if "epsilon" in values:
        values["epsilon"] = float(values["epsilon"])  # 10 and 10.0 are one budget, with one noise
    return _made(PrivacyPlan, "privacy", values)
