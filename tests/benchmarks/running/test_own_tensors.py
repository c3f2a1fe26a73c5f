"""A federation of one's own tensors, and the cell of a table with the same samples and plans."""

from fedtables import OwnData, Plans, Run, Seeds, TrainingPlan, federation_of, partition
from fedtables.benchmarks.running.events import Context
from fedtables.benchmarks.running.execute import run_cell
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.datasets import catalogue
from fedtables.federation.augmentation import Augmentation
from fedtables.methods.fedavg import FedAvg

SETTINGS = {
    "partition.pool_limit": 0,
    "partition.test_limit": 0,
    "local.epochs": 2,
    "fedavg.rounds": 3,
    "fedavg.participation": 0.75,
}
SEED = 1


def test_fedavg_on_ones_own_tensors_has_the_number_of_the_runners_cell(tmp_path):
    only = {"row": ("fedavg",), "alpha": ("1",), "epsilon": ("inf",)}
    paper, table = registry.find_table("fediod/trial")
    [cell] = expand(
        paper, table, Selection(only=only, seeds=(SEED,), overrides=tuple(SETTINGS.items()))
    )
    record, trace = run_cell(cell, Context(str(tmp_path / "stages")))
    assert not trace
    [measured] = record.measurements

    digits, about = catalogue.load("digits"), catalogue.source("digits")
    train, test = digits["train"], digits["test"]
    of = dict(cell.config)
    clients = of["partition.clients"]
    held = partition(train.labels, "dirichlet-fedkd", clients, alpha=1.0, seed=SEED)
    data = OwnData(
        clients=[(train.images[part], train.labels[part]) for part in held],
        test=(test.images, test.labels),
        mean=about.mean,
        std=about.std,
    )
    local = TrainingPlan(
        **{k.removeprefix("local."): v for k, v in of.items() if k.startswith("local.")}
    )
    changes = {k.partition(".")[2]: v for k, v in of.items() if k.startswith("augmentation.")}
    plans = Plans("cnn-small", local=local, augmentation=Augmentation(**changes))
    federation = federation_of(data, plans, run=Run(Seeds(partition=SEED)))
    checkpoint = FedAvg(rounds=3, participation=0.75).fit(federation)

    assert 100 * checkpoint.history["accuracy"][-1] == measured.value
    assert measured.value > 20
    model = federation.networks.module(checkpoint)
    assert 100 * federation.evaluation.test(model)["accuracy"] == measured.value
    assert federation.channel.total("up") == record.bytes_up
