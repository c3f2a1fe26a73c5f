"""A federation of a script's own tensors, without the runner: `federation_of(OwnData(...))`."""

import math
import operator
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from fedtables.datasets.dealing import dealt
from fedtables.datasets.partitions import PartitionError
from fedtables.federation.cache import content_digest
from fedtables.federation.client import Shard
from fedtables.federation.data import LabelledSet, NoPublicData, PublicData
from fedtables.federation.federation import Federation
from fedtables.federation.inside.privacy import Protection
from fedtables.federation.parts import ClientPart, Parts, Plans, Run, put_together
from fedtables.federation.seeds import Seeds
from fedtables.federation.tasks.images import Classification
from fedtables.federation.training.inputs import Normalisation, unit_range
from fedtables.federation.training.plan import TrainingPlan
from fedtables.models.catalogue import ModelError, network_for
from fedtables.privacy.plan import RELEASED, PrivacyPlan
from fedtables.results.files import digest
from fedtables.results.numbers import MOST, shortened, whole_number

Array = torch.Tensor | np.ndarray
Pair = tuple[Array, Array]
"""Images, and their classes (n,): whole numbers from 0."""
StoredPair = tuple[torch.Tensor, torch.Tensor]
"""Images uint8 or float32 (n, c, h, w), and classes int64 (n,)."""
MOST_CHANNELS = 4
"""With more of them, and a last side of 1 or 3, images are taken for such with channels last."""


@dataclass(frozen=True)
class OwnData:
    """The data of all parties. Images (n, h, w) or (n, c, h, w) are uint8, or floats in [0, 1]."""

    clients: Sequence[Pair]
    """Private images and classes, one pair per client."""
    test: Pair
    """Test images and classes. No method sees them while it fits."""
    public: Array | None = None
    """Images at the server, without labels; None if there are none."""
    validation: Pair | None = None
    """Labelled images at the server, to choose models by."""
    probe: Pair | None = None
    """Labelled images at the server, to train on."""
    classes: int = 0
    """Number of classes; 0: one more than the highest label."""
    mean: Sequence[float] = ()
    """Mean of each channel, in [0, 1]; 0.5 if empty. Networks see (image - mean) / std."""
    std: Sequence[float] = ()
    """Standard deviation of each channel, above 0; 0.5 if empty."""


def federation_of(
    data: OwnData,
    plans: Plans | None = None,
    *,
    privacy: PrivacyPlan | None = None,
    run: Run | None = None,
) -> Federation:
    """Make a federation that classifies images.

    Args:
        data: images and labels of clients and server.
        plans: networks, and how they train; by default a small CNN.
        privacy: makes the fit differentially private. Epsilon is per image, so each image must lie
            with one client, once. The federation can then be fitted once.
        run: seeds, device and execution; by default seed 0 on the CPU.

    Raises ValueError for a wrong argument; the message names it.
    """
    plans, run = Plans() if plans is None else plans, Run() if run is None else run
    _check_kinds(data, plans, privacy, run)
    _check_plans(plans)
    _check_run(plans, run)
    parts = _parts(data)
    if privacy is not None and privacy.mechanism != RELEASED:
        _check_disjoint(parts)
    for name, given in (("clients", plans.clients), ("roles", plans.roles)):
        if len(given) not in (0, len(parts.clients)):
            raise ValueError(
                f"plans.{name}: {len(given)} cannot be those of {len(parts.clients)} clients"
            )
    federation = put_together(parts, plans, run, Protection(privacy) if privacy else None)
    for network in {federation.networks.server, *(c.network for c in federation.clients)}:
        _try(federation, network)
    return federation


