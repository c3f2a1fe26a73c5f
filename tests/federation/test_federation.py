"""The federation: same start for all, stages shared, every byte counted, no labels on the server."""

import dataclasses

import pytest
import safetensors.torch
import torch

from federation.channel import encoded_size
from federation.costs import Meter, metering
from federation.federation import Checkpoint, OracleError, PublicData
from federation.seeds import Seeds
from federation.stages import StageCache, content_digest
from federation.training import TrainingPlan, predict
from models import catalogue
from tests.federation.tiny import CLASSES, make_federation


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture(scope="module")
def trained():
    """A federation and its clients' models; nothing below changes them."""
    federation = make_federation()
    return federation, federation.local_models()


# -- networks ---------------------------------------------------------------------------------------------------------


def test_all_parties_with_one_network_start_from_the_same_weights():
    federation = make_federation()
    assert same(federation.initial("cnn-small").state_dict(), federation.initial("cnn-small").state_dict())


def test_initial_weights_follow_the_weights_axis_and_no_other():
    def initial(**axes):
        return make_federation(seeds=Seeds(**axes)).initial("cnn-small").state_dict()

    assert same(initial(), initial(partition=1, shuffling=1, sampling=1, attack=1))
    assert not same(initial(), initial(weights=1))


def test_making_and_training_networks_leaves_the_global_random_state_alone(trained):
    federation, [model, _] = trained
    before = torch.random.get_rng_state()
    module = federation.initial("cnn-small")
    federation.module(model)
    federation.replace_head(module, 2, "x")
    images, targets = federation.public.images, torch.zeros(6, dtype=torch.long)
    federation.train(module, images, torch.zeros_like(targets), federation.task.loss, federation.local, "x")
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_checkpoint_survives_the_round_trip_to_a_module(trained):
    federation, [model, _] = trained
    module = federation.module(model)
    assert same(dict(module.state_dict()), model.state)
    assert not module.training
    again = federation.checkpoint(module, model.network, model.outputs, model.owner)
    assert same(again.state, model.state)
    assert (again.network, again.outputs, again.owner) == (model.network, CLASSES, "client-0")


def test_a_checkpoint_with_another_head_survives_too():
    federation = make_federation()
    module = federation.replace_head(federation.initial("cnn-small"), 1, "classifier", 0)
    restored = federation.module(federation.checkpoint(module, "cnn-small", 1))
    assert same(dict(restored.state_dict()), dict(module.state_dict()))
    assert restored(torch.zeros(2, 1, 8, 8)).shape == (2, 1)


def test_a_checkpoint_does_not_change_with_the_module_it_was_taken_from():
    federation = make_federation()
    module = federation.initial("cnn-small")
    checkpoint = federation.checkpoint(module, "cnn-small", CLASSES)
    before = content_digest(checkpoint.state)
    with torch.no_grad():
        module.head.bias.add_(1)
    assert content_digest(checkpoint.state) == before
    assert federation.checkpoint(module, "cnn-small", CLASSES).lineage != checkpoint.lineage


def test_a_new_head_is_named_by_its_stream_and_leaves_the_body():
    federation = make_federation()

    def state(*names):
        return dict(federation.replace_head(federation.initial("cnn-small"), 1, *names).state_dict())

    assert same(state("classifier", 0), state("classifier", 0))
    assert not torch.equal(state("classifier", 0)["head.weight"], state("classifier", 1)["head.weight"])
    body = federation.initial("cnn-small").state_dict()
    assert all(torch.equal(state("x")[name], body[name]) for name in body if not name.startswith("head."))


# -- training ---------------------------------------------------------------------------------------------------------


def test_local_models_learn_their_two_classes(trained):
    federation, models = trained
    assert [(m.network, m.outputs, m.owner) for m in models] == [("cnn-small", 3, "client-0"), ("cnn-small", 3, "client-1")]
    assert not same(models[0].state, models[1].state)
    for client, model in zip(federation.clients, models, strict=True):
        outputs = client.run(lambda shard, m=model: predict(federation.module(m), shard.images, normalise=federation.normalise))
        absent = [label for label, count in enumerate(client.label_counts) if count == 0]
        assert not set(outputs.argmax(dim=1).tolist()) & set(absent)


def test_local_models_are_tracked_on_the_test_set_after_every_epoch(trained):
    federation, models = trained
    for model in models:
        assert len(model.history["accuracy"]) == federation.local.epochs
        assert model.history["accuracy"][-1] == federation.evaluate(federation.module(model))["accuracy"]


