"""The federation: same start for all, stages shared, every byte counted, no labels on the
server.
"""

import dataclasses

import pytest
import safetensors.torch
import torch

from federation.caching.cache import StageCache, content_digest
from federation.channel import Transfer, encoded_size
from federation.costs import Meter, metering
from federation.parties.checkpoint import Checkpoint
from federation.parties.data import LabelledSet, PublicData
from federation.parts.evaluation import OracleError
from federation.parts.networks import HeterogeneousClientsError
from federation.seeds import Seeds
from federation.training.loops import TrainingPlan, predict
from models import catalogue
from models.entry import NetworkEntry
from tests.federation.tiny import CLASSES, make_client, make_federation


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture(scope="module")
def trained():
    """A federation and its clients' models; nothing below changes them."""
    federation = make_federation()
    return federation, federation.local_models()


# -- networks --


def test_all_parties_with_one_network_start_from_the_same_weights():
    federation = make_federation()
    assert same(
        federation.networks.initial("cnn-small").state_dict(),
        federation.networks.initial("cnn-small").state_dict(),
    )


def test_initial_weights_follow_the_weights_axis_and_no_other():
    def initial(**axes):
        return make_federation(seeds=Seeds(**axes)).networks.initial("cnn-small").state_dict()

    assert same(initial(), initial(partition=1, shuffling=1, sampling=1, attack=1))
    assert not same(initial(), initial(weights=1))


def test_making_and_training_networks_leaves_the_global_random_state_alone(trained):
    federation, [model, _] = trained
    before = torch.random.get_rng_state()
    module = federation.networks.initial("cnn-small")
    federation.networks.module(model)
    federation.networks.replace_head(module, 2, "x")
    images, targets = federation.public.images, torch.zeros(6, dtype=torch.long)
    federation.train(
        module, images, torch.zeros_like(targets), federation.task.loss, federation.local, "x"
    )
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_checkpoint_survives_the_round_trip_to_a_module(trained):
    federation, [model, _] = trained
    module = federation.networks.module(model)
    assert same(dict(module.state_dict()), model.state)
    assert not module.training
    again = federation.networks.checkpoint(module, model.network, model.owner)
    assert same(again.state, model.state)
    assert (again.network, again.outputs, again.owner) == (model.network, CLASSES, "client-0")
    assert federation.networks.checkpoint(module, model.network).owner == "server"


def test_a_checkpoint_with_another_head_survives_too():
    federation = make_federation()
    module = federation.networks.replace_head(
        federation.networks.initial("cnn-small"), 1, "classifier", 0
    )
    checkpoint, _ = federation.stages.client_models(
        "judge",
        lambda client: (module, {}),
        lambda client: (),
        outputs=1,
        code="federation.caching.cache",
    )
    restored = federation.networks.module(checkpoint)
    assert same(dict(restored.state_dict()), dict(module.state_dict()))
    assert restored(torch.zeros(2, 1, 8, 8)).shape == (2, 1)


def test_a_checkpoint_does_not_change_with_the_module_it_was_taken_from():
    federation = make_federation()
    module = federation.networks.initial("cnn-small")
    checkpoint = federation.networks.checkpoint(module, "cnn-small")
    before = content_digest(checkpoint.state)
    with torch.no_grad():
        module.head.bias.add_(1)
    assert content_digest(checkpoint.state) == before
    assert federation.networks.checkpoint(module, "cnn-small").lineage != checkpoint.lineage


def test_a_new_head_is_named_by_its_stream_and_leaves_the_body():
    federation = make_federation()

    def state(*names):
        return dict(
            federation.networks.replace_head(
                federation.networks.initial("cnn-small"), 1, *names
            ).state_dict()
        )

    assert same(state("classifier", 0), state("classifier", 0))
    assert not torch.equal(
        state("classifier", 0)["head.weight"], state("classifier", 1)["head.weight"]
    )
    body = federation.networks.initial("cnn-small").state_dict()
    assert all(
        torch.equal(state("x")[name], body[name]) for name in body if not name.startswith("head.")
    )


# -- training --


def test_local_models_learn_their_two_classes(trained):
    federation, models = trained
    assert [(m.network, m.outputs, m.owner) for m in models] == [
        ("cnn-small", 3, "client-0"),
        ("cnn-small", 3, "client-1"),
    ]
    assert not same(models[0].state, models[1].state)
    for client, model in zip(federation.clients, models, strict=True):
        outputs = client.run(
            lambda shard, m=model: predict(
                federation.networks.module(m), shard.images, normalise=federation.normalise
            )
        )
        absent = [label for label, count in enumerate(client.label_counts) if count == 0]
        assert not set(outputs.argmax(dim=1).tolist()) & set(absent)


