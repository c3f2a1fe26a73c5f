"""Networks of a federation: new ones, and those of checkpoints."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import torch
from torch import nn

from fedtables.federation.cache import content_digest
from fedtables.federation.client import Client
from fedtables.federation.costs import active_meter
from fedtables.federation.data import Checkpoint, state_of
from fedtables.federation.graphs import side_by_side
from fedtables.federation.inside.evaluation import Evaluation
from fedtables.federation.inside.setup import Setup
from fedtables.federation.tasks.base import Task
from fedtables.federation.training.inputs import channels_last
from fedtables.federation.training.plan import DivergedError
from fedtables.models import catalogue
from fedtables.results.plugins import kept

M = TypeVar("M", bound=nn.Module)


class HeterogeneousClientsError(Exception):
    """A method that needs one network everywhere was given several."""


class Networks:
    """Makes networks on the run's device; random weights are of streams of the weights axis."""

    def __init__(self, setup: Setup, evaluation: Evaluation):
        self._setup = setup
        self._evaluation = evaluation
        self.server = setup.network
        """Name of the global model's network."""
        self.image_shape = setup.image_shape
        """Channels and sides of what networks take: height and width, before them a depth."""
        self.device = setup.device
        self.execution = replace(setup.execution, stacked=1) if setup.planned else setup.execution
        """Precision, compilation, clients side by side: one in a plan, which costs the same."""

    def initial(self, network: str = "", task: Task | None = None) -> nn.Module:
        """The network `network`, or the server's, before training: ImageNet weights if the table
        asks for them, else random ones.

        All parties that use the same network start from the same weights, as they do from
        ImageNet's; teachers do not. `task` is what it has outputs for, if not the federation's.
        """
        network = network or self.server
        outputs = (task or self._setup.task).outputs
        if self._setup.planned:
            return self._structure(network, outputs)
        model = self.new_module(lambda: self.build(network, outputs), network)
        if self._setup.pretrained:
            from fedtables.models.networks.imagenet import load_imagenet

            load_imagenet(model, network)
        return model

    def build(self, network: str, outputs: int) -> nn.Module:
        """The network `network` for the run's images, its weights drawn without a stream."""
        channels, *sides = self.image_shape
        return catalogue.build(network, channels, outputs, sides)

    def new_module(self, build: Callable[[], M], *names: object) -> M:
        """What `build` makes, on the device, its weights from the stream `names` of their axis."""
        if self._setup.planned:
            with torch.device("meta"):
                return build()
        with self._weights_from(*names):
            module = build()
        return channels_last(module.to(self.device))

    @contextlib.contextmanager
    def _weights_from(self, *names: object) -> Iterator[None]:
        """Inside, what draws without a generator draws from the stream `names` of weights."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self._setup.seeds.number("weights", *names))
            yield

    def _structure(self, network: str, outputs: int) -> nn.Module:
        channels, *sides = self.image_shape
        return _meta_module(network, channels, outputs, tuple(sides))

    def takes_turns(self, client: Client) -> bool:
        """Whether the client's network may learn side by side with others."""
        if self.execution.stacked == 1:
            return False
        outputs = (client.task or self._setup.task).outputs
        return side_by_side(self.execution, self._structure(client.network, outputs))

    def module(self, checkpoint: Checkpoint) -> nn.Module:
        """A checkpoint's network, in evaluation mode. Raises ValueError for others' weights."""
        if self._setup.planned:
            shared = self._structure(checkpoint.network, checkpoint.outputs)
            return _structure_copied(shared).eval()
        with torch.random.fork_rng(devices=[]):
            model = self.build(checkpoint.network, checkpoint.outputs)
        try:
            model.load_state_dict(checkpoint.state)
        except RuntimeError as error:
            raise ValueError(
                f"the weights of {checkpoint.owner} are not those of the network"
                f" {checkpoint.network}; name theirs in federation.networks.checkpoint"
            ) from error
        return channels_last(model.to(self.device)).eval()

    def replace_head(self, model: nn.Module, outputs: int, *names: object) -> nn.Module:
        """Give `model` a new linear head, its weights from the stream `names` of their axis."""
        if self._setup.planned:
            return catalogue.replace_head(_structure_copied(model), outputs)
        with self._weights_from("head", *names):
            return catalogue.replace_head(model, outputs)

    def checkpoint(self, model: nn.Module, network: str = "", owner: str = "server") -> Checkpoint:
        """A checkpoint of `network`, or the server's, with the history tracked so far."""
        meter = active_meter()
        scope = meter.scope if meter is not None else ""  # stands in for the content of tensors
        state, outputs = state_of(model), self._setup.task.outputs
        lineage, history = content_digest(state, scope), self._evaluation.history_of(owner)
        return Checkpoint(network or self.server, outputs, state, owner, lineage, history)

    def shared(self) -> str:
        """The one network that clients and server use, for methods that average parameters.

        Raises HeterogeneousClientsError if there are several, or if clients' networks have outputs
        for tasks of their own.
        """
        clients = self._setup.clients
        if any(client.task is not None for client in clients):
            raise HeterogeneousClientsError(
                "this method averages parameters, so all clients must share one task; here clients"
                " have label sets of their own. Use a method that takes their outputs, or the data"
                " of one site"
            )
        names = sorted({self.server, *(client.network for client in clients)})
        if len(names) > 1:
            raise HeterogeneousClientsError(
                "this method averages parameters, so clients and server must share one network;"
                f" here are {', '.join(names)}. Use a model-agnostic method (one of outputs),"
                " or the same network everywhere"
            )
        return names[0]

    def check_finite(self, *models: nn.Module) -> None:
        """Raise DivergedError if a weight is not a number, for methods that train with loops of
        their own; while planning there is nothing to look at.
        """
        if self._setup.planned:
            return
        for model in models:
            state = model.state_dict()
            finite = torch.stack([tensor.isfinite().all() for tensor in state.values()])
            if not finite.all():  # one look for all, since each waits for the device
                name = list(state)[finite.tolist().index(False)]
                raise DivergedError(
                    f"{name} is no longer a number after round {self._setup.channel.round};"
                    " lower the learning rates"
                )


@kept(None)
def _meta_module(network: str, channels: int, outputs: int, sides: tuple[int, ...]) -> nn.Module:
    """A network without weights, for planning; shared, since nothing there changes it."""
    with torch.device("meta"):
        return catalogue.build(network, channels, outputs, sides)


def _structure_copied(module: M) -> M:
    """A copy of a planned network; `copy.deepcopy` takes a hundred times as long."""
    copied = module.__class__.__new__(module.__class__)
    copied.__dict__ = {
        name: value.copy() if isinstance(value, dict) else value
        for name, value in module.__dict__.items()
    }
    for name, parameter in module._parameters.items():
        if parameter is not None:
            copied._parameters[name] = nn.Parameter(parameter.detach(), parameter.requires_grad)
    for name, child in module._modules.items():
        copied._modules[name] = None if child is None else _structure_copied(child)
    return copied
