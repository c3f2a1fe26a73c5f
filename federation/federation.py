"""A federation: clients with private data, a server with public data, and the channel between them.

What methods are written with. Expensive steps go through the stage cache; the tables of one paper, and whoever asks
for the same step again, share them.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import nn

from federation.augmentation import Augmentation
from federation.channel import Channel
from federation.client import Client, Shard
from federation.costs import active_meter
from federation.seeds import Seeds
from federation.stages import Stage, StageCache, StageRequest, content_digest
from federation.tasks import Task
from federation.training import Loss, Normalisation, TrainingPlan, predict, train
from models import catalogue

History = dict[str, list[float]]
"""Metrics by name, a value per epoch."""


class OracleError(Exception):
    """A method reached for knowledge that it did not declare."""


@dataclass(frozen=True)
class PublicData:
    """The public set: images, and no labels at all."""

    images: torch.Tensor
    """uint8 (n, c, h, w), on the run's device."""
    digest: str
    """Identifies the content in stage keys."""

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True)
class TestSet:
    """What models are measured on."""

    images: torch.Tensor
    targets: torch.Tensor
    digest: str


@dataclass(frozen=True)
class Checkpoint:
    """A trained network: its name, its weights, and how its test metrics went by epoch."""

    network: str
    outputs: int
    """Size of its last layer."""
    state: dict[str, torch.Tensor]
    owner: str
    """`server`, or `client-3`."""
    lineage: str
    """Digest of everything that determined the weights; stages computed from the checkpoint are keyed by it."""
    history: History = field(default_factory=dict)
    """Test metrics after each epoch of training."""

    def with_state(self, state: dict[str, torch.Tensor]) -> Checkpoint:
        """The same network with other weights (averaged, noised, ...): a new lineage, and no history."""
        return dataclasses.replace(self, state=state, lineage=content_digest(state, _scope()), history={})