def test_local_models_are_stages_that_are_computed_once(tmp_path):
    first, second = (make_federation(stages=StageCache(tmp_path)) for _ in range(2))
    models, again = first.local_models(), second.local_models()
    assert [event.computed for event in first.stages.events] == [True, True]
    assert [event.computed for event in second.stages.events] == [False, False]
    assert all(same(a.state, b.state) for a, b in zip(models, again, strict=True))
    assert models[0].lineage == again[0].lineage == first.stages.events[0].key


def test_training_twice_gives_the_same_weights_bit_by_bit(trained):
    assert all(same(a.state, b.state) for a, b in zip(trained[1], make_federation().local_models(), strict=True))


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
    monkeypatch.setattr("models.networks.imagenet.load_imagenet", lambda model, network: None)
    assert make_federation(**changes).local_models()[0].lineage != trained[1][0].lineage


@pytest.mark.parametrize(
    "changes",
    [{"server": TrainingPlan(epochs=9, batch_size=4)}, {"clients": 4}, {"seeds": Seeds(attack=1)}],
    ids=["server plan", "more clients", "attack seed"],
)
def test_what_does_not_touch_a_local_model_keeps_its_key(trained, changes):
    assert make_federation(**changes).local_models()[0].lineage == trained[1][0].lineage


def test_training_returns_a_history_only_when_tracked():
    federation = make_federation()
    plan = TrainingPlan(epochs=2, batch_size=3)
    arguments = (federation.public.images, torch.zeros(6, dtype=torch.long), federation.task.loss, plan, "x")
    assert federation.train(federation.initial("cnn-small"), *arguments) == {}
    assert len(federation.train(federation.initial("cnn-small"), *arguments, track=True)["accuracy"]) == 2


def test_the_names_of_a_training_choose_its_shuffling():
    federation = make_federation()

    def weights(*names):
        model = federation.initial("cnn-small")
        labels = torch.tensor([0, 1, 2] * 2)
        federation.train(model, federation.public.images, labels, federation.task.loss, federation.local, *names)
        return dict(model.state_dict())

    assert same(weights("a"), weights("a"))
    assert not same(weights("a"), weights("b"))


def test_tracking_does_not_change_what_is_learnt():
    federation = make_federation(network="resnet8-narrow")

    def weights(track):
        model = federation.initial("resnet8-narrow")
        labels = torch.tensor([0, 1, 2] * 2)
        federation.train(model, federation.public.images, labels, federation.task.loss, federation.local, "a", track=track)
        return dict(model.state_dict())

    assert same(weights(track=True), weights(track=False))


def test_progress_names_client_and_epoch():
    lines = []
    make_federation(progress=lambda text, share: lines.append((text, share))).local_models()
    assert lines[:3] == [(f"client 1/2 epoch {epoch}/3", epoch / 3) for epoch in (1, 2, 3)]


# -- the channel ------------------------------------------------------------------------------------------------------


def test_an_upload_costs_exactly_the_bytes_of_its_encoding(trained):
    _, [model, _] = trained
    federation = make_federation()
    received = federation.upload(federation.clients[1], model)
    raw = safetensors.torch.save({name: tensor.contiguous() for name, tensor in model.state.items()})
    assert [(t.direction, t.kind, t.client, t.bytes) for t in federation.channel.ledger] == [("up", "parameters", 1, len(raw))]
    assert same(received.state, model.state)
    assert dataclasses.replace(received, state=model.state) == model


def test_an_uploaded_model_shares_no_memory_with_the_clients(trained):
    federation, [model, _] = trained
    received = make_federation().upload(federation.clients[0], model)
    assert all(received.state[name].data_ptr() != tensor.data_ptr() for name, tensor in model.state.items())


def test_batchnorm_buffers_are_uploaded_too():
    federation = make_federation()
    checkpoint = federation.checkpoint(federation.initial("resnet8-narrow"), "resnet8-narrow", CLASSES)
    state = federation.upload(federation.clients[0], checkpoint).state
    assert {"bn.running_mean", "bn.running_var", "bn.num_batches_tracked"} <= set(state)
    weights = sum(p.numel() for p in catalogue.build("resnet8-narrow", 1, CLASSES, 8).parameters())
    assert federation.channel.total("up") == encoded_size(state) > 4 * weights


# -- distillation -----------------------------------------------------------------------------------------------------