def partition(
    labels: Array,
    kind: str,
    clients: int,
    *,
    alpha: float = 0.0,
    client_share: float = 0.5,
    duplicates: bool = True,
    seed: int = 0,
) -> list[np.ndarray]:
    """Split samples among clients, as the runner does.

    Args:
        labels: the class of each sample, (n,).
        kind: such as `iid`, `niid1` (DLAD) or `dirichlet-feddf`; docs/howto/own-script.md has all.
        clients: number of clients.
        alpha: concentration of the Dirichlet kinds.
        client_share: share of the pool that each client draws (DLAD).
        duplicates: whether clients draw with replacement (DLAD).
        seed: seed of the partition.

    Returns:
        Indices into `labels` for each client, int64. Raises ValueError for a wrong argument.
    """
    given = _tensor("labels", labels)
    known = _labels("labels", given, given.numel()).numpy()
    if not len(known):
        raise ValueError("labels: there are none to share out")
    if str(kind).startswith("dirichlet"):
        _check_number("alpha", alpha, MOST)
    _check_number("client_share", client_share, 1)
    clients, seed = _whole("clients", clients, 1), _whole("seed", seed, 0)

    def rng(*names: object) -> np.random.Generator:
        return Seeds(partition=seed).numpy("partition", *names)

    how: dict[str, Any] = {"alpha": alpha, "client_share": client_share}
    try:
        return dealt(known, kind, clients, rng, **how, duplicates=duplicates)
    except PartitionError as error:
        raise ValueError(str(error)) from error


def _check_number(name: str, given: Any, most: float) -> None:
    """Raise ValueError for what is no number above 0 and up to `most`."""
    if not isinstance(given, int | float | np.number) or not 0 < given <= most:
        raise ValueError(f"{name}: a number above 0, at most {most:g}, not {shortened(given)}")


def _whole(name: str, given: Any, least: int) -> int:
    """Raises ValueError for what is no whole number from `least`."""
    try:
        return whole_number(operator.index(given), least)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: a whole number from {least}, not {shortened(given)}") from error


def _listed(name: str, given: Any) -> list[Any]:
    """Raises ValueError for what is no sequence."""
    if isinstance(given, Collection) and not isinstance(given, str):
        return list(given)
    raise ValueError(f"{name}: expected a list, not {type(given).__name__}")


def _check_kinds(data: Any, plans: Any, privacy: Any, run: Any) -> None:
    """Raise ValueError for an argument, or a part of one, of another class than it has to be."""
    _of("data", data, OwnData)
    _of("plans", plans, Plans)
    _of("run", run, Run)
    if privacy is not None:
        _of("privacy", privacy, PrivacyPlan)
    _of("plans.local", plans.local, TrainingPlan)
    _of("plans.server", plans.server, TrainingPlan)
    _of("run.seeds", run.seeds, Seeds)


def _of(name: str, given: Any, kind: type) -> None:
    """Raise ValueError for what is not of a class."""
    if not isinstance(given, kind):
        raise ValueError(f"{name}: expected {kind.__name__}, not {type(given).__name__}")


def _check_plans(plans: Plans) -> None:
    """Raise ValueError for networks and numbers that cannot be planned with."""
    _whole("plans.looks", plans.looks, 0)
    _listed("plans.roles", plans.roles)
    _check_network("plans.network", plans.network)
    for number, network in enumerate(_listed("plans.clients", plans.clients)):
        _check_network(f"plans.clients[{number}]", network)


def _check_network(name: str, given: Any) -> None:
    """Raise ValueError for what is neither the name of a network nor a function that makes one."""
    try:
        if isinstance(given, str):
            network_for(given, dense=False)
        elif isinstance(given, nn.Module) or not callable(given):
            raise TypeError(
                f"{type(given).__name__} is neither a name nor a function of channels, classes and"
                " sides that makes a module"
            )
        hash(given)
    except (ModelError, TypeError) as error:
        raise ValueError(f"{name}: {error}") from error


def _check_run(plans: Plans, run: Run) -> None:
    """Raise ValueError for a device that is not there, or cannot do what is asked of it."""
    try:
        device = torch.device(run.device)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        why = str(error).splitlines()[0]
        raise ValueError(f"run.device: {run.device!r} is not there: {why}") from error
    if device.type == "meta":
        raise ValueError("run.device: on meta nothing is computed; name another device")
    if run.execution.compile == "graphs" and device.type != "cuda":
        raise ValueError("run.execution: compile=graphs is for CUDA devices")
    own = [network for network in (plans.network, *plans.clients) if not isinstance(network, str)]
    if own and run.stages.folder is not None:
        raise ValueError("run.stages: what networks of your own learn is kept in memory only")


