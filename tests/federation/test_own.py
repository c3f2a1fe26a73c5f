"""A federation of one's own tensors: what is made of them, what a fit sees, what is refused."""

import numpy as np
import pytest
import torch
from torch import nn

from fedtables import OwnData, Plans, PrivacyPlan, Run, TrainingPlan, federation_of, partition
from fedtables.baselines.standalone import Standalone
from fedtables.federation.cache import StageCache
from fedtables.federation.execution import Execution
from fedtables.methods.dlad import DLAD
from fedtables.methods.fedavg import FedAvg
from fedtables.methods.feddf import FedDF
from fedtables.methods.fedsa import FedSA
from tests.federation.tiny import bright_images

LABELS = torch.tensor([0, 1, 2] * 4)
PAIR = bright_images(LABELS, 1), LABELS
OTHERS = bright_images(LABELS, 2), LABELS
TEST = bright_images(LABELS, 3), LABELS
SHORT = TrainingPlan(epochs=1, batch_size=4, lr=0.01)
PLANS = Plans("cnn-small", local=SHORT, server=SHORT)
ONE_ROUND = FedAvg(rounds=1, participation=1.0)


def linear(channels, classes, sides):
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * sides[0] * sides[1], classes))


def made(plans=PLANS, run=None, privacy=None, **changes):
    data = OwnData(**{"clients": [PAIR, OTHERS], "test": TEST, **changes})
    return federation_of(data, plans, privacy=privacy, run=run)


def weights(federation, method=ONE_ROUND):
    return method.fit(federation).state


def test_clients_hold_what_they_are_given_and_count_their_classes():
    federation = made(clients=[PAIR, (OTHERS[0][:4], OTHERS[1][:4])])
    assert [client.size for client in federation.clients] == [12, 4]
    assert [client.label_counts for client in federation.clients] == [(4, 4, 4), (2, 1, 1)]
    shard = federation.clients[1].run(lambda own: (own.images, own.targets))
    assert torch.equal(shard[0], OTHERS[0][:4])
    assert torch.equal(shard[1], OTHERS[1][:4])
    assert federation.networks.image_shape == (1, 8, 8)
    assert federation.task.outputs == 3


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda images: images.numpy(), id="uint8 array"),
        pytest.param(lambda images: images[:, 0], id="without channels"),
    ],
)
def test_the_form_of_the_images_changes_nothing(form):
    other = made(clients=[(form(PAIR[0]), LABELS.numpy().astype(np.int8)), OTHERS])
    for name, tensor in weights(made()).items():
        assert torch.equal(weights(other)[name], tensor)


def test_floats_are_the_bytes_that_they_stand_for():
    floats = [(images.numpy() / 255.0, labels) for images, labels in (PAIR, OTHERS)]
    assert all(images.dtype == np.float64 for images, _ in floats)
    for name, tensor in weights(made()).items():
        assert torch.allclose(weights(made(clients=floats))[name], tensor, atol=1e-6)


def test_a_network_of_ones_own_is_fitted_and_comes_back_as_a_module():
    federation = made(Plans(linear, local=SHORT))
    model = federation.networks.module(ONE_ROUND.fit(federation))
    assert isinstance(model[1], nn.Linear)
    seen = federation.normalise(TEST[0].float() / 255)
    right = (model(seen).argmax(dim=1) == LABELS).double().mean()
    assert federation.evaluation.test(model)["accuracy"] == float(right)
    assert federation.evaluation.history["accuracy"] == [float(right)]


def test_networks_of_two_functions_are_two_and_of_one_function_are_one():
    def other(channels, classes, sides):
        return linear(channels, classes, sides)

    assert made(Plans(linear, clients=[linear, linear])).networks.shared().build is linear
    federation = made(Plans("cnn-small", clients=[linear, other], local=SHORT))
    assert [str(m.network) for m in Standalone().fit(federation)] == ["linear", "other"]


def test_the_same_seeds_give_the_same_weights_whatever_was_made_before():
    first = weights(made(Plans(linear, local=SHORT)))
    made(Plans(lambda c, k, s: linear(c, k, s), local=SHORT))
    for name, tensor in weights(made(Plans(linear, local=SHORT))).items():
        assert torch.equal(first[name], tensor)


