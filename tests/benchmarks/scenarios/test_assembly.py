"""A federation of a scenario's parts: what the configuration adds, and what is refused."""

import dataclasses

import numpy as np
import pytest
import torch

from fedtables.baselines.standalone import Standalone
from fedtables.benchmarks.scenarios.assembly import assemble
from fedtables.benchmarks.scenarios.configuration import Configuration
from fedtables.benchmarks.scenarios.small import CONFIG
from fedtables.federation.cache import StageCache
from fedtables.federation.client import Shard
from fedtables.federation.data import LabelledSet, PublicData
from fedtables.federation.inside.evaluation import OracleError
from fedtables.federation.parts import ClientPart, Parts, Run
from fedtables.federation.seeds import Seeds
from fedtables.federation.tasks.images import Classification
from fedtables.federation.tasks.pixels import Segmentation
from fedtables.federation.tasks.values import DenseRegression
from fedtables.federation.training.inputs import Normalisation
from fedtables.methods.fedavg import FedAvg
from fedtables.models.entry import ModelError

IMAGES = torch.arange(6 * 64, dtype=torch.uint8).reshape(6, 1, 8, 8)
LABELS = torch.tensor([0, 1, 2, 0, 1, 2])


def part(digest, indices, counts=(), source="digits", **more):
    shard = Shard(IMAGES, LABELS, torch.tensor(indices))
    return ClientPart(shard, counts, digest, source, np.array(indices), **more)


def parts(task=None, **changes):
    """Two clients, with two samples and one; the second may have a task of its own."""
    return Parts(
        **{
            "clients": [
                part("first", [0, 1], (1, 1, 0)),
                part("second", [2], (0, 0, 1), task=task),
            ],
            "public": PublicData(IMAGES[3:4], "public"),
            "test": LabelledSet(IMAGES[4:], LABELS[4:], "test"),
            "task": Classification(3),
            "image_shape": (1, 8, 8),
            "normalise": Normalisation((0.5,), (0.5,)),
            **changes,
        }
    )


def assembled(made, method=Standalone, **changes):
    config = {**CONFIG, "augmentation.rotation": 0, **changes}
    return assemble(made, Configuration.parse(config), method, Run(Seeds(), StageCache(None)))


def test_networks_and_plans_are_the_configurations_and_samples_the_scenarios():
    federation = assembled(
        parts(),
        **{"network.client": "cnn+resnet8-narrow", "network.server": "resnet8-narrow"},
    )
    assert [client.role for client in federation.clients] == ["cnn", "resnet8-narrow"]
    assert [client.network for client in federation.clients] == ["cnn-small", "resnet8-narrow"]
    assert [client.size for client in federation.clients] == [2, 1]
    assert [client.digest for client in federation.clients] == ["first", "second"]
    assert federation.networks.server == "resnet8-narrow"
    assert (federation.local.epochs, federation.server.epochs) == (6, 15)
    assert federation.public.digest == "public"
    assert federation.privacy.protection is None


def test_samples_and_targets_lie_on_the_device_once():
    # Six images of 64 bytes and six labels of 8, which parts are views into.
    assert {tensor.untyped_storage().nbytes() for tensor in parts().held().values()} == {384, 48}
    held = LabelledSet(torch.zeros(1, 1, 8, 8), torch.ones(1), "validation")
    more = parts(further_tests={"there": held}, validation=held, oracle_labels=LABELS[:1]).held()
    assert sum(t.untyped_storage().nbytes() for t in more.values()) == 384 + 48 + 4 * 64 + 4


def test_samples_that_a_device_has_no_room_for_stay_in_host_memory(monkeypatch):
    for most, moves in ((432, True), (431, False)):  # of 384 and 48 bytes
        monkeypatch.setattr("fedtables.federation.parts.MOST_ON_DEVICE", most)
        moved = parts().on("meta")
        assert moved.test.targets.is_meta == moved.clients[0].shard.images.is_meta == moves