def _parts(data: OwnData) -> Parts:
    """The data as they are stored, checked."""
    own = _listed("clients", data.clients)
    clients = {f"clients[{number}]": pair for number, pair in enumerate(own)}
    if not clients:
        raise ValueError("clients: a federation needs at least one")
    server = {"test": data.test, "validation": data.validation, "probe": data.probe}
    given = {n: pair for n, pair in server.items() if n == "test" or pair is not None}
    sets = {name: _pair(name, pair) for name, pair in (clients | given).items()}
    public = None if data.public is None else _images("public", data.public)
    if public is not None and not len(public):
        raise ValueError("public: no images; leave it out if the server has none")
    shape = tuple(sets["test"][0].shape[1:])
    _check_shapes(shape, sets, {} if public is None else {"public": public})
    classes = _classes(data.classes, sets)
    held = {name: LabelledSet(*sets[name], _digest(*sets[name])) for name in server if name in sets}
    return Parts(
        clients=[_client(*sets[name], classes) for name in clients],
        public=NoPublicData() if public is None else PublicData(public, _digest(public)),
        test=held["test"],
        validation=held.get("validation"),
        probe=held.get("probe"),
        task=Classification(classes),
        image_shape=shape,
        normalise=_normalisation(data, shape[0]),
    )


def _check_shapes(
    shape: tuple[int, ...], sets: Mapping[str, StoredPair], others: Mapping[str, torch.Tensor]
) -> None:
    """Raise ValueError for images of another shape than those of the test set."""
    for name, images in {**{name: pair[0] for name, pair in sets.items()}, **others}.items():
        found = tuple(images.shape[1:])
        if found != shape:
            raise ValueError(f"{name}: images are {found} each, and those of test {shape}")


def _classes(given: int, sets: Mapping[str, StoredPair]) -> int:
    """How many there are. Raises ValueError for fewer than labels say."""
    highest = {name: int(labels.max()) for name, (_, labels) in sets.items()}
    classes = _whole("classes", given, 0) or 1 + max(highest.values())
    for name, label in highest.items():
        if label >= classes:
            raise ValueError(f"classes: {classes} are too few, {name} has the label {label}")
    return classes


def _client(images: torch.Tensor, labels: torch.Tensor, classes: int) -> ClientPart:
    counts = tuple(torch.bincount(labels, minlength=classes).tolist())
    return ClientPart(
        Shard(images, labels), counts, _digest(images, labels), "own", np.arange(len(labels))
    )


