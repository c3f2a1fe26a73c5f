"""FedAvg in this suite and in two simulators of federated learning, by hand: `python -m
benchmarks.speed.peers`.

All get the same arrays (CIFAR-10), the same twenty clients of 128 images, the same initial weights,
the same order of images and plain SGD; everyone takes part in every round, and nothing is
evaluated. Ours converts and normalises images in every step and encodes every model that crosses;
the others are handed normalised images. A time is of a round, the first one aside, in which
processes start and code is imported.

A row counts only if its final weights are, up to rounding, those of a bare loop over the same
batches; otherwise it says how far they are, and no ratio. Ours are the same to the last bit as the
loop's with channels last, which is how we train. The others train in the usual memory layout, whose
sums are rounded in another order; how far that alone moves the loop's weights is the most that is
allowed. (As a share of how far training moves them: 0.01 with batches of 16, where another order of
batches makes 0.05; 0.002 and 0.02 with 64.) Running statistics of BatchNorm are left out: pfl does
not average them, and training does not read them.

A simulator that is not installed is left out. In an environment of their own, since their
requirements are not ours:

    pip install "pfl[pytorch]==0.6.0" "flwr[simulation]"
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from benchmarks.speed.pairs import ROUNDS as REPEATS
from benchmarks.speed.pairs import Comparison, Timed
from datasets import catalogue
from federation.blocks.averaging import average_states
from federation.caching.cache import StageCache
from federation.federation import Federation
from federation.parties.client import Client, Shard
from federation.parties.data import LabelledSet, PublicData
from federation.seeds import Seeds
from federation.tasks import Classification
from federation.training.loops import Normalisation, TrainingPlan, batches, unit_range
from methods.fedavg import FedAvg
from models.catalogue import build

NETWORK = "resnet8-narrow"
CLIENTS, SAMPLES, ROUNDS, LR = 20, 128, 3, 0.01
SEEDS = Seeds()


@dataclass(frozen=True)
class Outcome:
    """What a run leaves."""

    parameters: dict[str, torch.Tensor]
    round_seconds: float
    """Mean over all rounds but the first."""


@functools.cache
def _cifar() -> tuple[str, torch.Tensor, torch.Tensor, Normalisation]:
    """Label of the data, images (clients, samples, ...) in uint8, targets."""
    resolved = catalogue.resolve("cifar10")
    split, source = catalogue.load(resolved.used)["train"], catalogue.source(resolved.used)
    chosen = np.random.default_rng(0).choice(len(split.images), (CLIENTS, SAMPLES), replace=False)
    images, labels = torch.from_numpy(split.images[chosen]), torch.from_numpy(split.labels[chosen])
    return resolved.label, images, labels, Normalisation(source.mean, source.std)


def _federation(batch_size: int, progress: Callable[[str, float], None]) -> Federation:
    _, images, labels, normalise = _cifar()
    clients = [
        Client(
            k,
            "",
            NETWORK,
            Shard(images[k], labels[k]),
            tuple(labels[k].bincount(minlength=10).tolist()),
            str(k),
        )
        for k in range(CLIENTS)
    ]
    plan = TrainingPlan(epochs=1, batch_size=batch_size, lr=LR, optimizer="sgd")
    return Federation(
        clients=clients,
        public=PublicData(images[0, :0], ""),
        test=LabelledSet(images[0, :1], labels[0, :1], ""),
        task=Classification(10),
        network=NETWORK,
        image_shape=tuple(images.shape[2:]),
        normalise=normalise,
        local=plan,
        server=plan,
        augmentation=None,
        seeds=SEEDS,
        stages=StageCache(None),
        progress=progress,
    )


def _initial(batch_size: int) -> dict[str, torch.Tensor]:
    return _federation(batch_size, lambda text, share: None).initial(NETWORK).state_dict()


def ours(batch_size: int) -> Outcome:
    """This suite's FedAvg."""
    starts: list[float] = []

    def progress(text: str, share: float) -> None:
        if text.startswith("round"):
            starts.append(time.perf_counter())

    federation = _federation(batch_size, progress)
    checkpoint = FedAvg(rounds=ROUNDS, participation=1.0).fit(federation)
    seconds = (time.perf_counter() - starts[1]) / (ROUNDS - 1)
    names = dict(federation.networks.initial(NETWORK).named_parameters())
    return Outcome({name: checkpoint.state[name] for name in names}, seconds)


@functools.cache
def _handed_over(batch_size: int, folder: str) -> Path:
    """A file with what the others start from: normalised images, targets, our order of images in
    every round, weights.
    """
    _, images, labels, normalise = _cifar()
    order = torch.stack(
        [
            torch.stack(
                [
                    torch.cat(
                        list(
                            batches(
                                SAMPLES,
                                batch_size,
                                SEEDS.torch("shuffling", "client", k, "round", number),
                            )
                        )
                    )
                    for k in range(CLIENTS)
                ]
            )
            for number in range(1, ROUNDS + 1)
        ]
    )
    normalised = normalise(unit_range(images.flatten(0, 1))).reshape(images.shape).contiguous()
    weights = {
        f"initial/{name}": tensor.contiguous() for name, tensor in _initial(batch_size).items()
    }
    path = Path(folder) / f"{batch_size}.safetensors"
    save_file(
        {"images": normalised, "targets": labels.contiguous(), "order": order, **weights}, path
    )
    return path