def test_local_models_are_tracked_on_the_test_set_after_every_epoch(trained):
    federation, models = trained
    for model in models:
        assert len(model.history["accuracy"]) == federation.local.epochs
        assert (
            model.history["accuracy"][-1]
            == federation.evaluation.test(federation.networks.module(model))["accuracy"]
        )


def test_local_models_are_stages_that_are_computed_once(tmp_path):
    first, second = (make_federation(stages=StageCache(tmp_path)) for _ in range(2))
    models, again = first.local_models(), second.local_models()
    assert [event.computed for event in first.stages.cache.events] == [True, True]
    assert [event.computed for event in second.stages.cache.events] == [False, False]
    assert all(same(a.state, b.state) for a, b in zip(models, again, strict=True))
    assert models[0].lineage == again[0].lineage == first.stages.cache.events[0].key


def test_training_twice_gives_the_same_weights_bit_by_bit(trained):
    assert all(
        same(a.state, b.state)
        for a, b in zip(trained[1], make_federation().local_models(), strict=True)
    )


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
    arguments = (
        federation.public.images,
        torch.zeros(6, dtype=torch.long),
        federation.task.loss,
        plan,
        "x",
    )
    assert federation.train(federation.networks.initial("cnn-small"), *arguments) == {}
    assert (
        len(
            federation.train(federation.networks.initial("cnn-small"), *arguments, track=True)[
                "accuracy"
            ]
        )
        == 2
    )


def test_the_names_of_a_training_choose_its_shuffling():
    federation = make_federation()

    def weights(*names):
        model = federation.networks.initial("cnn-small")
        labels = torch.tensor([0, 1, 2] * 2)
        federation.train(
            model, federation.public.images, labels, federation.task.loss, federation.local, *names
        )
        return dict(model.state_dict())

    assert same(weights("a"), weights("a"))
    assert not same(weights("a"), weights("b"))


def test_tracking_does_not_change_what_is_learnt():
    federation = make_federation(network="resnet8-narrow")

    def weights(track):
        model = federation.networks.initial("resnet8-narrow")
        labels = torch.tensor([0, 1, 2] * 2)
        federation.train(
            model,
            federation.public.images,
            labels,
            federation.task.loss,
            federation.local,
            "a",
            track=track,
        )
        return dict(model.state_dict())

    assert same(weights(track=True), weights(track=False))


def test_progress_names_client_and_epoch():
    lines = []
    make_federation(progress=lambda text, share: lines.append((text, share))).local_models()
    assert lines[:3] == [(f"client 1/2 epoch {epoch}/3", epoch / 3) for epoch in (1, 2, 3)]


# -- the channel --


def test_an_upload_costs_exactly_the_bytes_of_its_encoding(trained):
    _, [model, _] = trained
    federation = make_federation()
    received = federation.upload(federation.clients[1], model)
    raw = safetensors.torch.save(
        {name: tensor.contiguous() for name, tensor in model.state.items()}
    )
    assert [(t.direction, t.kind, t.client, t.bytes) for t in federation.channel.ledger] == [
        ("up", "parameters", 1, len(raw))
    ]
    assert same(received.state, model.state)
    assert dataclasses.replace(received, state=model.state) == model


def test_an_uploaded_model_shares_no_memory_with_the_clients(trained):
    federation, [model, _] = trained
    received = make_federation().upload(federation.clients[0], model)
    assert all(
        received.state[name].data_ptr() != tensor.data_ptr() for name, tensor in model.state.items()
    )


def test_batchnorm_buffers_are_uploaded_too():
    federation = make_federation()
    checkpoint = federation.networks.checkpoint(
        federation.networks.initial("resnet8-narrow"), "resnet8-narrow"
    )
    state = federation.upload(federation.clients[0], checkpoint).state
    assert {"bn.running_mean", "bn.running_var", "bn.num_batches_tracked"} <= set(state)
    weights = sum(p.numel() for p in catalogue.build("resnet8-narrow", 1, CLASSES, 8).parameters())
    assert federation.channel.total("up") == encoded_size(state) > 4 * weights


# -- distillation --


def test_public_outputs_are_the_networks_outputs_without_augmentation(trained):
    federation, [model, _] = trained
    expected = predict(
        federation.networks.module(model), federation.public.images, normalise=federation.normalise
    )
    assert torch.equal(federation.public_outputs(model), expected)


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