def _pair(name: str, given: Any) -> StoredPair:
    """Raises ValueError for what is no pair of images and labels."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError(
            f"{name}: expected a pair of images and labels, not {type(given).__name__}"
        )
    images = _images(name, given[0])
    if not len(images):
        raise ValueError(f"{name}: no images; leave out who holds none")
    return images, _labels(name, given[1], len(images))


def _tensor(name: str, given: Any) -> torch.Tensor:
    """Raises ValueError for what is no array of numbers."""
    try:
        return torch.as_tensor(
            np.ascontiguousarray(given) if isinstance(given, np.ndarray) else given
        ).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name}: {type(given).__name__} is no array of numbers") from error


def _images(name: str, given: Any) -> torch.Tensor:
    """uint8 or float32 (n, c, h, w). Raises ValueError for what is no such images."""
    images = _tensor(name, given)
    images = images[:, None] if images.ndim == 3 else images
    shape = tuple(images.shape)
    if images.ndim != 4 or 0 in shape[1:]:
        raise ValueError(f"{name}: images are (n, h, w) or (n, c, h, w), not {shape}")
    if shape[1] > MOST_CHANNELS and shape[3] in (1, 3):
        raise ValueError(f"{name}: images {shape} seem to be (n, h, w, c); give (n, c, h, w)")
    if images.dtype == torch.uint8:
        return images.contiguous()
    if not images.is_floating_point():
        raise ValueError(f"{name}: images are uint8 or floats in [0, 1], not {images.dtype}")
    images = images.to(torch.float32).contiguous()
    if len(images) and not bool(((images >= 0) & (images <= 1)).all()):
        low, high = (f"{float(value):g}" for value in images.aminmax())
        raise ValueError(f"{name}: floats must lie in [0, 1], and these go from {low} to {high}")
    return images


def _labels(name: str, given: Any, count: int) -> torch.Tensor:
    """int64 (count,). Raises ValueError for what is no class for each of `count` images."""
    labels = _tensor(name, given)
    if labels.shape != (count,):
        raise ValueError(
            f"{name}: {count} images need labels ({count},), not {tuple(labels.shape)}"
        )
    if labels.dtype == torch.bool or labels.is_floating_point() or labels.is_complex():
        raise ValueError(f"{name}: labels are whole numbers from 0, not {labels.dtype}")
    labels = labels.to(torch.int64).cpu()
    if count and labels.min() < 0:
        raise ValueError(f"{name}: labels are whole numbers from 0, not {int(labels.min())}")
    return labels


def _normalisation(data: OwnData, channels: int) -> Normalisation:
    mean, std = (_numbers(name, getattr(data, name), channels) for name in ("mean", "std"))
    if not all(0 <= value <= 1 for value in mean):
        raise ValueError(f"mean: numbers in [0, 1], not {mean}")
    if not all(0 < value < math.inf for value in std):
        raise ValueError(f"std: numbers above 0, not {std}")
    return Normalisation(mean, std)


def _numbers(name: str, given: Any, channels: int) -> tuple[float, ...]:
    """A number for each channel, 0.5 if none is given. Raises ValueError for anything else."""
    try:
        values = tuple(map(float, given)) or (0.5,) * channels
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: a number for each channel, not {shortened(given)}") from error
    if len(values) != channels:
        raise ValueError(f"{name}: {len(values)} numbers for {channels} channels")
    return values


def _digest(images: torch.Tensor, labels: torch.Tensor | None = None) -> str:
    """Identifies the content in stage keys."""
    return content_digest({"images": images} | ({} if labels is None else {"labels": labels}))


def _check_disjoint(parts: Parts) -> None:
    """Raise ValueError where an image lies with the clients more than once: each copy spends the
    budget again, so that epsilon would cover an entry of a shard, and no image. Also where it lies
    with the server, which uses what it holds without noise.
    """
    copies = Counter(d for client in parts.clients for d in _digests(client.shard.images))
    server = {"public": parts.public, "validation": parts.validation, "probe": parts.probe}
    for name, held in server.items():
        if held is None or isinstance(held, NoPublicData):
            continue
        if shared := copies.keys() & _digests(held.images):
            raise ValueError(
                f"{name}: {len(shared)} of its images lie with clients too, whose epsilon does not"
                " cover what the server holds; take them out"
            )
    if (most := max(copies.values())) > 1:
        raise ValueError(
            f"clients: one image lies with them {most} times, and each copy costs its epsilon"
            " again; give each image to one client, once"
        )


def _digests(images: torch.Tensor) -> list[str]:
    """Of each image as a float, so that bytes are known again."""
    return [digest(image.numpy().tobytes()) for image in unit_range(images).cpu()]


def _try(federation: Federation, network: str) -> None:
    """Raise ValueError for a network that makes no scores of the federation's images."""
    outputs, (channels, *sides) = federation.task.outputs, federation.networks.image_shape
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        images = unit_range(torch.zeros(2, channels, *sides, dtype=torch.uint8))
        try:
            made = federation.networks.build(network, outputs).eval()(images)
        except Exception as error:
            raise ValueError(f"network: {network} fails: {error}") from error
    shape = tuple(getattr(made, "shape", ()))
    if shape != (2, outputs):
        raise ValueError(f"network: {network} makes {shape} of 2 images, not (2, {outputs})")