class Federation:
    """Everything a method may use. Server-side code reads `clients`' public facts, `public` and the channel."""

    def __init__(
        self,
        *,
        clients: Sequence[Client],
        public: PublicData,
        test: TestSet,
        task: Task,
        network: str,
        image_shape: tuple[int, int, int],
        normalise: Normalisation,
        local: TrainingPlan,
        server: TrainingPlan,
        augmentation: Augmentation | None,
        seeds: Seeds,
        stages: StageCache,
        channel: Channel | None = None,
        device: torch.device | str = "cpu",
        pretrained: bool = False,
        oracle_labels: torch.Tensor | None = None,
        oracle_allowed: frozenset[str] = frozenset(),
        progress: Callable[[str, float], None] = lambda text, share: None,
    ):
        self.clients = tuple(clients)
        self.public = public
        self.task = task
        self.network = network
        """The network of the global model."""
        self.local = local
        """How clients train their own models."""
        self.server = server
        """How the server trains the global model."""
        self.augmentation = augmentation
        self.seeds = seeds
        self.stages = stages
        self.channel = channel or Channel()
        self.device = torch.device(device)
        self.normalise = normalise
        self.progress = progress
        self._test = test
        self._image_shape = image_shape
        self._pretrained = pretrained
        self._oracle_labels = oracle_labels
        self._oracle_allowed = oracle_allowed

    # -- networks ---------------------------------------------------------------------------------------------------

    def initial(self, network: str) -> nn.Module:
        """A network before training: ImageNet weights if the table asks for them, else random ones.

        All parties that use the same network start from the same weights, as they do from ImageNet's.
        """
        channels, height, _ = self._image_shape
        if self.device.type == "meta":
            return _meta_module(network, channels, self.task.outputs, height)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seeds.number("weights", network))
            model = catalogue.build(network, channels, self.task.outputs, height)
        if self._pretrained:
            from models.networks.imagenet import load_imagenet

            load_imagenet(model, network)
        return model.to(self.device)

    def module(self, checkpoint: Checkpoint) -> nn.Module:
        """The network of a checkpoint, with its weights, in evaluation mode."""
        channels, height, _ = self._image_shape
        if self.device.type == "meta":
            return _meta_module(checkpoint.network, channels, checkpoint.outputs, height)
        with torch.random.fork_rng(devices=[]):
            model = catalogue.build(checkpoint.network, channels, self.task.outputs, height)
            if checkpoint.outputs != self.task.outputs:
                catalogue.replace_head(model, checkpoint.outputs)
        model.load_state_dict(checkpoint.state)
        return model.to(self.device).eval()

    def replace_head(self, model: nn.Module, outputs: int, *names: object) -> nn.Module:
        """Give `model` a new random linear head; `names` name the stream of the weights axis it is drawn from."""
        if self.device.type == "meta":
            return catalogue.replace_head(copy.deepcopy(model), outputs)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seeds.number("weights", "head", *names))
            return catalogue.replace_head(model, outputs)

    def checkpoint(self, model: nn.Module, network: str, outputs: int, owner: str = "server") -> Checkpoint:
        """A checkpoint of a module that a method trained by itself."""
        state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        return Checkpoint(network, outputs, state, owner, content_digest(state, _scope()))

    # -- training ---------------------------------------------------------------------------------------------------

    def train(
        self,
        model: nn.Module,
        images: torch.Tensor,
        targets: torch.Tensor,
        loss: Loss,
        plan: TrainingPlan,
        *names: object,
        sample_weights: torch.Tensor | None = None,
        track: bool = False,
        label: str = "",
    ) -> History:
        """Train `model` in place with the run's augmentation; `names` name the stream of the shuffling axis.

        With `track` the test metrics after every epoch are returned; no method may choose anything by them.
        """
        history: History = {}

        def after_epoch(epoch: int) -> None:
            self.progress(f"{label} epoch {epoch}/{plan.epochs}", epoch / plan.epochs)
            if track:
                for metric, value in self.evaluate(model).items():
                    history.setdefault(metric, []).append(value)

        meta = self.device.type == "meta"
        with torch.random.fork_rng(enabled=not meta):
            torch.manual_seed(self.seeds.number("shuffling", "dropout", *names))
            train(
                model, images, targets, loss, plan,
                normalise=self.normalise,
                generator=None if meta else self.seeds.torch("shuffling", *names, device=self.device),
                augmentation=self.augmentation,
                sample_weights=sample_weights,
                after_epoch=after_epoch,
            )  # fmt: skip
        return history

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Metrics on the test set (none while planning)."""
        outputs = predict(model, self._test.images, normalise=self.normalise)
        return {} if outputs.is_meta else self.task.metrics(outputs, self._test.targets)

    def _inputs(self, *parts: Any) -> dict[str, Any]:
        """What determines any stage of this federation, and `parts`."""
        return {
            "image": list(self._image_shape),
            "normalise": asdict(self.normalise),
            "augmentation": asdict(self.augmentation) if self.augmentation else None,
            "task": repr(self.task),
            "pretrained": self._pretrained,
            "test": self._test.digest,
            "device": [self.device.type, torch.get_num_threads()],
            "parts": list(parts),
        }

    def _stream(self, *axes: str) -> dict[str, int]:
        return {axis: getattr(self.seeds, axis) for axis in axes}

    def checkpoints(self, requests: Sequence[StageRequest]) -> list[Checkpoint]:
        """Checkpoints that are stages: each computed once, whoever asks first."""
        found = self.stages.get_all(requests)
        return [Checkpoint(state=s.tensors, lineage=r.key, **s.info) for r, s in zip(requests, found, strict=True)]

    def client_stage(
        self,
        kind: str,
        client: Client,
        compute: Callable[[], tuple[nn.Module, History]],
        *parts: Any,
        outputs: int,
        code: str,
    ) -> StageRequest:
        """A request for a network trained on one client.

        `compute` gives the trained network and its history, `parts` are plain values that determine it beside the
        client, `outputs` is the size of its last layer and `code` the name of the module that computes it.
        """

        def stage() -> Stage:
            model, history = compute()
            return _as_stage(model, client.network, outputs, f"client-{client.index}", history)

        inputs = self._inputs(
            client.index, client.digest, client.network, catalogue.network_digest(client.network),
            self._stream("weights", "shuffling"), *parts,
        )  # fmt: skip
        label = f"client {client.index + 1} of {len(self.clients)} ({client.network})"
        return StageRequest(kind, label, inputs, stage, code)

    def local_models(self) -> list[Checkpoint]:
        """Every client's own model, trained on its own shard; tracked on the test set."""

        def train_locally(client: Client) -> tuple[nn.Module, History]:
            model = self.initial(client.network)
            label = f"client {client.index + 1}/{len(self.clients)}"
            return model, client.run(_fit_shard, self, model, label, client.index)

        return self.checkpoints(
            [
                self.client_stage(
                    "local-model", client, functools.partial(train_locally, client), asdict(self.local),
                    outputs=self.task.outputs, code=__name__,
                )
                for client in self.clients
            ]
        )  # fmt: skip

    def upload(self, client: Client, checkpoint: Checkpoint) -> Checkpoint:
        """Send a checkpoint's parameters (BatchNorm buffers included) from client to server; what arrives is the same."""
        return dataclasses.replace(checkpoint, state=self.channel.up(client.index, "parameters", checkpoint.state))

    def public_outputs(self, checkpoint: Checkpoint) -> torch.Tensor:
        """Outputs (n, outputs) of a checkpoint on the public images, without augmentation; computed once."""

        def compute() -> Stage:
            self.progress(f"outputs of {checkpoint.owner} on the public set", 0.0)
            return Stage({"outputs": predict(self.module(checkpoint), self.public.images, normalise=self.normalise)})

        inputs = {
            "checkpoint": [
                checkpoint.lineage,
                checkpoint.network,
                checkpoint.outputs,
                catalogue.network_digest(checkpoint.network),
            ],
            "public": self.public.digest,
            "image": list(self._image_shape),
            "normalise": asdict(self.normalise),
            "device": [self.device.type, torch.get_num_threads()],
        }
        request = StageRequest("public-outputs", f"{checkpoint.owner} ({checkpoint.network})", inputs, compute, __name__)
        return self.stages.get(request).tensors["outputs"]

    def distill(self, targets: torch.Tensor) -> Checkpoint:
        """Train a new global model to imitate `targets`, teacher probabilities (n, classes) for the public images."""

        def compute() -> Stage:
            model = self.initial(self.network)
            history = self.train(
                model, self.public.images, targets, self.task.distillation_loss, self.server, "server",
                track=True, label="global model",
            )  # fmt: skip
            return _as_stage(model, self.network, self.task.outputs, "server", history)

        inputs = self._inputs(
            content_digest({"targets": targets}, _scope()), self.public.digest, self.network,
            catalogue.network_digest(self.network), asdict(self.server), self._stream("weights", "shuffling"),
        )  # fmt: skip
        request = StageRequest("global-model", f"server ({self.network})", inputs, compute, __name__)
        return self.checkpoints([request])[0]

    # -- upper bounds -----------------------------------------------------------------------------------------------

    def oracle_public_labels(self) -> torch.Tensor:
        """True labels (n,) of the public images, for methods that declare the oracle `public-labels`.

        Raises OracleError for every other method: a real server has no such labels.
        """
        if "public-labels" not in self._oracle_allowed or self._oracle_labels is None:
            raise OracleError("public data are unlabelled; an upper bound must declare oracle = {'public-labels'}")
        return self._oracle_labels


@functools.cache
def _meta_module(network: str, channels: int, outputs: int, size: int) -> nn.Module:
    """A network without weights, for planning; shared, since nothing there changes it."""
    with torch.device("meta"):
        return catalogue.build(network, channels, outputs, size)


def _scope() -> str:
    """What stands in for the content of tensors while planning."""
    meter = active_meter()
    return meter.scope if meter is not None else ""


def _as_stage(model: nn.Module, network: str, outputs: int, owner: str, history: History) -> Stage:
    """A trained network as it is stored; as a checkpoint its lineage is the stage's key."""
    state = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    return Stage(state, {"network": network, "outputs": outputs, "owner": owner, "history": history})


def _fit_shard(shard: Shard, federation: Federation, model: nn.Module, label: str, index: int) -> History:
    """Supervised training on a client."""
    return federation.train(
        model, shard.images, shard.targets, federation.task.loss, federation.local, "client", index, track=True, label=label
    )