def test_distillation_imitates_its_targets():
    federation = make_federation(server=TrainingPlan(epochs=40, batch_size=6, lr=0.01))
    targets = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]] * 2)
    model = federation.distill(targets)
    outputs = predict(
        federation.networks.module(model), federation.public.images, normalise=federation.normalise
    )
    assert outputs.argmax(dim=1).tolist() == targets.argmax(dim=1).tolist()
    assert (model.network, model.owner, len(model.history["accuracy"])) == (
        "cnn-small",
        "server",
        40,
    )


def test_distillation_of_the_same_targets_gives_the_same_model():
    federation = make_federation()
    targets = torch.full((6, CLASSES), 1 / 3)
    first, again, other = (
        federation.distill(targets),
        federation.distill(targets.clone()),
        federation.distill(targets * 0.5),
    )
    assert first.lineage == again.lineage != other.lineage
    assert same(first.state, again.state)
    assert not same(first.state, other.state)


def test_distillation_may_be_against_another_loss_than_that_against_probabilities():
    federation = make_federation(server=TrainingPlan(epochs=60, batch_size=6, lr=0.01))
    targets = torch.tensor([[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]] * 2)
    model = federation.distill(
        targets, lambda outputs, wanted: (outputs - wanted).square().mean(dim=1)
    )
    outputs = predict(
        federation.networks.module(model), federation.public.images, normalise=federation.normalise
    )
    assert (
        outputs - targets
    ).abs().max() < 0.4  # logits near the targets, which are no probabilities


# -- rounds and steps --


def test_rounds_are_counted_from_one_and_booked_by_the_channel():
    lines = []
    federation = make_federation(progress=lambda text, share: lines.append((text, share)))
    numbers = []
    for number in federation.rounds(4):
        federation.channel.up(0, "labels", {"x": torch.tensor(1)})
        numbers.append(number)
    assert numbers == [1, 2, 3, 4]
    assert [transfer.round for transfer in federation.channel.ledger] == [1, 2, 3, 4]
    assert lines == [("round 1/4", 0), ("round 2/4", 0.25), ("round 3/4", 0.5), ("round 4/4", 0.75)]


def test_what_is_sent_before_the_first_round_belongs_to_none():
    federation = make_federation()
    federation.label_counts()
    assert list(federation.rounds(0)) == []
    assert {transfer.round for transfer in federation.channel.ledger} == {0}


def test_rounds_that_are_alike_all_happen_in_a_run():
    assert list(make_federation().rounds(3, alike=True)) == [1, 2, 3]


def test_a_plan_follows_like_rounds_once_and_others_one_by_one():
    federation = make_federation(device="meta")
    with metering(Meter()) as meter:
        followed = [(number, meter.times) for number in federation.rounds(5, alike=True)]
        others = [(number, meter.times) for number in federation.rounds(5)]
    assert followed == [(1, 5)]
    assert others == [(number, 1) for number in range(1, 6)]
    assert meter.times == 1


def test_steps_are_counted_from_zero_and_followed_once_by_a_plan():
    assert list(make_federation().steps(3)) == [0, 1, 2]
    federation = make_federation(device="meta")
    with metering(Meter()) as meter:
        assert [(step, meter.times) for step in federation.steps(7)] == [(0, 7)]
        assert list(federation.steps(0)) == []
        nested = [
            meter.times for _ in federation.rounds(3, alike=True) for _ in federation.steps(4)
        ]
    assert (nested, meter.times) == ([12], 1)


def test_leaving_a_planned_loop_early_ends_its_repetition():
    federation = make_federation(device="meta")
    with metering(Meter()) as meter:
        for _ in federation.steps(9):
            break
        assert meter.times == 1


# -- participants --


def indices(federation, number=1, share=1.0):
    return [client.index for client in federation.streams.participants(number, share)]


@pytest.mark.parametrize(
    ("clients", "share", "count"),
    [(10, 0.4, 4), (10, 0.01, 1), (10, 1.0, 10), (3, 0.5, 2), (20, 0.33, 7)],
)
def test_the_rounded_share_of_the_clients_takes_part_and_at_least_one(clients, share, count):
    chosen = indices(make_federation(clients=clients), share=share)
    assert len(chosen) == len(set(chosen)) == count
    assert chosen == sorted(chosen)
    assert set(chosen) <= set(range(clients))