def test_a_network_has_the_form_that_its_task_needs():
    federation = assembled(parts(Segmentation(4)))
    assert [client.network for client in federation.clients] == ["cnn-small", "cnn-small+dense"]
    assert [client.task for client in federation.clients] == [None, Segmentation(4)]


def test_the_networks_of_volumes_are_those_that_take_volumes():
    volumes = torch.zeros(2, 1, 8, 8, 16)
    masks = torch.zeros(2, 8, 8, 16, dtype=torch.int64)
    clients = [ClientPart(Shard(volumes, masks), (), "all", "heads", np.arange(2))]
    made = parts(clients=clients, image_shape=(1, 8, 8, 16))
    made = dataclasses.replace(made, task=Segmentation(2))
    names = {"network.client": "unet-narrow-3d", "network.server": "unet-narrow-3d"}
    federation = assembled(made, **names)
    assert federation.clients[0].network == federation.networks.server == "unet-narrow-3d"
    with pytest.raises(ModelError, match="unet-narrow takes images, and the data are volumes"):
        assembled(made, **{**names, "network.server": "unet-narrow"})


def test_labels_of_public_samples_are_for_oracles_alone():
    class Oracle(Standalone):
        oracle = frozenset({"public-labels"})

    labelled = parts(oracle_labels=LABELS[3:4])
    assert assembled(labelled, Oracle).evaluation.public_labels().tolist() == [0]
    with pytest.raises(OracleError):
        assembled(labelled).evaluation.public_labels()


def test_privacy_is_of_the_forms_that_the_method_has():
    private = {"privacy.epsilon": 5.0, "privacy.mechanism": "dp-sgd"}
    federation = assembled(parts(), FedAvg, **private)
    assert federation.privacy.mechanism == "dp-sgd"
    assert federation.privacy.protection.plan.epsilon == 5.0
    with pytest.raises(ValueError, match="FedAvg has no private form under pate"):
        assembled(parts(), FedAvg, **{**private, "privacy.mechanism": "pate"})


def test_images_with_values_for_their_pixels_are_not_augmented():
    flips = {"augmentation.horizontal_flip": True}
    with pytest.raises(ValueError, match=r"not augmented.*leave augmentation\.\* off"):
        assembled(parts(DenseRegression(3)), **flips)
    assert assembled(parts(Segmentation(4)), **flips).augmentation is not None


PRIVATE = {"privacy.epsilon": 5.0, "privacy.mechanism": "dp-sgd"}


@pytest.mark.parametrize(
    ("clients", "copies"),
    [
        ([part("a", [0, 1, 1])], 2),
        ([part("a", [0, 1]), part("b", [1, 1, 2])], 3),
        ([part("a", [0, 0], source="one"), part("b", [0, 1], source="other")], 2),
    ],
)
def test_an_epsilon_of_samples_that_lie_with_clients_more_than_once_is_refused(clients, copies):
    made = parts(clients=clients)
    assert made.copies() == copies
    with pytest.raises(ValueError, match=rf"hold one up to {copies} times here.*duplicates=false"):
        assembled(made, FedAvg, **PRIVATE)
    assert assembled(made, FedAvg).privacy.protection is None


def test_equal_numbers_of_two_data_sets_are_two_samples():
    clients = [part("a", [0, 1], source="one"), part("b", [0, 1], source="other")]
    assert assembled(parts(clients=clients), FedAvg, **PRIVATE).privacy.mechanism == "dp-sgd"


@pytest.mark.parametrize(
    ("groups", "unit"),
    [
        ((None, None), "one sample"),
        (([4, 5], [6]), "one sample"),
        # A patient with two samples at one client and one at the other.
        (
            ([4, 4], [4]),
            "one sample, not one person: a group, such as a patient, has up to 3 samples",
        ),
    ],
)
def test_a_private_run_says_what_its_epsilon_is_of(groups, unit):
    own, others = (None if group is None else np.array(group) for group in groups)
    clients = [part("a", [0, 1], groups=own), part("b", [2], groups=others)]
    assert assembled(parts(clients=clients), FedAvg, **PRIVATE).privacy.protection.unit == unit
