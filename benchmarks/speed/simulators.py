"""The same rounds of FedAvg in pfl-research and in Flower."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.speed.rounds import (
    CLIENTS,
    LR,
    NETWORK,
    ROUNDS,
    SAMPLES,
    Outcome,
    client_batches,
    read_shared,
    train_client,
)
from models.catalogue import build

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
            arrays, _ = read_shared(path)
            super().__init__(
                (arrays["images"][client], arrays["targets"][client]), user_id=str(client)
            )
            self.place = client, number

        def iter(self, batch_size: int | None) -> Iterator[Any]:
            return iter(client_batches(path, *self.place, batch_size or SAMPLES))

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

    _, initial = read_shared(path)
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
    weights: dict[str, torch.Tensor] = {}

    class Clocked(FlowerFedAvg):
        def aggregate_train(self, server_round: int, replies: Any) -> Any:
            aggregated = super().aggregate_train(server_round, replies)
            ends.append(time.perf_counter())
            return aggregated

    server = ServerApp()

    @server.main()
    def main(grid: Any, context: Any) -> None:
        _, initial = read_shared(path)
        strategy = Clocked(
            fraction_evaluate=0.0, min_train_nodes=CLIENTS, min_available_nodes=CLIENTS
        )
        config = ConfigRecord({"path": path, "batch-size": batch_size})
        result = strategy.start(grid, ArrayRecord(initial), num_rounds=ROUNDS, train_config=config)
        weights.update(result.arrays.to_torch_state_dict())

    client = ClientApp()
    client.train()(flower_client)
    resources = {
        "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        "init_args": {"num_cpus": 1, "log_to_driver": False},
    }
    run_simulation(server, client, CLIENTS, backend_config=resources)
    names = dict(build(NETWORK, 3, 10, 32).named_parameters())
    return Outcome({name: weights[name] for name in names}, (ends[-1] - ends[0]) / (ROUNDS - 1))


def flower_client(message: Any, context: Any) -> Any:
    """A client's part of a round, in the actor."""
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

    torch.set_num_threads(1)
    config = message.content["config"]
    model = build(NETWORK, 3, 10, 32)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    client, number = int(context.node_config["partition-id"]), config["server-round"]
    train_client(model, config["path"], client, number, config["batch-size"])
    content = {
        "arrays": ArrayRecord(model.state_dict()),
        "metrics": MetricRecord({"num-examples": SAMPLES}),
    }
    return Message(content=RecordDict(content), reply_to=message)
