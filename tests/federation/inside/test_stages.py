"""Expensive steps are computed once, and keyed by all that determines them."""

import pytest
import torch

from fedtables.federation.cache import StageCache
from fedtables.federation.seeds import Seeds
from fedtables.federation.training.loops import predict
from fedtables.federation.training.plan import TrainingPlan
from fedtables.models import catalogue
from fedtables.models.entry import NetworkEntry
from tests.federation.tiny import make_federation
from tests.methods.shards import same_bits


@pytest.fixture(scope="module")
def trained():
    """A federation and its clients' models; nothing below changes them."""
    federation = make_federation()
    return federation, federation.local_models()


def test_local_models_learn_their_two_classes(trained):
    federation, models = trained
    assert [(m.network, m.outputs, m.owner) for m in models] == [
        ("cnn-small", 3, "client-0"),
        ("cnn-small", 3, "client-1"),
    ]
    assert not same_bits(models[0].state, models[1].state)
    for client, model in zip(federation.clients, models, strict=True):
        outputs = client.run(
            lambda shard, m=model: predict(
                federation.networks.module(m), shard.images, normalise=federation.normalise
            )
        )
        absent = [label for label, count in enumerate(client.label_counts) if count == 0]
        assert not set(outputs.argmax(dim=1).tolist()) & set(absent)


@pytest.mark.parametrize(
    "changes",
    [
        {"local": TrainingPlan(epochs=2, batch_size=4, lr=0.01)},
        {"seeds": Seeds(shuffling=1)},
        {"seeds": Seeds(weights=1)},
        {"pretrained": True},
    ],
    ids=["plan", "shuffling", "weights", "pretrained"],
)
def test_what_determines_a_local_model_is_part_of_its_key(trained, monkeypatch, changes):
    monkeypatch.setattr(
        "fedtables.models.networks.imagenet.load_imagenet", lambda model, network: None
    )
    assert make_federation(**changes).local_models()[0].lineage != trained[1][0].lineage


@pytest.mark.parametrize(
    "changes",
    [{"server": TrainingPlan(epochs=9, batch_size=4)}, {"clients": 4}, {"seeds": Seeds(attack=1)}],
    ids=["server plan", "more clients", "attack seed"],
)
def test_what_does_not_touch_a_local_model_keeps_its_key(trained, changes):
    assert make_federation(**changes).local_models()[0].lineage == trained[1][0].lineage


def test_public_outputs_are_computed_once_per_model(tmp_path, trained):
    _, [first, second] = trained
    federation = make_federation(stages=StageCache(tmp_path))
    for model in (first, second, first):
        federation.public_outputs(model)
    assert [event.computed for event in federation.stages.cache.events] == [True, True, False]


def test_networks_of_equal_weights_do_not_share_public_outputs(monkeypatch):
    federation = make_federation()
    cnn = catalogue.networks()["cnn-small"].build

    def negated(*shape):
        model = cnn(*shape)
        model.register_forward_hook(lambda module, inputs, outputs: -outputs)
        return model

    monkeypatch.setitem(catalogue.networks(), "negated", NetworkEntry(negated))
    network = federation.networks.initial("cnn-small")
    plain, other = (
        federation.networks.checkpoint(network, name) for name in ("cnn-small", "negated")
    )
    torch.testing.assert_close(federation.public_outputs(other), -federation.public_outputs(plain))