def test_public_outputs_are_the_networks_outputs_without_augmentation(trained):
    federation, [model, _] = trained
    expected = predict(federation.module(model), federation.public.images, normalise=federation.normalise)
    assert torch.equal(federation.public_outputs(model), expected)


def test_public_outputs_are_computed_once_per_model(tmp_path, trained):
    _, [first, second] = trained
    federation = make_federation(stages=StageCache(tmp_path))
    for model in (first, second, first):
        federation.public_outputs(model)
    assert [event.computed for event in federation.stages.events] == [True, True, False]


def test_networks_of_equal_weights_do_not_share_public_outputs(monkeypatch):
    federation = make_federation()
    cnn, module = catalogue.networks()["cnn-small"]

    def negated(*shape):
        model = cnn(*shape)
        model.register_forward_hook(lambda module, inputs, outputs: -outputs)
        return model

    monkeypatch.setitem(catalogue.networks(), "negated", (negated, module))
    network = federation.initial("cnn-small")
    plain, other = (federation.checkpoint(network, name, CLASSES) for name in ("cnn-small", "negated"))
    torch.testing.assert_close(federation.public_outputs(other), -federation.public_outputs(plain))


def test_distillation_imitates_its_targets():
    federation = make_federation(server=TrainingPlan(epochs=40, batch_size=6, lr=0.01))
    targets = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]] * 2)
    model = federation.distill(targets)
    outputs = predict(federation.module(model), federation.public.images, normalise=federation.normalise)
    assert outputs.argmax(dim=1).tolist() == targets.argmax(dim=1).tolist()
    assert (model.network, model.owner, len(model.history["accuracy"])) == ("cnn-small", "server", 40)


def test_distillation_of_the_same_targets_is_done_once():
    federation = make_federation()
    targets = torch.full((6, CLASSES), 1 / 3)
    first, again, other = federation.distill(targets), federation.distill(targets.clone()), federation.distill(targets * 0.5)
    assert first.lineage == again.lineage != other.lineage
    assert [event.computed for event in federation.stages.events] == [True, False, True]


# -- what the server may know -----------------------------------------------------------------------------------------


def test_the_public_set_has_no_labels():
    assert {field.name for field in dataclasses.fields(PublicData)} == {"images", "digest"}
    assert len(make_federation().public) == 6


def test_public_labels_are_refused_to_a_method_that_did_not_declare_the_oracle():
    federation = make_federation(oracle_labels=torch.zeros(6), oracle_allowed=frozenset())
    with pytest.raises(OracleError, match="public data are unlabelled"):
        federation.oracle_public_labels()


def test_public_labels_that_do_not_exist_are_refused_to_all():
    with pytest.raises(OracleError):
        make_federation(oracle_allowed=frozenset({"public-labels"})).oracle_public_labels()


def test_an_upper_bound_that_declares_the_oracle_gets_the_labels():
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    federation = make_federation(oracle_labels=labels, oracle_allowed=frozenset({"public-labels"}))
    assert torch.equal(federation.oracle_public_labels(), labels)


# -- planning ---------------------------------------------------------------------------------------------------------


def test_planning_follows_the_same_path_without_weights_or_content():
    real, planned = make_federation(), make_federation(device="meta")
    with metering(Meter()) as meter:
        models = planned.local_models()
        for client, model in zip(planned.clients, models, strict=True):
            planned.upload(client, model)
        outputs = planned.public_outputs(models[0])
        planned.distill(outputs.softmax(dim=1))
    for client, model in zip(real.clients, real.local_models(), strict=True):
        real.upload(client, model)
    assert planned.channel.ledger == real.channel.ledger
    assert (outputs.shape, outputs.is_meta) == ((6, CLASSES), True)
    assert meter.training_samples == 2 * 12 * 3 + 6 * 2
    assert meter.predicted_samples == 2 * 6 * 3 + 6 + 6 * 2  # test set per epoch, public outputs, test set per epoch


def test_a_planned_head_does_not_change_the_shared_network():
    federation = make_federation(device="meta")
    module = federation.initial("cnn-small")
    assert federation.replace_head(module, 1, "x").head.out_features == 1
    assert federation.initial("cnn-small").head.out_features == CLASSES


def test_a_checkpoint_is_frozen(trained):
    with pytest.raises(dataclasses.FrozenInstanceError):
        trained[1][0].owner = "server"
    assert isinstance(trained[1][0], Checkpoint)