def test_participants_follow_the_sampling_axis_and_the_round_only():
    def drawn(**axes):
        federation = make_federation(clients=10, seeds=Seeds(**axes))
        return [indices(federation, number, 0.3) for number in range(1, 9)]

    first = drawn()
    assert first == drawn(partition=1, weights=1, shuffling=1, attack=1)
    assert first != drawn(sampling=1)
    assert len({tuple(chosen) for chosen in first}) > 4
    assert {index for chosen in first for index in chosen} == set(range(10))


def test_a_round_draws_alike_whatever_was_drawn_before():
    federation = make_federation(clients=10)
    drawn = [indices(federation, number, 0.3) for number in (1, 2, 3)]
    assert indices(federation, 2, 0.3) == drawn[1]


def test_a_client_without_samples_never_takes_part():
    federation = make_federation(
        clients=[
            make_client(0),
            make_client(1, samples=0),
            make_client(2),
            make_client(3, samples=0),
        ]
    )
    assert all(set(indices(federation, number, 0.5)) <= {0, 2} for number in range(1, 20))
    assert indices(federation, 1, 1.0) == [0, 2]
    assert indices(federation, 1, 0.75) == [0, 2]  # three of four are asked for, two can


@pytest.mark.parametrize("share", [0, -0.5, 1.01, float("nan")])
def test_a_share_outside_of_0_to_1_is_refused(share):
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        make_federation().streams.participants(1, share)


# -- tracking and validation --


def constant(federation, label):
    """A network that answers `label` to everything; a third of the test and of the validation set
    is right.
    """
    model = federation.networks.initial("cnn-small")
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.copy_(torch.nn.functional.one_hot(torch.tensor(label), CLASSES))
    return model


def test_tracking_adds_the_test_metrics_to_the_history_that_a_checkpoint_takes():
    federation = make_federation()
    assert (
        federation.networks.checkpoint(
            federation.networks.initial("cnn-small"), "cnn-small"
        ).history
        == {}
    )
    model = constant(federation, 1)
    federation.evaluation.track(model)
    federation.evaluation.track(model)
    assert federation.evaluation.history == {"accuracy": [1 / 3, 1 / 3]}
    assert federation.networks.checkpoint(model, "cnn-small").history == {
        "accuracy": [1 / 3, 1 / 3]
    }


def test_validation_is_on_the_servers_own_set_and_not_on_the_test_set():
    images = torch.zeros(4, 1, 8, 8, dtype=torch.uint8)
    federation = make_federation(validation=LabelledSet(images, torch.tensor([1, 1, 1, 2]), "v"))
    assert federation.evaluation.validate(constant(federation, 1)) == {"accuracy": 0.75}
    assert federation.evaluation.test(constant(federation, 1)) == {"accuracy": 1 / 3}
    assert federation.evaluation.history == {}


def test_without_a_validation_set_the_setting_that_makes_one_is_named():
    federation = make_federation(validation=None)
    with pytest.raises(ValueError, match=r"partition\.validation_share above 0"):
        federation.evaluation.validate(federation.networks.initial("cnn-small"))


def test_planning_measures_nothing_and_books_what_it_would_predict():
    federation = make_federation(device="meta")
    with metering(Meter()) as meter:
        model = federation.networks.initial("cnn-small")
        assert (federation.evaluation.test(model), federation.evaluation.validate(model)) == (
            {},
            {},
        )
        federation.evaluation.track(model)
    assert federation.evaluation.history == {}
    assert meter.predicted_samples == 18


# -- streams and new modules --


def test_a_stream_is_named_and_belongs_to_an_axis():
    def drawn(*names, **axes):
        return make_federation(seeds=Seeds(**axes)).streams.shuffling(*names).normal(3).tolist()

    assert drawn("a", 1) == drawn("a", 1) == drawn("a", 1, weights=5)
    assert len({tuple(d) for d in (drawn("a", 1), drawn("a", 2), drawn("a", 1, shuffling=1))}) == 3


def test_a_planned_stream_has_no_content():
    assert make_federation(device="meta").streams.shuffling("a").normal(2, 3).is_meta


def test_new_modules_follow_their_names_on_the_weights_axis_and_leave_the_global_state_alone():
    def weight(*names, **axes):
        return (
            make_federation(seeds=Seeds(**axes))
            .networks.new_module(lambda: torch.nn.Linear(3, 2), *names)
            .weight.tolist()
        )

    before = torch.random.get_rng_state()
    assert weight("critic", 1) == weight("critic", 1) == weight("critic", 1, shuffling=3)
    assert weight("critic", 1) != weight("critic", 2)
    assert weight("critic", 1) != weight("critic", 1, weights=3)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_planned_new_module_has_no_weights():
    module = make_federation(device="meta").networks.new_module(
        lambda: torch.nn.Linear(3, 2), "critic"
    )
    assert module.weight.is_meta


