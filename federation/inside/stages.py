"""Expensive steps of a federation, each computed once, whichever cell and process asks first."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import nn

from fedtables.federation.cache import Stage, StageRequest
from fedtables.federation.client import Client
from fedtables.federation.data import Checkpoint, History, state_of
from fedtables.federation.inside.evaluation import Evaluation
from fedtables.federation.inside.networks import Networks
from fedtables.federation.inside.privacy import Privacy
from fedtables.federation.inside.setup import Setup
from fedtables.federation.inside.trainer import LocalTraining, Trainer
from fedtables.federation.samples import LOCAL
from fedtables.federation.seeds import AXES
from fedtables.federation.snapshots import Snapshots
from fedtables.federation.training.inputs import Normalisation
from fedtables.federation.training.plan import Training
from fedtables.models import catalogue
from fedtables.privacy.plan import DP_SGD
from fedtables.results.sourcecode import code_digest


class Stages:
    """What is computed once: clients' networks, and what networks say of images."""

    def __init__(
        self,
        setup: Setup,
        networks: Networks,
        trainer: Trainer,
        privacy: Privacy,
        evaluation: Evaluation,
    ):
        self.cache = setup.stages
        """For whoever runs a method and measures it; methods ask by the verbs below."""
        self.snapshots: Snapshots | None = None
        """Where rounds are kept while a fit goes on; None for a fit that starts anew."""
        self.measured: dict[str, Checkpoint] = {}
        """Clients' own models by their lineage, with the history that the suite has measured."""
        self._setup = setup
        self._networks = networks
        self._trainer = trainer
        self._privacy = privacy
        self._evaluation = evaluation
        self._private_models: list[Checkpoint] = []

    def local_models(self) -> list[Checkpoint]:
        """Every client's own model, trained on its own shard (by DP-SGD if the run asks for it);
        tracked on the test set.

        A client with a task of its own has outputs for that.
        """
        if self._private_models:  # they are released, and trained, once
            return self._private_models
        clients, local = self._setup.clients, self._setup.local
        private = {client: self._privacy.steps(client, local) for client in clients}

        def training(client: Client) -> LocalTraining:
            model = self._networks.initial(client.network, client.task)
            own = self._trainer.supervised(client, model, local, track=True)
            return replace(own, private=private[client])

        noise = self._seeds("noise")
        inputs = [
            self._client_inputs(
                client, asdict(local), steps and asdict(steps) | noise, _described(client.task)
            )
            for client, steps in private.items()
        ]
        models = self._trained("local-model", training, inputs, code=__name__)
        self.measured |= {model.lineage: model for model in models}
        for client, steps in private.items():
            self._privacy.book(client, steps)  # whoever trained it
        if self._privacy.mechanism == DP_SGD:
            self._private_models = models
        return models

    def teachers(self) -> list[Checkpoint]:
        """Every client's own network, trained on its own samples for its own task by the plan
        `local` (FedSA: pre-trained).

        Nothing of the federation's task has a part in it: not its images, their statistics or its
        labels; each begins with random weights of its own. Without metrics, for the test set is of
        another task; no private form.
        """
        setup = self._setup

        def teaching(client: Client) -> LocalTraining:
            task, names = client.task or setup.task, ("teacher", client.index)
            build = functools.partial(self._networks.build, client.network, task.outputs)
            model = self._networks.new_module(build, *names, client.network)
            label = f"teacher {client.index + 1}/{len(setup.clients)}"
            training = Training(task.loss, setup.local, names, label, normalise=client.normalise)
            return LocalTraining(client, model, training)

        inputs = []
        for client in setup.clients:
            task = _described(client.task or setup.task)
            parts = [*self._of_client(client), task, asdict(setup.local)]
            inputs.append({**self._view(client.normalise or setup.normalise), "parts": parts})
        return self._trained("teacher", teaching, inputs, code=__name__)

    def client_models(
        self,
        kind: str,
        training: Callable[[Client], LocalTraining],
        parts: Callable[[Client], Sequence[Any]],
        *,
        outputs: int,
        code: str,
    ) -> list[Checkpoint]:
        """A further network of every client, trained on it as `training` says.

        `kind` is for people, `parts` gives the plain values that determine the network beside the
        client, `outputs` is the size of its last layer and `code` the name of the module that
        defines the training.
        """
        inputs = [self._client_inputs(client, *parts(client)) for client in self._setup.clients]
        return self._trained(kind, training, inputs, outputs=outputs, code=code)

    def _trained(
        self,
        kind: str,
        training: Callable[[Client], LocalTraining],
        inputs: Sequence[dict[str, Any]],
        *,
        outputs: int | None = None,
        code: str,
    ) -> list[Checkpoint]:
        """A network of every client, by `inputs` that determine it; those that are absent
        are trained side by side where the run says so. `outputs` are those of the client's task
        if not given.
        """
        clients = self._setup.clients

        def stage(own: LocalTraining, history: History, **seen: int) -> Stage:
            client = own.client
            about = {
                "network": client.network,
                "outputs": outputs or (client.task or self._setup.task).outputs,
                "owner": f"client-{client.index}",
                "history": history,
            }
            return Stage(state_of(own.model), about, seen)

        def alone(position: int) -> Stage:
            own = training(clients[position])
            return stage(own, self._trainer.alone(own))

        def together(positions: Sequence[int]) -> list[Stage]:
            trainings = [training(clients[position]) for position in positions]
            found = zip(trainings, self._trainer.together(trainings), strict=True)
            return [stage(own, history, **{LOCAL: seen}) for own, (history, seen) in found]

        requests = []
        for position, (client, own) in enumerate(zip(clients, inputs, strict=True)):
            label = f"client {client.index + 1} of {len(clients)} ({client.network})"
            compute = functools.partial(alone, position)
            requests.append(StageRequest(kind, label, own, compute, code))
        stages = self.cache.get_all(requests, together, self._groups())
        return [
            Checkpoint(state=stage.tensors, lineage=request.key, **stage.info)
            for request, stage in zip(requests, stages, strict=True)
        ]

    def _groups(self) -> list[list[int]]:
        """Positions of clients that learn side by side, by group; each other one by itself."""
        clients, size = self._setup.clients, self._networks.execution.stacked
        able = [p for p, client in enumerate(clients) if self._networks.takes_turns(client)]
        alone = [[p] for p in range(len(clients)) if p not in able]
        return [*(able[begin : begin + size] for begin in range(0, len(able), size)), *alone]

    def answers(
        self,
        kind: str,
        checkpoint: Checkpoint,
        images: torch.Tensor,
        digest: str,
        compute: Callable[[nn.Module, torch.Tensor], torch.Tensor],
        *parts: Any,
        normalise: Normalisation | None = None,
    ) -> torch.Tensor:
        """What `compute` makes of a network and of the `images` of the set `digest`, or of
        the first of them.

        `parts` are the plain values that determine it beside these and how the network sees images,
        by `normalise` or as the federation does, and the module that defines `compute`.
        """

        def stage() -> Stage:
            self._setup.progress(f"{kind} of {checkpoint.owner}", 0.0)
            return Stage({"answers": compute(self._networks.module(checkpoint), images)})

        network, device = checkpoint.network, self._setup.device.type
        inputs = {
            "checkpoint": [checkpoint.lineage, network, checkpoint.outputs],
            "network": catalogue.network_digest(network),
            "images": [digest, len(images)],
            "image": list(self._setup.image_shape),
            "normalise": _described(normalise or self._setup.normalise),
            "device": [device, torch.get_num_threads(), self._setup.execution.tf32_on(device)],
            "parts": list(parts),
        }
        label = f"{checkpoint.owner} ({network})"
        code = getattr(compute, "func", compute).__module__  # of a partial, its function's
        request = StageRequest(kind, label, inputs, stage, code)
        return self.cache.get(request).tensors["answers"]

    def identity(self) -> dict[str, Any]:
        """What determines the outcome of any method run on this federation."""
        setup, protection = self._setup, self._privacy.protection
        networks = sorted({setup.network, *(client.network for client in setup.clients)})
        without = {"attack"} if protection is not None else {"attack", "noise"}
        held = (self._evaluation.validation_set, setup.probe)
        return self._inputs(
            [
                [
                    *(client.index, client.digest, client.network),
                    *_described(client.task),
                    *_described(client.normalise),
                ]
                for client in setup.clients
            ],
            {name: catalogue.network_digest(name) for name in networks},
            setup.network,
            setup.public.digest,
            *(samples.digest if samples else "" for samples in held),
            asdict(setup.local),
            asdict(setup.server),
            self._seeds(*(axis for axis in AXES if axis not in without)),
            sorted(self._evaluation.oracle),
            asdict(protection.plan) if protection is not None else None,
        )

    # -- keys --

    def _client_inputs(self, client: Client, *parts: Any) -> dict[str, Any]:
        """What determines a network of a client's own, and `parts`."""
        return self._inputs(*self._of_client(client), *parts)

    def _of_client(self, client: Client) -> list[Any]:
        return [
            client.index,
            client.digest,
            client.network,
            catalogue.network_digest(client.network),
            self._seeds("weights", "shuffling"),
        ]

    def _inputs(self, *parts: Any) -> dict[str, Any]:
        """What determines any stage of this federation, and `parts`."""
        return {
            **self._view(self._setup.normalise),
            "task": _described(self._setup.task),
            "pretrained": self._setup.pretrained,
            "test": self._evaluation.test_digest,
            "looks": self._evaluation.looks,
            "parts": list(parts),
        }

    def _view(self, normalise: Normalisation) -> dict[str, Any]:
        """What determines how a training on this device sees samples."""
        setup, execution = self._setup, self._setup.execution
        threads = torch.get_num_threads()
        return {
            "image": list(setup.image_shape),
            "normalise": _described(normalise),
            "augmentation": asdict(setup.augmentation) if setup.augmentation else None,
            "device": [setup.device.type, threads, execution.precision, execution.compile],
        }

    def _seeds(self, *axes: str) -> dict[str, int]:
        return {axis: getattr(self._setup.seeds, axis) for axis in axes}


def _described(value: object | None) -> list[str]:
    """What has settings, as keys know it: these, and the code of its class."""
    if value is None:
        return []
    return [repr(value), code_digest(type(value).__module__)]