@functools.lru_cache(maxsize=1)
def _read(path: str) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Arrays and initial weights of such a file; once in every process."""
    tensors = load_file(path)
    prefix = "initial/"
    initial = {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
    return {name: tensors[name] for name in ("images", "targets", "order")}, initial


def _slices(
    path: str, client: int, number: int, batch_size: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """A client's batches in round `number` = 1, 2, ..."""
    arrays, _ = _read(path)
    for batch in arrays["order"][number - 1, client].split(batch_size):
        yield arrays["images"][client, batch], arrays["targets"][client, batch]


def bare_loop(
    batch_size: int, path: str, memory_format: torch.memory_format = torch.contiguous_format
) -> Outcome:
    """FedAvg with nothing around it."""
    _, initial = _read(path)
    model = build(NETWORK, 3, 10, 32).to(memory_format=memory_format)
    shared, starts = initial, []
    for number in range(1, ROUNDS + 1):
        starts.append(time.perf_counter())
        states = []
        for client in range(CLIENTS):
            model.load_state_dict(shared)
            _train(model, path, client, number, batch_size, memory_format)
            states.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
        shared = average_states(states, [1.0] * CLIENTS)
    seconds = (time.perf_counter() - starts[1]) / (ROUNDS - 1)
    return Outcome({name: shared[name] for name, _ in model.named_parameters()}, seconds)


def _train(
    model: nn.Module,
    path: str,
    client: int,
    number: int,
    batch_size: int,
    memory_format: torch.memory_format = torch.contiguous_format,
) -> None:
    """A client's epoch in round `number`."""
    optimizer = torch.optim.SGD(model.parameters(), LR)
    model.train()
    for images, targets in _slices(path, client, number, batch_size):
        optimizer.zero_grad()
        F.cross_entropy(model(images.contiguous(memory_format=memory_format)), targets).backward()
        optimizer.step()


# -- pfl --


def pfl(batch_size: int, path: str) -> Outcome:
    """Apple's pfl-research, its FederatedAveraging on the simulated backend, in this process."""
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
    from pfl.metrics import Metrics, Weighted
    from pfl.model.pytorch import PyTorchModel

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = build(NETWORK, 3, 10, 32)

        def loss(self, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            self.train()
            return F.cross_entropy(self.network(images), targets)

        def metrics(self, images: torch.Tensor, targets: torch.Tensor) -> dict[str, Any]:
            return {
                "samples": Weighted.from_unweighted(len(images))
            }  # asked for in the first round, in any case

    class Ordered(Dataset):
        """A client's data in our order of its round."""

        def __init__(self, client: int, number: int):
            arrays, _ = _read(path)
            super().__init__(
                (arrays["images"][client], arrays["targets"][client]), user_id=str(client)
            )
            self.place = client, number

        def iter(self, batch_size: int | None) -> Iterator[Any]:
            return iter(_slices(path, *self.place, batch_size or SAMPLES))

    asked = [0] * CLIENTS

    def dataset(client: int) -> Ordered:
        asked[client] += 1
        return Ordered(client, asked[client])

    ends: list[float] = []

    class Clock(TrainingProcessCallback):
        def after_central_iteration(
            self, aggregate_metrics: Any, model: Any, *, central_iteration: int
        ) -> Any:
            ends.append(time.perf_counter())
            return False, Metrics()

    _, initial = _read(path)
    network = Network()
    network.network.load_state_dict(initial)
    model = PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), lr=1.0))
    data = FederatedDataset(dataset, get_user_sampler("minimize_reuse", list(range(CLIENTS))))
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=ROUNDS,
            evaluation_frequency=ROUNDS + 1,
            train_cohort_size=CLIENTS,
            val_cohort_size=None,
        ),
        SimulatedBackend(training_data=data, val_data=data),
        model,
        NNTrainHyperParams(local_batch_size=batch_size, local_num_epochs=1, local_learning_rate=LR),
        NNEvalHyperParams(local_batch_size=SAMPLES),
        callbacks=[Clock()],
        send_metrics_to_platform=False,
    )
    parameters = {
        name: tensor.detach().clone() for name, tensor in network.network.named_parameters()
    }
    return Outcome(parameters, (ends[-1] - ends[0]) / (ROUNDS - 1))


# -- Flower --


