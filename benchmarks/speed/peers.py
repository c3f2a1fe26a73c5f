"""FedAvg in this suite and in two simulators of federated learning, by hand: `python -m
fedtables.benchmarks.speed.peers`.

All get the same arrays (CIFAR-10), the same twenty clients of 128 images, the same initial weights,
the same order of images and plain SGD; everyone takes part in every round, and nothing is
evaluated. A time is of a round, the first one aside, in which processes start and code is imported.

A row counts only if its final weights are, up to rounding, those of a bare loop over the same
batches; otherwise it says how far they are, and no ratio. The simulators train in the usual memory
layout, and we with channels last, whose sums are rounded in another order; how far that alone moves
the loop's weights is the most that is allowed. (As a share of how far training moves them: 0.01
with batches of 16, where another order of batches makes 0.05; 0.002 and 0.02 with 64.)

A simulator that is not installed is left out. In an environment of their own, since their
requirements are not ours:

    pip install "pfl[pytorch]==0.6.0" "flwr[simulation]"
"""

import logging
import os
import time
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from fedtables.benchmarks.speed.pairs import Comparison
from fedtables.benchmarks.speed.rounds import LR, NETWORK, ROUNDS, Outcome, cifar10, distance
from fedtables.models.catalogue import build


def pfl(batch_size: int) -> Outcome:
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

    _, simulation = cifar10(batch_size)
    clients = len(simulation.images)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = build(NETWORK, 3, 10, 32)

        def loss(self, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            self.train()
            return F.cross_entropy(self.network(images), targets)

        def metrics(self, images: torch.Tensor, targets: torch.Tensor) -> dict[str, Any]:
            # asked for in the first round, in any case
            return {"samples": Weighted.from_unweighted(len(images))}

    class Ordered(Dataset):
        """A client's data in our order of its round."""

        def __init__(self, client: int, number: int):
            raw = simulation.images[client], simulation.labels[client]
            super().__init__(raw, user_id=str(client))
            self.place = client, number

        def iter(self, batch_size: int | None) -> Iterator[Any]:
            return simulation.client_batches(*self.place)

    asked = [0] * clients

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

    network = Network()
    network.network.load_state_dict(simulation.initial().state_dict())
    model = PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), lr=1.0))
    data = FederatedDataset(dataset, get_user_sampler("minimize_reuse", list(range(clients))))
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=ROUNDS,
            evaluation_frequency=ROUNDS + 1,
            train_cohort_size=clients,
            val_cohort_size=None,
        ),
        SimulatedBackend(training_data=data, val_data=data),
        model,
        NNTrainHyperParams(local_batch_size=batch_size, local_num_epochs=1, local_learning_rate=LR),
        NNEvalHyperParams(local_batch_size=batch_size),
        callbacks=[Clock()],
        send_metrics_to_platform=False,
    )
    return Outcome.of(network.network.state_dict(), (ends[-1] - ends[0]) / (len(ends) - 1))


def flower(batch_size: int) -> Outcome:
    """Flower's FedAvg in its simulation engine: clients run in a Ray actor, of which there is one,
    with one thread.
    """
    from flwr.app import ArrayRecord, ConfigRecord
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg as FlowerFedAvg
    from flwr.simulation import run_simulation

    _, simulation = cifar10(batch_size)
    clients = len(simulation.images)
    ends: list[float] = []
    weights: dict[str, torch.Tensor] = {}

    class Clocked(FlowerFedAvg):
        def aggregate_train(self, server_round: int, replies: Any) -> Any:
            aggregated = super().aggregate_train(server_round, replies)
            ends.append(time.perf_counter())
            return aggregated

    server = ServerApp()

    @server.main()
    def main(grid: Any, context: Any) -> None:
        strategy = Clocked(
            fraction_evaluate=0.0, min_train_nodes=clients, min_available_nodes=clients
        )
        config = ConfigRecord({"batch-size": batch_size})
        start = ArrayRecord(simulation.initial().state_dict())
        result = strategy.start(grid, start, num_rounds=ROUNDS, train_config=config)
        weights.update(result.arrays.to_torch_state_dict())

    client = ClientApp()
    client.train()(flower_client)
    resources = {
        "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        "init_args": {"num_cpus": 1, "log_to_driver": False},
    }
    run_simulation(server, client, clients, backend_config=resources)
    return Outcome.of(weights, (ends[-1] - ends[0]) / (len(ends) - 1))


def flower_client(message: Any, context: Any) -> Any:
    """A client's part of a round, in the actor."""
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

    torch.set_num_threads(1)
    config = message.content["config"]
    model = build(NETWORK, 3, 10, 32)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    client, number = int(context.node_config["partition-id"]), config["server-round"]
    _, simulation = cifar10(config["batch-size"])
    simulation.train_client(model, client, number)
    content = {
        "arrays": ArrayRecord(model.state_dict()),
        "metrics": MetricRecord({"num-examples": len(simulation.images[client])}),
    }
    return Message(content=RecordDict(content), reply_to=message)


PEERS = {"pfl": pfl, "Flower": flower}


def compare_at(batch_size: int) -> None:
    """Print the comparison at a batch size; without ratios where weights differ."""
    label, simulation = cifar10(batch_size)
    start, ours = simulation.initial().state_dict(), simulation.suite().parameters
    loop = simulation.bare().parameters
    usual = simulation.bare(torch.contiguous_format).parameters
    apart, rounding = distance(ours, loop, start), distance(usual, loop, start)
    if apart > rounding:
        raise SystemExit(
            f"our own weights are {apart:.4f} from the bare loop's; nothing can be compared"
        )
    comparison = Comparison(
        f"rounds of FedAvg, {NETWORK}, {simulation.trained} images of {label}, batch {batch_size}",
        {
            "fedtables": lambda: simulation.suite().round_seconds,
            "bare loop": lambda: simulation.bare(torch.contiguous_format).round_seconds,
        },
        simulation.trained,
        notes={
            "fedtables": f"weights {apart:.4f} from the bare loop, channels last",
            "bare loop": f"rounding alone moves them {rounding:.4f}",
        },
    )
    for name, peer in PEERS.items():
        try:
            apart = distance(peer(batch_size).parameters, usual, start)
        except (
            Exception
        ) as error:  # of another project's code; the others are compared all the same
            print(f"{name}: left out, it failed here: {type(error).__name__}: {error}")
            continue
        comparison.notes[name] = f"weights {apart:.4f} from the bare loop"
        if apart <= rounding:
            comparison.ways[name] = lambda peer=peer: peer(batch_size).round_seconds
        else:
            print(f"{name}: not comparable, {comparison.notes.pop(name)}")
    comparison.run()
    print(comparison.text())


def main() -> None:
    torch.set_num_threads(1)
    os.environ.update(OMP_NUM_THREADS="1", FLWR_TELEMETRY_ENABLED="0", RAY_USAGE_STATS_ENABLED="0")
    logging.disable(logging.WARNING)
    for batch_size in (16, 64):
        compare_at(batch_size)


if __name__ == "__main__":
    main()
