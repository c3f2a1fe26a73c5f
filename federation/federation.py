"""A federation: clients with private data, a server with public data, and the channel between them.

What methods are written with. Expensive steps go through the stage cache; the tables of one paper,
and whoever asks for the same step again, share them.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import torch
from torch import nn

from federation import measuring
from federation.augmentation import Augmentation
from federation.channel import Channel
from federation.client import Client, Shard
from federation.costs import active_meter
from federation.execution import DEFAULT, Execution
from federation.private_training import PrivateSteps, check_separable, train_privately
from federation.protection import Protection
from federation.seeds import AXES, Seeds, Stream
from federation.snapshots import Snapshots
from federation.stacked import train_stacked
from federation.stages import Stage, StageCache, StageRequest, content_digest
from federation.tasks import MultiLabel, Task
from federation.training import (
    DivergedError,
    Loss,
    Normalisation,
    Penalty,
    TrainingPlan,
    channels_last,
    forward_pass,
    predict,
    train,
)
from models import catalogue
from privacy.plan import DP_SGD
from results.files import digest

M = TypeVar("M", bound=nn.Module)

History = dict[str, list[float]]
"""Metrics by name, a value per epoch or round."""


class OracleError(Exception):
    """A method reached for knowledge that it did not declare."""


class HeterogeneousClientsError(Exception):
    """A method that needs one network everywhere was given several."""


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
class LabelledSet:
    """Images with their targets: the test set, or what the server holds itself."""

    images: torch.Tensor
    targets: torch.Tensor
    digest: str
    groups: torch.Tensor | None = None
    """Whose each image is (n,), if metrics are to be aggregated by that too."""


@dataclass(frozen=True)
class Checkpoint:
    """A trained network: its name, its weights, and how its test metrics went by epoch."""

    network: str
    outputs: int
    """Size of its last layer."""
    state: Mapping[str, torch.Tensor]
    """Weights and buffers by name; those of a stage are read when they are looked at."""
    owner: str
    """`server`, or `client-3`."""
    lineage: str
    """Digest of everything that determined the weights; stages computed from the checkpoint are
    keyed by it."""
    history: History = field(default_factory=dict)
    """Test metrics after each epoch or round of training."""
    samples: torch.Tensor | None = None
    """Images that the method generated, uint8 (n, c, h, w), for measures of their quality."""


class Federation:
    """Everything a method may use. Server-side code reads `clients`' public facts, `public` and the
    channel.
    """

    def __init__(
        self,
        *,
        clients: Sequence[Client],
        public: PublicData,
        test: LabelledSet,
        validation: LabelledSet | None = None,
        probe: LabelledSet | None = None,
        task: Task,
        network: str,
        image_shape: tuple[int, ...],
        normalise: Normalisation,
        local: TrainingPlan,
        server: TrainingPlan,
        augmentation: Augmentation | None,
        seeds: Seeds,
        stages: StageCache,
        channel: Channel | None = None,
        device: torch.device | str = "cpu",
        execution: Execution = DEFAULT,
        protection: Protection | None = None,
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
        self.execution = execution
        self.protection = protection
        """What makes the run differentially private; None for a run that is not."""
        self.normalise = normalise
        self.progress = progress
        self.snapshots: Snapshots | None = None
        """Where rounds are kept while a fit goes on; None for a fit that starts anew."""
        self.image_shape = image_shape
        """Channels and sides: height and width, or depth, height and width."""
        self.history: History = {}
        """What `track` has measured so far."""
        self._test = test
        self._validation = validation
        self._probe = probe
        self._pretrained = pretrained
        self._oracle_labels = oracle_labels
        self._oracle_allowed = oracle_allowed
        self._noises: set[tuple[object, ...]] = set()
        self._private_models: list[Checkpoint] = []
        if protection is not None and execution != DEFAULT:
            raise ValueError(
                "differentially private runs are eager, in fp32 and client by client; leave out the"
                " execution options"
            )

    @property
    def mechanism(self) -> str:
        """How the run is made differentially private; empty for a run that is not."""
        return self.protection.plan.mechanism if self.protection is not None else ""

    # -- networks --

    def initial(self, network: str, task: Task | None = None) -> nn.Module:
        """A network before training: ImageNet weights if the table asks for them, else random ones.

        All parties that use the same network start from the same weights, as they do from
        ImageNet's; `teachers` do not. `task` is what it has outputs for, if not the federation's.
        """
        channels, height, *_ = self.image_shape
        outputs = (task or self.task).outputs
        if self.device.type == "meta":
            return _meta_module(network, channels, outputs, height)
        model = self.new_module(
            lambda: catalogue.build(network, channels, outputs, height), network
        )
        if self._pretrained:
            from models.networks.imagenet import load_imagenet

            load_imagenet(model, network)
        return model

    def new_module(self, build: Callable[[], M], *names: object) -> M:
        """What `build` makes, on the run's device, with random weights from the stream `names` of
        the weights axis.
        """
        if self.device.type == "meta":
            with torch.device("meta"):
                return build()
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.seeds.number("weights", *names))
            module = build()
        return channels_last(module.to(self.device))

    def module(self, checkpoint: Checkpoint) -> nn.Module:
        """The network of a checkpoint, with its weights, in evaluation mode."""
        channels, height, *_ = self.image_shape
        if self.device.type == "meta":
            return copy.deepcopy(
                _meta_module(checkpoint.network, channels, checkpoint.outputs, height)
            ).eval()
        with torch.random.fork_rng(devices=[]):
            model = catalogue.build(checkpoint.network, channels, checkpoint.outputs, height)
        model.load_state_dict(checkpoint.state)
        return channels_last(model.to(self.device)).eval()

    def replace_head(self, model: nn.Module, outputs: int, *names: object) -> nn.Module:
        """Give `model` a new random linear head; `names` name the stream of the weights axis it is
        drawn from.
        """
        if self.device.type == "meta":
            return catalogue.replace_head(copy.deepcopy(model), outputs)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.seeds.number("weights", "head", *names))
            return catalogue.replace_head(model, outputs)

    def checkpoint(self, model: nn.Module, network: str, owner: str = "server") -> Checkpoint:
        """A checkpoint of a module that a method trained by itself, with the history tracked so
        far.
        """
        state = state_of(model)
        return Checkpoint(
            network, self.task.outputs, state, owner, content_digest(state, _scope()), self.history
        )

    def shared_network(self) -> str:
        """The one network that clients and server use, for methods that average parameters.

        Raises HeterogeneousClientsError if there are several, or if clients' networks have outputs
        for tasks of their own.
        """
        if any(client.task is not None for client in self.clients):
            raise HeterogeneousClientsError(
                "this method averages parameters, so all clients must share one task; here clients"
                " have label sets of their own. Use a method that takes their outputs (fedad), or"
                " the data of one site"
            )
        names = sorted({self.network, *(client.network for client in self.clients)})
        if len(names) > 1:
            raise HeterogeneousClientsError(
                "this method averages parameters, so clients and server must share one network;"
                f" here are {', '.join(names)}. Use a model-agnostic method (fedmd, fedkd, fediod,"
                " dlad), or the same network everywhere"
            )
        return names[0]

    # -- rounds --

    def rounds(self, count: int, *, alike: bool = False, **parts: Any) -> Iterator[int]:
        """Rounds 1 to `count`, booked as such by the channel; an interrupted fit goes on after its
        last snapshot.

        `parts` are all that a round takes over from the one before (anything with state_dict and
        load_state_dict). Randomness must come from streams named by the round. With `alike` every
        round costs the same, so that `plan` follows one and counts it `count` times.
        """
        meter = active_meter()
        if meter is not None and alike:
            with meter.repeated(count, counted=False):
                self.channel.round = 1
                yield 1
            return
        if self.protection is not None:
            parts = {**parts, "protection": self.protection}
        done = 0
        if self.snapshots is not None:
            done, self.history, ledger = self.snapshots.resume(parts)
            if done:
                self.channel.restore(ledger)
        for number in range(done + 1, count + 1):
            self.channel.round = number
            self.progress(f"round {number}/{count}", (number - 1) / count)
            yield number
            if self.snapshots is not None:
                self.snapshots.offer(number, parts, self.history, self.channel.ledger)

    def steps(self, count: int) -> Iterator[int]:
        """Steps 0 to `count` - 1 of a loop whose steps cost the same; `plan` follows one and counts
        it `count` times.
        """
        meter = active_meter()
        if meter is None:
            yield from range(count)
        elif count:
            with meter.repeated(count, counted=True):
                yield 0

    def stream(self, *names: object) -> Stream:
        """The stream `names` of the shuffling axis."""
        meta = self.device.type == "meta"
        return Stream(
            None if meta else self.seeds.torch("shuffling", *names, device=self.device), self.device
        )

    def noise(self, *names: object) -> Stream:
        """The stream `names` of the noise axis, for what differential privacy draws; another for
        every budget and setting.

        Raises ValueError for names that were used before: of two releases with the same noise the
        difference has none.
        """
        assert self.protection is not None
        if names in self._noises:
            raise ValueError(
                f"the noise {' '.join(map(str, names))} is drawn for the second time; name it by"
                " its round too"
            )
        self._noises.add(names)
        if self.device.type == "meta":
            return Stream(None, self.device)
        plan = digest(asdict(self.protection.plan))
        return Stream(self.seeds.torch("noise", plan, *names, device=self.device), self.device)

    def participants(self, number: int, share: float) -> list[Client]:
        """The clients of round `number`: round(share x clients), at least one, drawn without
        replacement.

        Drawn from the sampling axis among the clients that hold samples. Raises ValueError for a
        share outside (0, 1].
        """
        if not 0 < share <= 1:
            raise ValueError(
                f"the share of participating clients must be above 0 and at most 1, not {share}"
            )
        able = [client for client in self.clients if client.size]
        count = min(len(able), max(1, round(share * len(self.clients))))
        chosen = self.seeds.numpy("sampling", "round", number).choice(
            len(able), count, replace=False
        )
        return [able[position] for position in sorted(chosen)]

    def check_finite(self, *models: nn.Module) -> None:
        """Raise DivergedError if a weight is not a number, for methods that train with loops of
        their own.
        """
        if self.device.type == "meta":
            return
        for model in models:
            state = model.state_dict()
            finite = torch.stack([tensor.isfinite().all() for tensor in state.values()])
            if not finite.all():  # one look for all, since each waits for the device
                name = list(state)[finite.tolist().index(False)]
                raise DivergedError(
                    f"{name} is no longer a number after round {self.channel.round}; lower the"
                    " learning rates"
                )

    def track(self, model: nn.Module) -> None:
        """Note the test metrics of the global model after a round. No method may choose anything by
        them.
        """
        for metric, value in self.evaluate(model).items():
            self.history.setdefault(metric, []).append(value)

    # -- training --

    def train(
        self,
        model: nn.Module,
        images: torch.Tensor,
        targets: torch.Tensor,
        loss: Loss,
        plan: TrainingPlan,
        *names: object,
        sample_weights: torch.Tensor | None = None,
        penalty: Penalty | None = None,
        private: PrivateSteps | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        schedule: torch.optim.lr_scheduler.LRScheduler | None = None,
        normalise: Normalisation | None = None,
        augmented: bool = True,
        track: bool = False,
        task: Task | None = None,
        label: str = "",
    ) -> History:
        """Train `model` in place with the run's augmentation; `names` name the stream of the
        shuffling axis.

        With `track` the test metrics after every epoch are returned; no method may choose anything
        by them. With `private` the steps are those of DP-SGD, which knows no sample weights and
        takes a penalty for a term of the weights alone. `normalise` and `task`, what the model has
        outputs for, are the federation's if not given.
        """
        history: History = {}

        def after_epoch(epoch: int) -> None:
            self.progress(f"{label} epoch {epoch}/{plan.epochs}", epoch / plan.epochs)
            if track:
                for metric, value in self.evaluate(model, task).items():
                    history.setdefault(metric, []).append(value)

        with self._dropout_stream(*names):
            common: dict[str, Any] = {
                "normalise": normalise or self.normalise,
                "generator": self.stream(*names).generator,
                "augmentation": self.augmentation if augmented else None,
                "after_epoch": after_epoch,
            }
            if private is not None:
                noise = self.noise(*names).generator
                train_privately(
                    model,
                    images,
                    targets,
                    loss,
                    plan,
                    private,
                    noise=noise,
                    penalty=penalty,
                    **common,
                )
                return history
            train(
                model,
                images,
                targets,
                loss,
                plan,
                optimizer=optimizer,
                schedule=schedule,
                sample_weights=sample_weights,
                penalty=penalty,
                execution=self.execution,
                **common,
            )
        return history

    @contextlib.contextmanager
    def _dropout_stream(self, *names: object) -> Iterator[None]:
        """Inside, what draws without a generator (dropout) draws from a stream of its own."""
        kind, index = self.device.type, self.device.index or 0
        if kind == "meta":
            yield
            return
        seed = self.seeds.number("shuffling", "dropout", *names)
        # Not torch.manual_seed: without a GPU it keeps a traceback of every call, for the day that
        # there is one.
        with torch.random.fork_rng([index] if kind == "cuda" else []):
            torch.default_generator.manual_seed(seed)
            if kind == "cuda":
                with torch.cuda.device(index):
                    torch.cuda.manual_seed(seed)
            elif kind == "mps":
                torch.mps.manual_seed(seed)
            yield

    def forward(self, model: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
        """A forward pass of a training loop of a method's own, as `execution` says; outputs in
        float32.

        Without CUDA graphs: they keep one pass at a time, and such loops interleave several.
        """
        plain = self.execution.compile == "reduce-overhead"
        execution = (
            dataclasses.replace(self.execution, compile="default") if plain else self.execution
        )
        return forward_pass(execution, self.device)(model, inputs)

    def evaluate(self, model: nn.Module, task: Task | None = None) -> dict[str, float]:
        """Metrics on the test set (none while planning) of a network that was trained for the
        federation's task, or for `task`.
        """
        return self._measured(model, self._test, task)

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Metrics on the server's validation set (none while planning). Raises ValueError if it has
        none.
        """
        validation = self.require_validation()
        return self._measured(model, validation)

    def _measured(
        self, model: nn.Module, held: LabelledSet, trained_for: Task | None = None
    ) -> dict[str, float]:
        return measuring.evaluate(
            model,
            held.images,
            held.targets,
            held.groups,
            task=self.task,
            normalise=self.normalise,
            trained_for=trained_for,
        )

    def require_validation(self) -> LabelledSet:
        """The server's validation set.

        Raises ValueError if it has none: `partition.validation_share` sets one aside before clients
        get theirs.
        """
        if self._validation is None:
            raise ValueError(
                "this method needs a validation set at the server; set partition.validation_share"
                " above 0"
            )
        return self._validation

    def probe(self) -> LabelledSet:
        """The server's own labelled samples of the target task, which it may train on (FedSA,
        section 3.1: D_T).

        Raises ValueError if it has none: `partition.probe_share` sets a share of every class aside.
        """
        if self._probe is None:
            raise ValueError(
                "this method needs labelled data at the server; set partition.probe_share above 0"
            )
        return self._probe

    def identity(self) -> dict[str, Any]:
        """What determines the outcome of any method run on this federation."""
        networks = sorted({self.network, *(client.network for client in self.clients)})
        without = {"attack"} if self.protection is not None else {"attack", "noise"}
        return self._inputs(
            [
                [
                    client.index,
                    client.digest,
                    client.network,
                    repr(client.task),
                    repr(client.normalise),
                ]
                for client in self.clients
            ],
            {name: catalogue.network_digest(name) for name in networks},
            self.network,
            self.public.digest,
            *(held.digest if held else "" for held in (self._validation, self._probe)),
            asdict(self.local),
            asdict(self.server),
            self._stream(*(axis for axis in AXES if axis not in without)),
            sorted(self._oracle_allowed),
            self.execution.stacked,
            asdict(self.protection.plan) if self.protection is not None else None,
        )

    def _inputs(self, *parts: Any) -> dict[str, Any]:
        """What determines any stage of this federation, and `parts`."""
        return {
            "image": list(self.image_shape),
            "normalise": repr(self.normalise),
            "augmentation": asdict(self.augmentation) if self.augmentation else None,
            "task": repr(self.task),
            "pretrained": self._pretrained,
            "test": self._test.digest,
            "device": self._device(),
            "parts": list(parts),
        }

    def _device(self) -> list[Any]:
        """What of the device determines a training's outcome."""
        return [
            self.device.type,
            torch.get_num_threads(),
            self.execution.precision,
            self.execution.compile,
        ]

    def _stream(self, *axes: str) -> dict[str, int]:
        return {axis: getattr(self.seeds, axis) for axis in axes}

    def checkpoints(self, requests: Sequence[StageRequest]) -> list[Checkpoint]:
        """Checkpoints that are stages: each computed once, whoever asks first."""
        found = self.stages.get_all(requests)
        return [
            Checkpoint(state=s.tensors, lineage=r.key, **s.info)
            for r, s in zip(requests, found, strict=True)
        ]

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

        `compute` gives the trained network and its history, `parts` are plain values that determine
        it beside the client, `outputs` is the size of its last layer and `code` the name of the
        module that computes it.
        """

        def stage() -> Stage:
            model, history = compute()
            return _as_stage(model, client.network, outputs, f"client-{client.index}", history)

        inputs = self._inputs(
            client.index,
            client.digest,
            client.network,
            catalogue.network_digest(client.network),
            self._stream("weights", "shuffling"),
            *parts,
        )
        label = f"client {client.index + 1} of {len(self.clients)} ({client.network})"
        return StageRequest(kind, label, inputs, stage, code)

    def local_models(self) -> list[Checkpoint]:
        """Every client's own model, trained on its own shard (by DP-SGD if the run asks for it);
        tracked on the test set.

        A client with a task of its own has outputs for that.
        """
        if self._private_models:  # they are released, and trained, once
            return self._private_models
        private = [self._private_steps(client, self.local) for client in self.clients]

        def train_locally(client: Client) -> tuple[nn.Module, History]:
            model = self.initial(client.network, client.task)
            return model, self._fit_on_client(
                client, model, self.local, private[client.index], track=True
            )

        found = self.checkpoints(
            [
                self.client_stage(
                    "local-model",
                    client,
                    functools.partial(train_locally, client),
                    asdict(self.local),
                    {**asdict(steps), **self._stream("noise")} if steps is not None else None,
                    repr(client.task),
                    outputs=(client.task or self.task).outputs,
                    code=__name__,
                )
                for client, steps in zip(self.clients, private, strict=True)
            ]
        )
        for client, steps in zip(self.clients, private, strict=True):
            self._spend(client, steps)  # whoever trained it
        if self.mechanism == DP_SGD:
            self._private_models = found
        return found

    def teachers(self) -> list[Checkpoint]:
        """Every client's own network, trained on its own samples for its own task by the plan
        `local` (FedSA: pre-trained).

        Nothing of the federation's task has a part in it: not its images, their statistics or its
        labels; each begins with random weights of its own. Without metrics, for the test set is of
        another task; no private form.
        """

        def pretrain(client: Client) -> Stage:
            task = client.task or self.task
            channels, height, *_ = self.image_shape
            model = self.new_module(
                lambda: catalogue.build(client.network, channels, task.outputs, height),
                "teacher",
                client.index,
                client.network,
            )
            client.run(
                _fit_shard,
                self,
                model,
                self.local,
                ("teacher", client.index),
                loss=task.loss,
                normalise=client.normalise,
                label=f"teacher {client.index + 1}/{len(self.clients)}",
            )
            return _as_stage(model, client.network, task.outputs, f"client-{client.index}", {})

        requests = []
        for client in self.clients:
            inputs = {
                "image": list(self.image_shape),
                "normalise": repr(client.normalise or self.normalise),
                "augmentation": asdict(self.augmentation) if self.augmentation else None,
                "device": self._device(),
                "parts": [
                    client.index,
                    client.digest,
                    client.network,
                    catalogue.network_digest(client.network),
                    repr(client.task or self.task),
                    self._stream("weights", "shuffling"),
                    asdict(self.local),
                ],
            }
            label = f"client {client.index + 1} of {len(self.clients)} ({client.network})"
            requests.append(
                StageRequest(
                    "teacher", label, inputs, functools.partial(pretrain, client), __name__
                )
            )
        return self.checkpoints(requests)

    def train_on_client(
        self,
        client: Client,
        model: nn.Module,
        plan: TrainingPlan,
        *names: object,
        penalty: Penalty | None = None,
        track: bool = False,
    ) -> History:
        """Supervised training of `model` in place on the client's shard; `names` tell one call's
        stream from another's.

        By DP-SGD if the run asks for it: booked before it begins, and shorter where the client's
        budget ends.
        """
        private = self._private_steps(client, plan)
        self._spend(client, private)
        return self._fit_on_client(
            client, model, plan, private, *names, penalty=penalty, track=track
        )

    def _fit_on_client(
        self,
        client: Client,
        model: nn.Module,
        plan: TrainingPlan,
        private: PrivateSteps | None,
        *names: object,
        penalty: Penalty | None = None,
        track: bool = False,
    ) -> History:
        label = " ".join([f"client {client.index + 1}/{len(self.clients)}", *map(str, names)])
        if private is not None:
            check_separable(model, client.network)
        return client.run(
            _fit_shard,
            self,
            model,
            plan,
            ("client", client.index, *names),
            loss=(client.task or self.task).loss,
            private=private,
            penalty=penalty,
            track=track,
            task=client.task,
            label=label,
        )

    def _private_steps(self, client: Client, plan: TrainingPlan) -> PrivateSteps | None:
        """How the client trains by `plan` under DP-SGD; None where the run does not ask for
        that.
        """
        if self.protection is None or self.mechanism != DP_SGD:
            return None
        return self.protection.training(client, plan)

    def _spend(self, client: Client, private: PrivateSteps | None) -> None:
        if private is not None and private.steps and client.size and self.protection is not None:
            self.protection.spend(client, private.release)

    def reserve(self, *trainings: tuple[TrainingPlan, Mapping[int, int]]) -> None:
        """Say how often clients will train by each plan, by index, before they do: DP-SGD takes its
        noise from it.
        """
        if self.protection is None or self.mechanism != DP_SGD:
            return
        for client in self.clients:
            self.protection.reserve(
                client, *((plan, times.get(client.index, 0)) for plan, times in trainings)
            )

    def can_train(self, client: Client, plan: TrainingPlan) -> bool:
        """Whether the client's privacy budget has a step of `plan` left; always, where there is
        none.
        """
        private = self._private_steps(client, plan)
        return private is None or private.steps > 0

    def train_on_clients(
        self,
        group: Sequence[tuple[Client, nn.Module]],
        plan: TrainingPlan,
        *names: object,
        penalties: Sequence[Penalty | None],
    ) -> None:
        """The same for several clients, each with a model of its own, as one computation where no
        client has a penalty.
        """
        if len(group) == 1 or any(penalties):
            for (client, model), penalty in zip(group, penalties, strict=True):
                self.train_on_client(client, model, plan, *names, penalty=penalty)
            return
        self.progress(f"{len(group)} clients together {' '.join(map(str, names))}", 0.0)
        clients, models = zip(*group, strict=True)
        with self._dropout_stream("together", *names):
            train_stacked(
                models,
                [client.run(lambda shard: shard) for client in clients],
                self.task.loss,
                plan,
                normalise=self.normalise,
                generators=[
                    self.seeds.torch("shuffling", "client", c.index, *names, device=self.device)
                    for c in clients
                ],
                augmentation=self.augmentation,
            )

    def upload(self, client: Client, checkpoint: Checkpoint) -> Checkpoint:
        """Send a checkpoint's parameters (BatchNorm buffers included) from client to server; what
        arrives is the same.
        """
        return dataclasses.replace(
            checkpoint, state=self.channel.up(client.index, "parameters", checkpoint.state)
        )

    def label_counts(self) -> torch.Tensor:
        """N_k^c, (clients, classes): every client sends its label counts as `labels`.

        Of a multi-label task the positives of every finding; 0 where the client's label set lacks
        it.
        """
        counts = [torch.tensor(client.label_counts, device=self.device) for client in self.clients]
        if self.protection is not None and self.protection.counts:
            if isinstance(self.task, MultiLabel):
                raise ValueError(
                    "label counts of a multi-label task have no private form: one sample more"
                    " changes several counts, and the noise is for one"
                )
            counts = [
                self._noisy_counts(client, own)
                for client, own in zip(self.clients, counts, strict=True)
            ]
        return torch.stack(
            [
                self.channel.up(k, "labels", {"counts": own})["counts"]
                for k, own in enumerate(counts)
            ]
        )

    def _noisy_counts(self, client: Client, counts: torch.Tensor) -> torch.Tensor:
        """A client's label counts as a private run sends them: with Gaussian noise, not below 0;
        float (classes,).
        """
        assert self.protection is not None
        self.protection.spend(client, *self.protection.counts)
        noise = self.noise("label counts", client.index).normal(len(counts))
        return (counts + self.protection.plan.counts_noise * noise).clamp_min(0)

    def public_outputs(self, checkpoint: Checkpoint) -> torch.Tensor:
        """Outputs (n, outputs) of a checkpoint on the public images, without augmentation; computed
        once.
        """

        def compute() -> Stage:
            self.progress(f"outputs of {checkpoint.owner} on the public set", 0.0)
            return Stage(
                {
                    "outputs": predict(
                        self.module(checkpoint), self.public.images, normalise=self.normalise
                    )
                }
            )

        inputs = {
            "checkpoint": [
                checkpoint.lineage,
                checkpoint.network,
                checkpoint.outputs,
                catalogue.network_digest(checkpoint.network),
            ],
            "public": self.public.digest,
            "image": list(self.image_shape),
            "normalise": repr(self.normalise),
            "device": [
                self.device.type,
                torch.get_num_threads(),
                self.execution.precision == "tf32",
            ],
        }
        request = StageRequest(
            "public-outputs",
            f"{checkpoint.owner} ({checkpoint.network})",
            inputs,
            compute,
            __name__,
        )
        return self.stages.get(request).tensors["outputs"]

    def distill(
        self, targets: torch.Tensor, loss: Loss | None = None, images: torch.Tensor | None = None
    ) -> Checkpoint:
        """Train a new global model to imitate the teachers' `targets` (n, ...) for the public
        images, or for `images`.

        `loss` is the task's distillation loss, against probabilities, if not given; tracked on the
        test set.
        """
        model = self.initial(self.network)
        history = self.train(
            model,
            self.public.images if images is None else images,
            targets,
            loss or self.task.distillation_loss,
            self.server,
            "server",
            track=True,
            label="global model",
        )
        self.history = history
        return self.checkpoint(model, self.network)

    # -- upper bounds --

    def oracle_public_labels(self) -> torch.Tensor:
        """True labels (n,) of the public images, for methods that declare the oracle
        `public-labels`.

        Raises OracleError for every other method: a real server has no such labels.
        """
        if "public-labels" not in self._oracle_allowed or self._oracle_labels is None:
            raise OracleError(
                "public data are unlabelled; an upper bound must declare oracle = {'public-labels'}"
            )
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


def state_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """A copy of a network's parameters and buffers."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def _as_stage(model: nn.Module, network: str, outputs: int, owner: str, history: History) -> Stage:
    """A trained network as it is stored; as a checkpoint its lineage is the stage's key."""
    return Stage(
        state_of(model),
        {"network": network, "outputs": outputs, "owner": owner, "history": history},
    )


def _fit_shard(
    shard: Shard,
    federation: Federation,
    model: nn.Module,
    plan: TrainingPlan,
    names: Sequence[object],
    **options: Any,
) -> History:
    """Supervised training on a client; `options` are those of `Federation.train`."""
    return federation.train(
        model, shard.images, shard.targets, options.pop("loss"), plan, *names, **options
    )
