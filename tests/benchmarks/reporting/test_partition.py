"""Who holds what, written for others: the runner's own indices."""

import json

import numpy as np
import pytest

from fedtables import partition
from fedtables.benchmarks.reporting.partition import divided, write_indices
from fedtables.benchmarks.scenarios.configuration import Configuration
from fedtables.benchmarks.scenarios.images import parts
from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.scenarios.small import CONFIG
from fedtables.datasets import catalogue
from fedtables.federation.seeds import Seeds

KINDS = {
    "niid1": {"partition.public_share": 0.8, "partition.client_share": 0.5},
    "dirichlet-fedkd": {"partition.public_share": 0.0, "partition.alpha": 0.5},
}
WHOLE = {
    "partition.public_limit": 0,
    "partition.validation_share": 0.0,
    "partition.probe_share": 0.0,
}


@pytest.fixture
def written(tmp_path):
    found = divided("digits", 5, list(KINDS), 0.5, seed=3)
    return json.loads(write_indices(found, tmp_path / "new" / "indices.json").read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_has_the_indices_of_the_runners_federation(written, kind):
    settings = {**CONFIG, **WHOLE, **KINDS[kind], "partition.kind": kind}
    data = DataSets(catalogue.resolve("digits"))
    made = parts(Configuration.parse(settings), data, Seeds(partition=3), "cpu")
    held = written["partitions"][kind]
    assert held["clients"] == [client.records.tolist() for client in made.clients]
    assert len(held["public"]) == len(made.public)
    assert not {*held["public"]} & {index for client in held["clients"] for index in client}


def test_the_file_says_of_which_samples_they_are(written):
    digest = catalogue.resolve("digits").digest
    about = {name: written[name] for name in ("dataset", "digest", "split", "seed")}
    assert about == {"dataset": "digits", "digest": digest, "split": "train", "seed": 3}


def test_the_function_gives_the_same_of_the_labels(written):
    labels = catalogue.load("digits")["train"].labels
    own = partition(labels, "dirichlet-fedkd", 5, alpha=0.5, seed=3)
    held = written["partitions"]["dirichlet-fedkd"]["clients"]
    assert all(map(np.array_equal, own, held))


def test_a_folder_in_the_place_of_the_file_is_refused(command, tmp_path):
    options = ("--kind", "iid", "--results", str(tmp_path / "runs"), "--indices", str(tmp_path))
    done = command("partition", "--dataset", "digits", *options)
    assert done.returncode == 2
    assert str(tmp_path) in done.stderr


def test_clients_by_group_are_described_for_a_set_with_groups(command, tmp_path):
    options = ("--kind", "by-group", "--results", str(tmp_path))
    done = command("partition", "--dataset", "digits-writers", "--clients", "11", *options)
    assert done.returncode == 0, done.stderr
    csv = tmp_path / "partitions" / "digits-writers-by-group-11-seed0.csv"
    held = np.loadtxt(csv, delimiter=",", skiprows=1, usecols=(1, 3), dtype=int)
    sizes = np.bincount(held[:, 0], weights=held[:, 1])
    assert sorted(sizes) == [123, 126, 128, 128, *[130] * 7]
    done = command("partition", "--dataset", "digits", *options)
    assert "by-group needs a data set that says whose each sample is" in done.stderr