def test_every_fit_begins_with_an_empty_ledger_and_history():
    federation = made(public=TEST[0])
    ONE_ROUND.fit(federation)
    sent = federation.channel.by_kind()
    again = ONE_ROUND.fit(federation)
    assert federation.channel.by_kind() == sent
    assert len(again.history["accuracy"]) == 1


def test_a_private_fit_spends_its_budget_once():
    federation = made(privacy=PrivacyPlan("dp-sgd", epsilon=8.0))
    ONE_ROUND.fit(federation)
    assert 0 < federation.privacy.protection.accountant.epsilon() <= 8.0
    with pytest.raises(ValueError, match="budget"):
        ONE_ROUND.fit(federation)


@pytest.mark.parametrize(
    ("method", "named"), [(DLAD(), "public"), (FedDF(rounds=1), "validation"), (FedSA(), "probe")]
)
def test_what_the_server_lacks_is_named_when_a_method_asks_for_it(method, named):
    with pytest.raises(ValueError, match=f"`{named}`"):
        method.fit(made())


class Unhashable:
    __hash__ = None

    def __call__(self, *of):
        return linear(*of)


def test_a_server_without_public_images_shows_as_such():
    assert repr(made().public) == "NoPublicData()"


IMAGES = PAIR[0]
DP = PrivacyPlan("dp-sgd", epsilon=8.0)
WRONG = {
    "no clients": ("clients", {"clients": []}),
    "an empty client": (r"clients\[1\]", {"clients": [PAIR, (IMAGES[:0], LABELS[:0])]}),
    "no pair": (r"clients\[0\]", {"clients": [IMAGES, IMAGES]}),
    "fewer labels": (r"clients\[0\]", {"clients": [(IMAGES, LABELS[:5])]}),
    "labels in one-hot form": ("test", {"test": (IMAGES, torch.eye(3)[LABELS])}),
    "no test set": ("test", {"test": None}),
    "labels of floats": ("test", {"test": (IMAGES, LABELS.float())}),
    "a label below 0": ("test", {"test": (IMAGES, LABELS - 1)}),
    "too few classes": ("classes", {"classes": 2}),
    "floats beyond 1": ("test", {"test": (IMAGES.float(), LABELS)}),
    "floats that are no numbers": ("public", {"public": torch.full((2, 1, 8, 8), torch.nan)}),
    "whole numbers of 64 bits": ("public", {"public": IMAGES.long()}),
    "words": ("public", {"public": np.array(["a", "b"])}),
    "images of two sides": ("public", {"public": IMAGES[0, 0]}),
    "channels last": ("public", {"public": torch.zeros(2, 8, 8, 3)}),
    "other sides": ("public", {"public": torch.zeros(2, 1, 9, 9)}),
    "no list of clients": ("clients", {"clients": None}),
    "an empty public set": ("public", {"public": IMAGES[:0]}),
    "half a class": ("classes", {"classes": 3.5}),
    "one mean": ("mean", {"mean": 0.5}),
    "a mean of bytes": ("mean", {"mean": (128,)}),
    "a mean too many": ("mean", {"mean": (0.5, 0.5)}),
    "a deviation of 0": ("std", {"std": (0.0,)}),
    "a deviation without end": ("std", {"std": (float("inf"),)}),
    "an unknown network": ("plans.network: .*cnn-small", {"plans": Plans("cnn-smal")}),
    "an unknown network of a client": (
        r"plans.clients\[1\]",
        {"plans": Plans(clients=["cnn", "cnn-smal"])},
    ),
    "a module for its function": ("plans.network", {"plans": Plans(nn.Flatten())}),
    "a function without a hash": ("plans.network", {"plans": Plans(Unhashable())}),
    "a function of nothing": ("network", {"plans": Plans(lambda: linear(1, 3, (8, 8)))}),
    "roles of others": ("plans.roles", {"plans": Plans(roles=["one"])}),
    "looks below 0": ("plans.looks", {"plans": Plans(looks=-5)}),
    "no plan of training": ("plans.local", {"plans": Plans(local=None)}),
    "no plans": ("plans", {"plans": Run()}),
    "no run": ("run", {"run": Plans()}),
    "no plan of privacy": ("privacy", {"privacy": 8.0}),
    "a network for each of three": ("plans.clients", {"plans": Plans(clients=["cnn"] * 3)}),
    "a network of other scores": ("network", {"plans": Plans(lambda c, k, s: linear(c, 7, s))}),
    "no module": ("no module", {"plans": Plans(lambda c, k, s: torch.zeros)}),
    "a device that is not there": ("device", {"run": Run(device="cuda:99")}),
    "no device": ("device", {"run": Run(device="gpu")}),
    "a device without content": ("device", {"run": Run(device="meta")}),
    "CUDA graphs elsewhere": ("execution", {"run": Run(execution=Execution(compile="graphs"))}),
    "an image at two clients": (
        "clients",
        {"clients": [PAIR, PAIR], "privacy": DP},
    ),
    "a private image that is public": ("public", {"public": IMAGES[3:5], "privacy": DP}),
    "a private image to choose by": (
        "validation",
        {"validation": (IMAGES / 255, LABELS), "privacy": DP},
    ),
    "a private image at the server": ("probe", {"probe": PAIR, "privacy": DP}),
}