def flower(batch_size: int, path: str) -> Outcome:
    """Flower's FedAvg in its simulation engine: clients run in a Ray actor, of which there is one,
    with one thread.
    """
    from flwr.app import ArrayRecord, ConfigRecord
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg as FlowerFedAvg
    from flwr.simulation import run_simulation

    ends: list[float] = []
    found: dict[str, torch.Tensor] = {}

    class Clocked(FlowerFedAvg):
        def aggregate_train(self, server_round: int, replies: Any) -> Any:
            aggregated = super().aggregate_train(server_round, replies)
            ends.append(time.perf_counter())
            return aggregated

    server = ServerApp()

    @server.main()
    def main(grid: Any, context: Any) -> None:
        _, initial = _read(path)
        strategy = Clocked(
            fraction_evaluate=0.0, min_train_nodes=CLIENTS, min_available_nodes=CLIENTS
        )
        config = ConfigRecord({"path": path, "batch-size": batch_size})
        result = strategy.start(grid, ArrayRecord(initial), num_rounds=ROUNDS, train_config=config)
        found.update(result.arrays.to_torch_state_dict())

    client = ClientApp()
    client.train()(flower_client)
    resources = {
        "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        "init_args": {"num_cpus": 1, "log_to_driver": False},
    }
    run_simulation(server, client, CLIENTS, backend_config=resources)
    names = dict(build(NETWORK, 3, 10, 32).named_parameters())
    return Outcome({name: found[name] for name in names}, (ends[-1] - ends[0]) / (ROUNDS - 1))


def flower_client(message: Any, context: Any) -> Any:
    """A client's part of a round, in the actor."""
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

    torch.set_num_threads(1)
    config = message.content["config"]
    model = build(NETWORK, 3, 10, 32)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    client, number = int(context.node_config["partition-id"]), config["server-round"]
    _train(model, config["path"], client, number, config["batch-size"])
    content = {
        "arrays": ArrayRecord(model.state_dict()),
        "metrics": MetricRecord({"num-examples": SAMPLES}),
    }
    return Message(content=RecordDict(content), reply_to=message)


# -- comparison --

PEERS = {
    "pfl": ("pfl", pfl, 'pip install "pfl[pytorch]==0.6.0"'),
    "flwr": ("Flower", flower, 'pip install "flwr[simulation]"'),
}
"""By the package's name."""


def distance(
    found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor], start: dict[str, torch.Tensor]
) -> float:
    """How far `found` is from `wanted`, over how far that is from `start`."""

    def norm(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
        return float(
            torch.cat(
                [(one[name].double() - other[name].double()).flatten() for name in wanted]
            ).norm()
        )

    return norm(found, wanted) / norm(wanted, start)


def compare_at(batch_size: int, repeats: int, folder: str) -> Comparison:
    """Print the comparison at a batch size; without ratios where weights differ."""
    path, start = str(_handed_over(batch_size, folder)), _initial(batch_size)
    usual = bare_loop(batch_size, path).parameters
    own = bare_loop(batch_size, path, torch.channels_last).parameters
    label = _cifar()[0]
    title = (
        f"seconds of a round of FedAvg, {NETWORK}, {CLIENTS} clients of {SAMPLES} images of"
        f" {label}, batch {batch_size}"
    )
    comparison = Comparison(
        title, {"fedtables": lambda: Timed(ours(batch_size).round_seconds)}, work=CLIENTS * SAMPLES
    )
    apart, rounding = distance(ours(batch_size).parameters, own, start), distance(usual, own, start)
    if apart > rounding:
        raise SystemExit(
            f"our own weights are {apart:.4f} from the bare loop's; nothing can be compared"
        )
    comparison.notes["fedtables"] = f"weights {apart:.4f} from the bare loop, channels last"
    comparison.ways["bare loop"] = functools.partial(_timed, bare_loop, batch_size, path)
    comparison.notes["bare loop"] = f"rounding alone moves them {rounding:.4f}"
    for package, (name, run, command) in PEERS.items():
        if importlib.util.find_spec(package) is None:
            print(f"{name}: not installed, left out; {command}")
            continue
        try:
            apart = distance(run(batch_size, path).parameters, usual, start)
        except (
            Exception
        ) as error:  # of another project's code; the others are compared all the same
            print(f"{name}: left out, it failed here: {type(error).__name__}: {error}")
            continue
        if not apart <= rounding:
            print(
                f"{name}: not comparable, its weights are {apart:.4f} from the bare loop's;"
                f" rounding moves them {rounding:.4f}"
            )
            continue
        comparison.ways[name] = functools.partial(_timed, run, batch_size, path)
        comparison.notes[name] = f"weights {apart:.4f} from the bare loop"
    comparison.run(repeats)
    print("\n".join(comparison.lines()))
    return comparison


def _timed(run: Callable[[int, str], Outcome], batch_size: int, path: str) -> Timed:
    return Timed(run(batch_size, path).round_seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[16, 64])
    parser.add_argument(
        "--repeats", type=int, default=REPEATS, help="interleaved rounds of the comparison"
    )
    parser.add_argument("--json", type=Path, help="write all times there")
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ.update(OMP_NUM_THREADS="1", FLWR_TELEMETRY_ENABLED="0", RAY_USAGE_STATS_ENABLED="0")
    logging.disable(logging.WARNING)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for batch_size in options.batch_sizes:
            comparison = compare_at(batch_size, options.repeats, folder)
            found[comparison.title] = comparison.to_json()
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    from benchmarks.speed import peers  # so that an actor finds the client's function by its module

    peers.main()
