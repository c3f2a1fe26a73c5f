"""Samples seen, counted by hand; a run has the same count whatever it finds in the cache."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from fedtables.baselines.fedgen import FedGEN
from fedtables.baselines.fedkd_gong import FedKDGong
from fedtables.baselines.standalone import Standalone
from fedtables.federation.cache import StageCache
from fedtables.federation.costs import Meter, metering
from fedtables.federation.data import TrainingSet
from fedtables.federation.fitting import fit
from fedtables.federation.inside.privacy import Protection
from fedtables.federation.method import Method
from fedtables.federation.samples import counted, on_client, see
from fedtables.federation.training.inputs import Inputs, Normalisation
from fedtables.federation.training.loops import predict, train
from fedtables.federation.training.plan import Training, TrainingPlan
from fedtables.methods.dlad import DLAD
from fedtables.methods.fedavg import FedAvg
from fedtables.methods.feddf import FedDF
from fedtables.methods.fediod import FedIOD
from fedtables.methods.fedmd import FedMD
from fedtables.privacy.plan import DP_SGD, PrivacyPlan
from tests.federation.tiny import make_client, make_federation


def seen_by(method, **changes):
    """Samples that a fit takes on the tiny federation: two clients with 12 images each, six public
    ones; local training has 3 epochs, the server's 2.
    """
    with counted() as count:
        fit(make_federation(**changes), method)
    return count.total()


# -- where and what --


def test_what_is_seen_on_a_client_is_local_and_the_rest_the_servers():
    with counted() as count:
        see(5)
        with on_client(0):
            see(3)
        see(1)
    assert count.total() == {"local": 3, "server": 6}


def test_a_stage_is_of_whoever_asks_for_it():
    took = {"local": 1, "server": 4, "seconds": 2.0, "local-seconds": 0.5}
    with counted() as count:
        count.add_stage("asked at the server", took)
        with on_client(0):
            count.add_stage("asked on a client", took)
    assert count.total() == {"local": 1 + 5, "server": 4}
    assert count.seconds()["local"] == pytest.approx(0.5 + 2.0, abs=0.1)


def test_training_sees_its_batches_and_not_a_last_one_of_a_single_sample():
    """13 images in batches of 4: three full ones, and one that is left out."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 1))
    images, targets = torch.zeros(13, 1, 2, 2), torch.zeros(13, 1)
    plain = Normalisation((0.0,), (1.0,))
    with counted() as count:
        train(
            model,
            TrainingSet(images, targets),
            Training(
                lambda outputs, wanted: (outputs - wanted).square().mean(dim=1),
                TrainingPlan(epochs=5, batch_size=4),
            ),
            Inputs(plain, generator=torch.Generator().manual_seed(0)),
        )
        predict(model, images, normalise=plain)
    assert count.total() == {"local": 0, "server": 5 * 12}


def test_a_pass_of_a_methods_own_loop_counts_where_the_network_learns():
    federation = make_federation()
    model, frozen = federation.networks.initial(), federation.networks.initial()
    frozen.requires_grad_(False)
    images = torch.zeros(6, 1, 8, 8)
    with counted() as count:
        federation.forward(model, images)
        federation.forward(frozen, images)
        with torch.no_grad():
            federation.forward(model, images)
        federation.clients[0].run(lambda shard: federation.forward(model, images[:2]))
    assert count.total() == {"local": 2, "server": 6}


# -- whole fits --


def test_fits_see_what_their_plans_say():
    assert seen_by(Standalone()) == {"local": 2 * 12 * 3, "server": 0}
    assert seen_by(FedKDGong()) == {"local": 2 * 12 * 3, "server": 6 * 2}
    rounds = FedAvg(rounds=4, participation=0.5)
    assert seen_by(rounds) == {"local": 4 * 12 * 3, "server": 0}


def test_what_a_client_digests_of_public_images_is_local():
    """Local models, two rounds of 4 public and 12 own images; two epochs of the central model."""
    method = FedMD(rounds=2, public_samples=4, revisit_epochs=1)
    assert seen_by(method) == {"local": 2 * (12 * 3 + 2 * (4 + 12)), "server": 6 * 2}


@pytest.mark.parametrize(
    "method",
    [
        Standalone(),
        FedKDGong(),
        FedKDGong(multi_round=True),
        FedAvg(rounds=4, participation=0.5),
        FedGEN(rounds=2, generator_steps=3, generator_batch_size=4),
        FedDF(rounds=2, distillation_steps=3, distillation_batch_size=4, patience=3),
        FedMD(rounds=2, public_samples=4, revisit_epochs=1),
        DLAD(),
        FedIOD(epochs=2, steps=3, batch_size=4, width=4, discriminator_width=4, samples=4),
    ],
    ids=repr,
)
def test_a_plan_foresees_what_a_fit_sees(method):
    with metering(Meter()) as meter:
        fit(make_federation(device="meta"), method)
    assert meter.work.training_samples == sum(seen_by(method).values()) > 0


def test_dp_sgd_sees_the_samples_that_were_drawn():
    """Poisson sampling draws each of 200 images with probability 1/50 in each of 150 steps: 600 on
    average, with a deviation of 24.
    """
    plan = TrainingPlan(epochs=3, batch_size=4, lr=0.01)
    protection = Protection(PrivacyPlan(DP_SGD, epsilon=8.0), frozenset())
    clients = [make_client(0, samples=200, network="cnn-small")]
    seen = seen_by(Standalone(), clients=clients, local=plan, protection=protection)
    assert seen["local"] == pytest.approx(600, abs=100)
    assert seen["local"] != 600
    assert seen["server"] == 0


@dataclass(frozen=True)
class AsksTwice(Method):
    """Takes the local models twice."""

    def fit(self, federation):
        federation.local_models()
        return federation.local_models()


@pytest.fixture(params=["disk", "memory"])
def stages(request, tmp_path):
    return StageCache(tmp_path / "stages" if request.param == "disk" else None)


def test_a_fit_has_the_same_count_from_the_cache(stages):
    first, again = seen_by(FedKDGong(), stages=stages), seen_by(FedKDGong(), stages=stages)
    assert first == again == {"local": 72, "server": 12}
    assert [event.computed for event in stages.events if event.kind == "fit"] == [True, False]


def test_a_stage_counts_for_every_fit_that_asks_and_once_in_each(stages):
    assert seen_by(Standalone(), stages=stages) == {"local": 72, "server": 0}
    assert seen_by(FedKDGong(), stages=stages) == {"local": 72, "server": 12}
    assert seen_by(AsksTwice(), stages=stages) == {"local": 72, "server": 0}
    local = [event.computed for event in stages.events if event.kind == "local-model"]
    assert local.count(True) == 2