@pytest.mark.parametrize(("named", "changes"), WRONG.values(), ids=list(WRONG))
def test_wrong_use_is_refused_by_the_name_of_what_is_wrong(named, changes):
    with pytest.raises(ValueError, match=named):
        made(**changes)


def test_a_network_of_ones_own_is_not_kept_on_disk(tmp_path):
    with pytest.raises(ValueError, match="stages"):
        made(Plans(linear), run=Run(stages=StageCache(tmp_path)))


def test_stages_on_disk_are_computed_once(tmp_path):
    for computed in (True, False):
        stages = StageCache(tmp_path)
        Standalone().fit(made(run=Run(stages=stages)))
        assert {event.computed for event in stages.events} == {computed}


# -- partitions --


def test_a_partition_gives_each_sample_to_one_client():
    labels = np.arange(60) % 3
    parts = partition(labels, "dirichlet-fedkd", 4, alpha=0.5)
    assert sorted(np.concatenate(parts).tolist()) == list(range(60))
    assert len(parts) == 4
    again = partition(torch.from_numpy(labels), "dirichlet-fedkd", 4, alpha=0.5)
    assert all(map(np.array_equal, parts, again))
    other = partition(labels, "dirichlet-fedkd", 4, alpha=0.5, seed=1)
    assert not all(map(np.array_equal, parts, other))


def test_clients_of_sets_of_classes_draw_their_share():
    labels = np.arange(100) % 10
    parts = partition(labels, "niid1", 5, client_share=0.1, duplicates=False)
    assert [sorted({*labels[part].tolist()}) for part in parts] == [
        [0, 1],
        [2, 3],
        [4, 5],
        [6, 7],
        [8, 9],
    ]
    assert [len(part) for part in parts] == [10] * 5


@pytest.mark.parametrize(
    ("named", "labels", "kind", "options"),
    [
        ("alpha", [0, 1, 2], "dirichlet-fedkd", {}),
        ("iid", [0, 1, 2], "by-site", {}),
        ("labels", [0.5, 1.0], "iid", {}),
        ("labels", [-1, 0], "iid", {}),
        ("labels", [], "iid", {}),
        ("labels", [[0, 1]], "iid", {}),
        ("5", [*range(10)], "iid", {"clients": 3}),
        ("clients", [0, 1, 2], "iid", {"clients": 2.5}),
        ("client_share", [*range(10)], "iid", {"clients": 5, "client_share": np.nan}),
        ("seed", [*range(10)], "iid", {"clients": 5, "seed": "one"}),
        ("at most 3", [0, 1, 2], "dirichlet-fedkd", {"alpha": 1.0, "clients": 4}),
    ],
)
def test_an_impossible_partition_is_refused(named, labels, kind, options):
    with pytest.raises(ValueError, match=named):
        partition(np.array(labels), kind, **{"clients": 2, **options})