# -- what a method may ask of the clients --


def test_label_counts_are_sent_by_every_client():
    federation = make_federation(clients=3)
    counts = federation.label_counts()
    assert counts.tolist() == [[6, 6, 0], [0, 6, 6], [6, 0, 6]]
    size = encoded_size({"counts": torch.zeros(CLASSES, dtype=torch.int64)})
    assert federation.channel.ledger == [
        Transfer(0, "up", "labels", client, size) for client in range(3)
    ]


def test_one_network_everywhere_is_shared():
    assert make_federation().networks.shared() == "cnn-small"


@pytest.mark.parametrize(
    "changes",
    [
        {"network": "resnet8-narrow"},
        {"clients": [make_client(0), make_client(1, network="resnet8-narrow")]},
    ],
    ids=["server", "client"],
)
def test_different_networks_are_named_to_a_method_that_averages_them(changes):
    with pytest.raises(
        HeterogeneousClientsError,
        match=r"here are cnn-small, resnet8-narrow\. Use a model-agnostic method",
    ):
        make_federation(**changes).networks.shared()


def test_training_on_a_client_uses_its_samples_the_given_plan_and_its_own_stream():
    federation = make_federation()

    def trained_on(client, *names, epochs=1):
        model = federation.networks.initial("cnn-small")
        plan = TrainingPlan(epochs=epochs, batch_size=4, lr=0.01)
        federation.train_on_clients([(federation.clients[client], model)], plan, *names)
        return dict(model.state_dict())

    first = trained_on(0, "round", 1)
    assert same(first, trained_on(0, "round", 1))
    assert not same(first, trained_on(0, "round", 2))
    assert not same(first, trained_on(1, "round", 1))
    assert not same(first, trained_on(0, "round", 1, epochs=2))


def test_a_client_adds_its_penalty_to_the_loss():
    federation = make_federation(local=TrainingPlan(epochs=20, batch_size=12, lr=0.05))

    def head_norm(penalty):
        model = federation.networks.initial("cnn-small")
        federation.train_on_clients(
            [(federation.clients[0], model)], federation.local, penalties=[penalty]
        )
        return model.head.weight.norm().item()

    assert head_norm(
        lambda model, outputs, targets: 10 * model.head.weight.square().sum()
    ) < 0.5 * head_norm(None)


# -- what the server may know --


def test_the_public_set_has_no_labels():
    assert {field.name for field in dataclasses.fields(PublicData)} == {"images", "digest"}
    assert len(make_federation().public) == 6


def test_public_labels_are_refused_to_a_method_that_did_not_declare_the_oracle():
    federation = make_federation(oracle_labels=torch.zeros(6), oracle_allowed=frozenset())
    with pytest.raises(OracleError, match="public data are unlabelled"):
        federation.evaluation.public_labels()


def test_public_labels_that_do_not_exist_are_refused_to_all():
    with pytest.raises(OracleError):
        make_federation(oracle_allowed=frozenset({"public-labels"})).evaluation.public_labels()


def test_an_upper_bound_that_declares_the_oracle_gets_the_labels():
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    federation = make_federation(oracle_labels=labels, oracle_allowed=frozenset({"public-labels"}))
    assert torch.equal(federation.evaluation.public_labels(), labels)


# -- planning --


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
    assert (
        meter.predicted_samples == 2 * 6 * 3 + 6 + 6 * 2
    )  # test set per epoch, public outputs, test set per epoch


def test_a_planned_head_does_not_change_the_shared_network():
    federation = make_federation(device="meta")
    module = federation.networks.initial("cnn-small")
    assert federation.networks.replace_head(module, 1, "x").head.out_features == 1
    assert federation.networks.initial("cnn-small").head.out_features == CLASSES


def test_planned_modules_do_not_change_the_shared_network():
    federation = make_federation(
        device="meta", clients=[make_client(0, network="cnn", device="meta")]
    )
    with metering(Meter()):
        [model] = federation.local_models()
    federation.networks.module(model).requires_grad_(False)
    assert all(
        parameter.requires_grad for parameter in federation.networks.initial("cnn").parameters()
    )


def test_a_checkpoint_is_frozen(trained):
    with pytest.raises(dataclasses.FrozenInstanceError):
        trained[1][0].owner = "server"
    assert isinstance(trained[1][0], Checkpoint)
